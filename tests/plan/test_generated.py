"""Cells of generated samples, sequences of calls, and cases at other sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from conformance.corpus import fills
from conformance.corpus.model import BEYOND_FLOAT, Sample, TensorSlot
from conformance.layouts import AS_STRIDED, SEQUENCE
from conformance.plan import scaled
from conformance.plan.case import Case
from conformance.plan.cases import cases, cells, of_generated
from conformance.plan.sequence_cases import ALIKE, ONE_DOUBLE
from conformance.plan.tiers import TIERS
from conformance.vocabulary import CellId


def bits(values: torch.Tensor) -> torch.Tensor:
    return values.view(torch.uint8)


def sample(name: str, shape: tuple[int, ...] = (3, 4), axis: str = "", fill: str = "", raises: bool = False) -> Sample:
    slot = TensorSlot(0, "self", shape, None, False, "float32", 0, fill=fill, source=12 if fill else 0)
    return Sample(name, "neg", "float32", ("float32", "float64"), (slot,), (), (slot,), raises, axis)


PLAIN = sample("opinfo.neg.1")
LARGE = sample("opinfo.neg.1.self.0=1025", (1025, 4), "sizes", "jitter")
VARIANT = sample("opinfo.neg.1.flag=True", axis="variants")
SAMPLES = (PLAIN, LARGE, VARIANT)


def of(layout: str, dtype: str = "float32", samples: tuple[Sample, ...] = SAMPLES) -> list[Case]:
    return cases(CellId("pointwise_unary", "neg", dtype, layout), samples)


def test_generated_samples_have_their_own_cells() -> None:
    found = {c.layout for c in cells("pointwise_unary", "neg", SAMPLES) if c.dtype == "float32"}
    assert {"contiguous", "sizes", "sizes_gap", "variants", SEQUENCE} <= found
    assert "values" not in found
    assert [c.sample for c in of("contiguous")] == [PLAIN]
    assert [c.sample for c in of("sizes")] == [LARGE]
    assert [p.layout for c in of("sizes_gap") for p in c.placements] == ["offset_gap"]
    assert [c.sample for c in of("variants")] == [VARIANT]
    assert [(c.sample, p.layout) for c in of("variants_strided") for p in c.placements] == [(VARIANT, AS_STRIDED)]


def hard(name: str, fill: str = "hard/0", other: tuple[int, ...] = (16, 5)) -> Sample:
    first = TensorSlot(0, "self", (16, 5), None, False, "float32", 0, fill=fill, source=12)
    second = TensorSlot(1, "other", other, None, False, "float32", 0, fill="jitter", source=12)
    return Sample(name, "equal", "float32", ("float32",), (first, second), (), (first, second), False, "values")


def added(shape: tuple[int, ...], other: tuple[int, ...]) -> Sample:
    """Return a sample with two arguments of generated sizes, and an ``out=`` with the shape of the first argument."""
    one, two = (
        TensorSlot(n, "ab"[n], (shape, other)[n], None, False, "float32", 0, fill="jitter", source=12) for n in range(2)
    )
    out = TensorSlot(2, "out", shape, None, True, "", 0)
    return Sample(
        "opinfo.add.1.all", "add.out", "float32", ("float32",), (one, two), (), (one, two, out), False, "sizes"
    )


def test_of_square_matrices_each_argument_alone_lies_along_its_columns() -> None:
    cell = CellId("pointwise_binary", "add.out", "float32", "sizes_strided")
    drawn, *turned = cases(cell, [added((2, 37, 37), (37, 37))])
    assert drawn.variant == "draw"
    strides = {case.variant: [p.stride for p in case.placements] for case in turned}
    assert strides == {
        "a": [(1369, 1, 37), (37, 1), (1369, 37, 1)],
        "b": [(1369, 37, 1), (1, 37), (1369, 37, 1)],
        "out": [(1369, 37, 1), (37, 1), (1369, 1, 37)],
    }
    assert [c.variant for c in cases(cell, [added((2, 36, 37), (36, 37))])] == ["draw"]
    assert [c.variant for c in cases(replace(cell, layout="sizes_gap"), [added((37, 37), (37, 37))])] == [""]


def test_an_argument_with_all_hard_values_is_given_as_another_one_too() -> None:
    cell = CellId("pointwise_binary", "equal", "float32", "values")
    plain, same = cases(cell, [hard("opinfo.equal.1.hard=self")])
    assert (plain.variant, plain.shared) == ("", ())
    assert (same.variant, same.shared) == ("self=other", ((1, 0, 0),))
    others = [
        hard("opinfo.equal.1.hard=self", other=(5,)),
        hard("opinfo.equal.1.hard=self.nan", "hard/all/nan"),
        hard("opinfo.equal.1.hard=self.alpha=2"),
    ]
    assert [c.variant for c in cases(cell, others)] == ["", "", ""]


def test_a_generated_sample_without_tensors_has_cells_of_contiguous_layouts() -> None:
    larger = Sample("own.zeros.1.size=1025", "zeros", "float32", ("float32",), ((1025,),), (), (), False, "sizes")
    assert {c.layout for c in cells("factory", "zeros", [larger])} == {"sizes"}
    assert [c.sample for c in of("sizes", samples=(larger,))] == [larger]
    assert of("sizes_gap", samples=(larger,)) == []


def test_cells_of_samples_that_are_not_read_are_those_of_the_samples() -> None:
    names = ("sizes", "sizes_strided", "variants", "variants_strided")
    known = {name: ["float32", "float64"] for name in names} | {"sizes_gap": ["float32"]}
    for tier in (TIERS["full"], TIERS["smoke"]):
        given = cells("pointwise_unary", "neg", SAMPLES, tier)
        assert cells("pointwise_unary", "neg", [PLAIN], tier, known) == given
    assert known == {name: list(own) for s in (LARGE, VARIANT) for name, own in of_generated(s).items()}


def test_sizes_with_gaps_are_tried_in_the_first_dtype_alone() -> None:
    assert [c.sample for c in of("sizes_gap")] == [LARGE]
    assert of("sizes_gap", "float64") == []
    assert [c.sample for c in of("sizes", "float64")] == [LARGE]


IMAGE = sample("opinfo.neg.1.channels=2x33x5x7", (2, 33, 5, 7), "sizes", "jitter")


def test_generated_images_have_channels_innermost_with_an_offset_and_as_a_slice() -> None:
    inside, part = of("sizes_channels_last", samples=(PLAIN, LARGE, IMAGE))
    assert (inside.sample, inside.variant, inside.placements[0].layout) == (IMAGE, "offset", "channels_last")
    assert (inside.placements[0].stride[1:], inside.placements[0].offset) == ((1, 7 * 33, 33), 33)
    assert (part.sample, part.variant, part.placements[0].layout) == (IMAGE, "slice", "channel_slice")
    assert part.placements[0].stride[1:] == (1, 7 * 36, 36)


@pytest.mark.parametrize("shape", [(2, 7, 5, 7), (2, 33, 1, 7), (0, 33, 5, 7), (2, 33, 70), (2, 64, 100, 100)])
def test_other_sizes_have_no_channels_innermost(shape: tuple[int, ...]) -> None:
    other = sample("opinfo.neg.1.other", shape, "sizes", "jitter")
    assert of("sizes_channels_last", samples=(other,)) == []
    assert "sizes_channels_last" not in of_generated(other)


def test_channels_innermost_are_tried_in_the_first_floating_dtype_and_in_bfloat16() -> None:
    halves = replace(IMAGE, dtypes=("float32", "float16", "bfloat16", "float64"))
    integers = replace(IMAGE, base="int64", dtypes=("int64", "int8"))
    assert of_generated(halves)["sizes_channels_last"] == ("float32", "bfloat16")
    assert of_generated(replace(halves, dtypes=("int64", "float64")))["sizes_channels_last"] == ("float64",)
    assert "sizes_channels_last" not in of_generated(integers)
    assert not of("sizes_channels_last", "float16", (halves,))


def test_a_case_at_another_size_keeps_its_variant() -> None:
    cases_ = of("sizes_channels_last", samples=(IMAGE,))
    assert [scaled.at_size(case, 40).variant for case in cases_] == ["offset", "slice"]


def test_half_of_the_complex_arguments_with_drawn_strides_are_conjugated() -> None:
    slots = tuple(TensorSlot(i, f"t{i}", (3, 4), None, i == 0, "complex64", 0) for i in range(3))
    many = [Sample(f"own.addcmul.{i}", "addcmul", "complex64", ("complex64",), slots, (), slots) for i in range(100)]
    found = [c.placements for c in cases(CellId("f", "addcmul", "complex64", AS_STRIDED), many)]
    assert {written.bit for written, *_ in found} == {""}
    conjugated = sum(p.bit == "conj" for _, *read in found for p in read)
    assert 0.35 * 200 < conjugated < 0.65 * 200
    real = cases(CellId("f", "addcmul", "float32", AS_STRIDED), [replace(s, dtypes=("float32",)) for s in many])
    assert {p.bit for c in real for p in c.placements} == {""}


def test_a_drawn_placement_depends_on_the_sample_and_the_dtype_alone() -> None:
    assert of(AS_STRIDED) == of(AS_STRIDED)
    assert [c.variant for c in of(AS_STRIDED)] == ["draw"]
    assert of(AS_STRIDED)[0].placements != of(AS_STRIDED, "float64")[0].placements


def test_small_generated_samples_of_many_dimensions_get_drawn_placements_too() -> None:
    deep = sample("opinfo.neg.1.rank=6", (2, 1, 3, 2, 2, 2), "sizes", "jitter")
    large = sample("opinfo.neg.1.self.0=65537", (65537, 1, 2), "sizes", "jitter")
    found = of(AS_STRIDED, samples=(PLAIN, LARGE, VARIANT, deep, large))
    assert [c.sample for c in found] == [PLAIN, deep]


def test_a_sequence_has_an_earlier_call_that_differs_in_one_thing() -> None:
    found = {c.variant: c for c in of(SEQUENCE)}
    assert set(found) == {
        "after=transposed", "after=offset_gap", "after=expanded", "after=float64", f"after={VARIANT.name}",
        "after=sizes", f"after={PLAIN.name}",
    }  # fmt: skip
    other_way = found.pop(f"after={PLAIN.name}")
    assert (other_way.sample, other_way.before[0].sample) == (VARIANT, PLAIN)
    assert all(c.sample == PLAIN and c.placements[0].layout == "contiguous" for c in found.values())
    assert found["after=transposed"].before[0].placements[0].layout == "transposed"
    assert found["after=float64"].before[0].cell.dtype == "float64"
    assert found["after=sizes"].before[0].sample == LARGE


def test_a_sequence_may_begin_with_a_call_that_raises() -> None:
    refused = sample("opinfo.neg.1.dim=9", axis="variants", raises=True)
    found = {c.variant: c for c in of(SEQUENCE, samples=(PLAIN, refused))}
    assert found["after=error"].before[0].sample == refused


def test_the_variants_in_sequences_are_of_each_argument_in_turn() -> None:
    several = [f"dim={n}" for n in range(-1, 12)]
    names = sorted([*several, "dim=0.keepdim=True", "keepdim=True", "p=0.5", "p=1"])
    variants = tuple(sample(f"{PLAIN.name}.{name}", axis="variants") for name in names)
    found = [c.variant.removeprefix(f"after={PLAIN.name}.") for c in of(SEQUENCE, samples=(PLAIN, *variants))]
    behind = [name for name in found if "=" in name and not name.startswith("after=")]
    assert behind[:5] == ["dim=-1", "keepdim=True", "p=0.5", "dim=0", "p=1"]
    assert len(behind) == 12
    assert "dim=0.keepdim=True" not in behind  # differs in two arguments


def test_samples_with_variants_are_preferred_in_sequences() -> None:
    others = tuple(sample(f"opinfo.neg.0{i}") for i in range(3))
    assert PLAIN in {c.sample for c in of(SEQUENCE, samples=(*others, *SAMPLES))}


def test_a_sequence_has_numbers_that_are_equal_or_that_a_text_of_few_digits_spells_alike() -> None:
    numbered = replace(PLAIN, args=(*PLAIN.args, 0.5, (2.0, 3)))
    found = [c for c in of(SEQUENCE, samples=(PLAIN, numbered)) if ".floats=" in c.sample.name]
    assert [(c.sample.args[-2:], c.before[0].sample.args[-2:]) for c in found] == [
        ((one, (one, 3)), (other, (other, 3))) for one, other in ALIKE
    ]
    for case in found:
        one, other = case.sample.args[-2], case.before[0].sample.args[-2]
        assert repr(one) != repr(other)
        assert one == other or f"{one:f}" == f"{other:f}" or f"{one:g}" == f"{other:g}"


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_sequence_has_numbers_on_the_host_that_may_be_taken_for_each_other(dtype: str) -> None:
    number = TensorSlot(1, "other", (), None, False, "float32", 0, on_host=True)
    count = replace(number, index=2, name="sections", dtype="int64")
    given = replace(PLAIN, args=(*PLAIN.args, number, count), tensors=(*PLAIN.tensors, number, count), dtypes=(dtype,))
    (found,) = [c for c in of(SEQUENCE, dtype, samples=(given,)) if ".other=" in c.sample.name]
    assert found.sample.tensors[2] == count
    words = (found.sample.tensors[1].fill, found.before[0].sample.tensors[1].fill)
    one, other = (fills.from_hard(word, torch.ones(1), 1, dtype, 0) for word in words)
    assert float(one) == float(other)
    assert bits(one).tolist() != bits(other).tolist()


def test_a_sequence_has_integers_that_are_one_double_in_place_of_numbers() -> None:
    numbered = replace(PLAIN, args=(*PLAIN.args, 3, (BEYOND_FLOAT,)), dtypes=("int64",), axis="variants")
    found = [c for c in of(SEQUENCE, "int64", samples=(numbered,)) if ".then=" in c.sample.name]
    pairs = [(c.sample.args[1:], c.before[0].sample.args[1:]) for c in found]
    assert pairs == [((3, (one,)), (3, (other,))) for one, other in ONE_DOUBLE]
    assert all(float(one) == float(other) and one != other for one, other in ONE_DOUBLE)


def test_a_number_without_a_tensor_is_no_large_integer() -> None:
    numbered = replace(PLAIN, args=(BEYOND_FLOAT,), tensors=(), dtypes=("int64",), axis="variants")
    assert not [c for c in of(SEQUENCE, "int64", samples=(numbered,)) if ".then=" in c.sample.name]


def test_a_float_sample_has_sequences_in_float32_alone() -> None:
    assert {c.dtype for c in cells("pointwise_unary", "neg", SAMPLES) if c.layout == SEQUENCE} == {"float32"}


def test_a_case_of_a_generated_size_can_be_made_at_another_size() -> None:
    (case,) = of("sizes_gap")
    assert scaled.size(case) == 1025
    small = scaled.at_size(case, 17)
    assert small.placements[0].size == (17, 4)
    assert small.placements[0].layout == "offset_gap"
    assert small.id != case.id


def test_indices_of_a_resized_case_stay_below_the_new_size() -> None:
    index = TensorSlot(1, "index", (5,), "int64", False, "int64", 0, fill="below/1025", source=2)
    large = Sample("x", "index_select", "float32", ("float32",), (LARGE.tensors[0], 0, index), (),
                   (LARGE.tensors[0], index), axis="sizes")  # fmt: skip
    (case,) = cases(CellId("indexing", "index_select", "float32", "sizes"), [large])
    assert scaled.at_size(case, 17).sample.tensors[1].fill == "below/17"


def test_a_case_of_a_recorded_sample_has_no_generated_size() -> None:
    (case,) = of("contiguous")
    assert scaled.size(case) == 0
