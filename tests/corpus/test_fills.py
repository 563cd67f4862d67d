"""Values computed from positions: the same bits everywhere, from the domain of the stored values."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from conformance.corpus import fills
from conformance.corpus.model import TensorSlot
from conformance.corpus.values import Values
from conformance.judging.bits import bits

STORED = torch.tensor([1.0, -2.0, 0.0, 8.0])
MIXED = "b48db8707304900c"  # hash of the first 100,000 positions with seed 7


def test_mixed_positions_look_random_and_never_change() -> None:
    found = fills.mixed(100_000, 7)
    assert int(found.min()) >= 0
    assert int(found.max()) < 2**32
    assert found.unique().numel() > 99_990
    assert hashlib.sha256(found.numpy().tobytes()).hexdigest()[:16] == MIXED
    counts = torch.bincount(found % 16, minlength=16)
    assert 6_000 < int(counts.min()) <= int(counts.max()) < 6_500


def test_chosen_values_are_stored_ones_and_all_of_them_occur() -> None:
    assert set(fills.from_stored("choose", STORED, 100, 0).tolist()) == set(STORED.tolist())


def test_jittered_values_differ_and_stay_between_the_stored_ones_and_zero() -> None:
    found = fills.from_stored("jitter", STORED, 1000, 0)
    assert found.dtype == torch.float32
    assert found.unique().numel() > 700
    assert float(found.max()) <= 8.0
    assert float(found.min()) >= -2.0
    assert not bool(((found > 1.0) & (found < 7.7)).any())


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_sorted_values_ascend_from_the_first_to_the_last_stored_one(count: int) -> None:
    found = fills.from_stored("sorted", torch.tensor([0, 3, 9]), count, 0)
    assert found.tolist() == sorted(found.tolist())
    assert count < 2 or (found[0], found[-1]) == (0, 9)


def test_halves_lie_between_whole_numbers() -> None:
    made = fills.from_stored("halves", torch.tensor([-3, 0, 4]), 50, 1)
    assert set(made.tolist()) == {-2.5, 0.5, 4.5}


def test_scaled_images_are_larger_and_smaller_than_the_stored_ones_in_turns() -> None:
    assert fills.from_stored("scaled/2", STORED, 4, 0).tolist() == [64.0, -128.0, 0.0, 0.0625]
    assert fills.from_stored("scaled/1", STORED, 0, 0).tolist() == []


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_values_below_a_bound_end_with_the_largest(count: int) -> None:
    found = fills.from_stored("below/65537", STORED, count, 0).tolist()
    assert len(found) == count
    assert found[-1:] == [65536][:count]
    assert all(0 <= i < 65537 for i in found)


@pytest.mark.parametrize("fill", ["choose", "jitter", "below/7"])
def test_a_fill_of_no_elements_can_be_viewed_as_bytes(fill: str) -> None:
    assert fills.from_stored(fill, STORED, 0, 0).view(torch.uint8).numel() == 0


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
@pytest.mark.parametrize("fill", ["choose", "hard/0", "hard/1", "hard/sparse", "hard/rare/0"])
def test_unsigned_values_are_moved_as_bytes(dtype: str, fill: str) -> None:
    class Mode(TorchFunctionMode):  # torch 2.6 cannot index unsigned tensors, or use where
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            unsigned = [a for a in args if isinstance(a, torch.Tensor) and a.dtype is getattr(torch, dtype)]
            assert not (unsigned and func in (torch.Tensor.__getitem__, torch.where)), func
            return func(*args, **(kwargs or {}))

    stored = torch.tensor([3, 0, 7]).to(getattr(torch, dtype))
    with Mode():
        of_hard = fill.startswith("hard")
        found = fills.from_hard(fill, stored, 50, dtype, 1) if of_hard else fills.from_stored(fill, stored, 50, 1)
    known = {*stored.tolist(), *fills.hard(dtype).tolist()}
    assert len(found) == 50
    assert set(found.tolist()) <= known


def test_distinct_values_are_a_permutation() -> None:
    found = fills.from_stored("distinct/50", STORED, 50, 3)
    around = fills.from_stored("around/50", STORED, 50, 3)
    assert torch.equal(around % 50, found)
    assert (around < 0).tolist() == 25 * [False, True]
    assert sorted(found.tolist()) == list(range(50))
    assert found.tolist() != list(range(50))


def test_rows_name_no_element_twice_along_either_dimension() -> None:
    found = fills.from_stored("rows/7/9", STORED, 63, 0).view(9, 7)
    assert all(len(set(row)) == 7 for row in found.tolist())
    assert all(len(set(column)) == 9 for column in found.T.tolist())


@pytest.mark.parametrize("fill", ["unknown", "below/x", "distinct/3"])
def test_a_fill_that_cannot_be_made_is_an_error(fill: str) -> None:
    with pytest.raises(ValueError, match=fill):
        fills.from_stored(fill, STORED, 5, 0)


@pytest.mark.parametrize(
    ("dtype", "quiet"), [("float16", 1 << 9), ("bfloat16", 1 << 6), ("float32", 1 << 22), ("float64", 1 << 51)]
)
def test_hard_floats_have_each_special_value_once(dtype: str, quiet: int) -> None:
    found = fills.hard(dtype)
    zeros = found[found == 0]
    assert sorted(zeros.signbit().tolist()) == [False, True]
    nans = found[found.isnan()]
    assert [bool(bits(nan).item() & quiet) for nan in nans] == [True, True, False]
    assert nans.signbit().tolist() == [False, True, False]
    assert int(bits(nans)[1]) == -1  # all bits are set, so rounding carries into the exponent
    assert int(found.isinf().sum()) == 2
    finfo = torch.finfo(getattr(torch, dtype))
    assert {finfo.max, finfo.min, finfo.smallest_normal, 1 + finfo.eps} <= set(found.tolist())
    assert bool(((found != 0) & (found.abs() < finfo.smallest_normal)).any())


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_hard_integers_have_the_limits_of_the_dtype(dtype: str) -> None:
    found, info = fills.hard(dtype), torch.iinfo(getattr(torch, dtype))
    assert {info.min, info.max, info.max - 1, 0, 1} <= set(found.tolist())
    assert found.unique().numel() == found.numel()


def test_of_neighbours_that_float64_rounds_alike_the_last_one_is_wrong_for_either_order() -> None:
    found = fills.hard("int64").tolist()
    for larger in (2**53 + 1, 2**63 - 1):
        assert float(larger) == float(larger - 1)
    assert found.index(2**53 + 1) < found.index(2**53)
    assert found.index(2**63 - 2) < found.index(2**63 - 1)


@pytest.mark.parametrize(("dtype", "rounded"), [("int32", torch.float32), ("int64", torch.float64)])
def test_the_extreme_hard_integers_are_found_elsewhere_if_they_are_compared_as_floats(
    dtype: str, rounded: torch.dtype
) -> None:
    found = fills.hard(dtype)
    as_floats = found.to(rounded)
    assert found.argmax() != as_floats.argmax()
    assert found.argmin() != as_floats.argmin()


def test_two_hard_fills_have_every_pair() -> None:
    n = fills.hard("int8").numel()
    first = fills.from_hard("hard/0", STORED, n * n, "int8", 0)
    second = fills.from_hard("hard/1", STORED, n * n, "int8", 0)
    assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == n * n


@pytest.mark.parametrize(
    ("limit", "least", "most"), [("nonzero", None, None), ("positive", 1e-50, None), ("int8", -127, 127)]
)
def test_a_limit_keeps_the_values_that_a_call_allows(limit: str, least: float | None, most: float | None) -> None:
    found = fills.from_hard(f"hard/0/{limit}", STORED, 100, "float32", 0)
    assert 0 not in found.tolist() or limit == "int8"
    assert least is None or float(found.min()) >= least
    assert most is None or float(found.max()) <= most


@pytest.mark.parametrize(
    ("dtype", "word", "number"),
    [
        ("float16", "-inf", float("-inf")),
        ("int8", "min", -128),
        ("uint8", "max", 255),
        ("bool", "0", 0),
        ("int64", "-1", -1),
    ],
)
def test_all_elements_may_have_one_value(dtype: str, word: str, number: float) -> None:
    assert fills.from_hard(f"hard/all/{word}", STORED, 3, dtype, 0).tolist() == [number] * 3


@pytest.mark.parametrize(
    ("dtype", "word"),
    [("int8", "nan"), ("float32", "min"), ("bool", "min"), ("float32", "1"), ("uint8", "-1")],
)
def test_a_value_that_the_dtype_does_not_have_is_an_error(dtype: str, word: str) -> None:
    with pytest.raises(ValueError, match=f"no value '{word}' of {dtype}"):
        fills.from_hard(f"hard/all/{word}", STORED, 3, dtype, 0)


@pytest.mark.parametrize(
    ("fill", "dtype", "known"),
    [("hard/last/1031", "int16", True), ("hard/last/1031", "int8", False), ("hard/all/nan", "int64", False),
     ("hard/0", "int8", True), ("choose", "int8", True)],
)  # fmt: skip
def test_a_dtype_has_the_number_of_a_fill_or_has_it_not(fill: str, dtype: str, known: bool) -> None:
    assert fills.has(fill, dtype) is known


def test_the_last_element_alone_may_have_a_value_of_its_own() -> None:
    found = fills.from_hard("hard/last/-1", torch.tensor([3, 4]), 5, "int64", 0).tolist()
    assert found[-1] == -1
    assert set(found[:-1]) <= {3, 4}


def test_infinite_complex_numbers_have_every_pair_of_parts() -> None:
    made = fills.from_hard("hard/infinite", torch.ones(1), 40, "complex64", 0)
    parts = {tuple(map(str, pair)) for pair in torch.view_as_real(made).tolist()}
    assert parts == {(a, b) for a in ("inf", "-inf", "nan", "1.0") for b in ("inf", "-inf", "nan", "1.0")}


def test_hard_complex_numbers_have_finite_squares() -> None:
    values = fills.hard("complex64")
    assert bool((values * values).isfinite().all())
    assert len(values) > 10


@pytest.mark.parametrize("stored", [STORED, torch.tensor([3, -1, 7])], ids=["floats", "integers"])
def test_values_in_order_go_up_or_down(stored: torch.Tensor) -> None:
    up, down = (fills.from_stored(fill, stored, 100, 0) for fill in ("ascending", "descending"))
    assert bool((up.diff() >= 0).all())
    assert torch.equal(down, up.flip(0))
    assert up[0] < up[-1]


def test_a_sparse_fill_leaves_most_elements_as_they_were_drawn() -> None:
    found = fills.from_hard("hard/sparse", torch.tensor([1.0, 2.0]), 700, "float32", 0)
    assert int(((found > 0.9) & (found <= 2.0)).sum()) >= 600
    assert bool(found.isnan().any())


def test_a_slot_is_filled_in_the_dtype_of_the_cell() -> None:
    values = Values({"float32": STORED})
    slot = TensorSlot(0, "self", (40,), None, False, "float32", 0, fill="jitter", source=4)
    assert values.value(slot, "float32").shape == (40,)
    assert torch.equal(values.value(slot, "bfloat16"), values.value(slot, "float32").bfloat16())
    other = TensorSlot(1, "other", (40,), None, False, "float32", 0, fill="jitter", source=4)
    assert not torch.equal(values.value(slot, "float32"), values.value(other, "float32"))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "complex64"])
def test_padding_leaves_a_few_other_elements_among_them_the_last(dtype: str) -> None:
    stored = torch.tensor([3, 5]).to(getattr(torch, dtype))
    found = fills.from_hard("hard/rare/0", stored, 2000, dtype, 0)
    assert 1 <= int((found != 0).sum()) < 40
    assert bool(found[-1] != 0)


def test_rows_far_from_zero_have_small_deviations() -> None:
    found = fills.from_hard("hard/offset", STORED, 500, "float32", 0)
    assert bool(((found - 100).abs() <= 1).all())
    assert found.unique().numel() > 50


def test_runs_have_all_numbers_below_a_bound_one_after_the_other() -> None:
    stored = torch.tensor([4])
    assert fills.from_stored("runs/3", stored, 7, seed=1).tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert fills.from_stored("runs/3", stored, 0, seed=1).tolist() == []


def test_uniform_values_lie_between_minus_two_and_two_whatever_is_stored() -> None:
    made = fills.from_stored("uniform", STORED, 1000, seed=1)
    assert made.dtype == torch.float32
    assert -2 <= float(made.min()) < -1.9 < 1.9 < float(made.max()) <= 2
    assert torch.equal(made, fills.from_stored("uniform", torch.tensor([5]), 1000, seed=1))


@pytest.mark.parametrize(("fill", "kept"), [("keys/37/3", 1), ("barred/37/3", 0.0)])
def test_each_row_of_a_mask_has_a_key(fill: str, kept: float) -> None:
    rows = fills.from_stored(fill, STORED, 29 * 37, seed=1).view(29, 37) == kept
    assert bool(rows.any(1).all())
    assert 0.25 < float(rows.float().mean()) < 0.45
    alone = fills.from_stored(fill[:-1] + "0", STORED, 29 * 37, seed=1).view(29, 37) == kept
    assert alone.sum(1).tolist() == [1] * 29


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_sweep_has_every_pattern_of_16_leading_bits_and_one_nan(dtype: str) -> None:
    found = fills.from_hard("hard/sweep", STORED, 1 << 16, dtype, 0)
    (number,) = {int(n) for n in bits(found[found.isnan()]).tolist()}
    assert number == int(bits(torch.tensor([float("nan")], dtype=found.dtype))[0])
    behind = 8 * found.element_size() - 16
    leading = (bits(found[~found.isnan()]) >> behind).unique()
    fraction = {"float16": 10, "bfloat16": 7, "float32": 7}[dtype]
    assert leading.numel() >= (1 << 16) - 2 * (1 << fraction)


def test_the_first_numbers_of_a_sweep_are_spread_evenly() -> None:
    found = fills.from_hard("hard/sweep", STORED, 1 << 14, "float32", 0)
    counts = [int(((found > 2.0**n) & (found <= 2.0 ** (n + 1))).sum()) for n in range(-100, 100)]
    assert 24 <= min(counts) <= max(counts) <= 40


def test_a_limited_sweep_has_moderate_numbers_alone() -> None:
    found = fills.from_hard("hard/sweep/moderate", STORED, 1 << 16, "float32", 0).abs()
    assert 2**-20 <= float(found.min()) < float(found.max()) <= 2**8
