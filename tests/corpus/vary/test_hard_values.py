"""Samples with hard values."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from conformance.corpus import fills
from conformance.corpus.model import Sample
from conformance.corpus.vary import generation
from conformance.corpus.vary.hard_values import generate
from conformance.corpus.vary.trial import Trials
from conformance.inventory import inventory
from tests.generated import corpus, failing, made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def made_in_a_child(overload: str) -> list[Sample]:
    """Return the samples of ``made``, made in a child. If CPU's kernel kills the child, the sample is left out."""
    (known,) = (o for o in inventory("CPU") if o.name == overload)

    def make(overload: str, trials: Trials) -> Iterator[Sample]:
        yield from generate(known, corpus().samples(overload), trials.untimed(), corpus())

    ((_, samples),) = generation.generate([overload], corpus(), make, 1)
    return list(samples or ())


def values(sample: Sample, name: str, dtype: str) -> torch.Tensor:
    (slot,) = (t for t in sample.tensors if t.name == name)
    return corpus().value(slot, dtype)


def test_a_pointwise_op_gets_every_pair_of_hard_values() -> None:
    (pairs,) = (s for s in made("add.Tensor") if s.name.endswith("hard=selfxother") and s.base == "float32")
    for dtype in pairs.dtypes:
        a, b = (values(pairs, name, dtype).view(-1, 1) for name in ("self", "other"))
        a, b = (t.view(torch.uint8).view(t.numel(), -1) for t in (a, b))
        n = fills.hard(dtype).numel()
        assert torch.cat((a, b), 1).unique(dim=0).shape[0] == n * n


def test_tensors_that_were_recorded_to_broadcast_get_every_pair_of_hard_values() -> None:
    """Numbers beside hard values have the values of their own slot, and not the values stored behind it."""
    found = {s.name.rpartition("hard=")[2]: s for s in made("hypot")}
    assert found.keys() == {"self", "other", "selfxother"}
    assert all(len({t.shape for t in s.tensors}) == 1 for s in found.values())
    source = next(s for s in corpus().samples("hypot") if s.name == found["self"].name.rpartition(".")[0])
    (stored,) = (corpus().value(t, "float32") for t in source.tensors if t.name == "other")
    beside = values(found["self"], "other", "float32")
    assert float(beside.abs().max()) <= 1.1 * float(stored.abs().max())


def test_an_op_of_tensors_that_broadcast_that_is_wrong_for_infinity_is_found() -> None:
    def wrong(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a * a + b * b).sqrt()  # NaN for (inf, NaN); infinite where a square overflows

    op = torch.ops.aten.hypot.default
    assert not failing(op, wrong, corpus().samples("hypot"))
    found = [s for s in made("hypot") if not s.name.endswith("hard=self")]  # also a case with one tensor twice
    assert failing(op, wrong, found)
    assert not failing(op, op, found)


def test_a_pointwise_op_of_one_tensor_gets_hard_values_in_many_elements_too() -> None:
    (many,) = (s for s in made("exp") if s.name.endswith(".many") and s.base == "float32")
    assert many.dtypes == ("float32", "bfloat16")
    assert many.tensors[0].numel >= 5003
    assert values(many, "self", "float32").view(-1)[4096:].isnan().any()
    assert not [s for o in ("add.Tensor", "sum.dim_IntList") for s in made(o) if s.name.endswith(".many")]


def test_a_reduction_keeps_most_rows_free_of_nan() -> None:
    (sample, *_) = (s for s in made("sum.dim_IntList") if s.base == "float32")
    (slot,) = sample.tensors
    assert slot.fill == "hard/sparse"
    assert 0 < float(values(sample, "self", "float32").isnan().float().mean()) < 0.01


def test_whole_numbers_that_float32_does_not_hold_meet_their_neighbours() -> None:
    numbers = [s for s in made("isin.Tensor_Scalar") if s.name.endswith("hard=elements.test_element=16777217")]
    assert {s.base for s in numbers} >= {"int64"}
    (elements,) = (values(s, "elements", "int64") for s in numbers if s.base == "int64")
    assert {2**24, 2**24 + 1} <= set(elements.view(-1).tolist())


def test_complex_samples_have_hard_values_and_infinities_where_nothing_is_computed() -> None:
    overloads = ("mul.Tensor", "neg", "eq.Tensor")
    kinds = {o: {s.tensors[0].fill for s in made(o) if s.base == "complex64"} for o in overloads}
    assert all("hard/0" in of for of in kinds.values())
    assert {o for o, of in kinds.items() if "hard/infinite" in of} == {"neg", "eq.Tensor"}


def test_a_divisor_of_integers_is_never_zero() -> None:
    found = [s for s in made_in_a_child("div.Tensor_mode") if s.base == "int64" and s.tensors[1].fill]
    assert found
    assert all((values(s, "other", d) != 0).all() for s in found for d in s.dtypes)


def test_floats_that_an_integer_cannot_hold_are_not_converted_to_it() -> None:
    for s in made("_to_copy"):
        dtype = dict(s.kwargs).get("dtype")
        if s.base == "float32" and getattr(dtype, "name", None) in ("int8", "int32", "int64", "uint8"):
            assert all(values(s, "self", d).abs().max() < 2**63 for d in s.dtypes)


def test_every_dtype_has_limits_of_its_own() -> None:
    (sample, _) = (s for s in made("neg") if s.base == "float32")  # the other sample has many elements
    assert float(values(sample, "self", "float16").nan_to_num(0, 0, 0).max()) == 65504.0
    assert torch.isfinite(values(sample, "self", "float64")).any()


def test_an_argument_of_a_pointwise_op_changes_while_every_element_is_hard() -> None:
    (sample,) = (s for s in made("logit") if s.base == "float32" and s.name.endswith("hard=self.eps=0.0"))
    assert bool((values(sample, "self", "float32") > 1).any())
    names = {s.name.rpartition("hard=")[2] for s in made("nan_to_num")}
    assert {"self.posinf=0.0", "self.neginf=0.0"} <= names


def test_infinities_are_multiplied_by_a_number_that_is_zero() -> None:
    found = [s for s in made("addcmul") if s.name.endswith("hard=tensor1.value=0") and s.base == "float32"]
    assert found
    assert bool(values(found[0], "tensor1", "float32").isinf().any())


def test_numbers_are_converted_to_narrow_floats_below_their_normal_numbers() -> None:
    (sample,) = (s for s in made("_to_copy") if "dtype=float8_e4m3fn" in s.name and s.base == "float32")
    narrow = values(sample, "self", "float32").to(torch.float8_e4m3fn).float().abs()
    assert bool(((narrow > 0) & (narrow < 2**-6)).any())


def test_rows_of_one_value_alone_are_tried_where_an_op_is_not_pointwise() -> None:
    found = {s.name.rpartition("hard=")[2] for s in made("_softmax")}
    assert {"self", "self.-inf", "self.inf", "self.nan", "self.0"} <= found
    assert any(s.tensors[0].fill.startswith("hard/sparse") for s in made("_softmax"))
    assert not any("hard/all" in t.fill for s in made("neg") for t in s.tensors)


def test_a_copy_converts_every_dtype_to_every_other_one() -> None:
    pairs = {(t.dtype, d) for s in made("copy_") for t in s.tensors if t.fill for d in s.dtypes if t.name == "src"}
    for source in ("bool", "uint8", "int64", "float16", "float32", "float64", "complex64"):
        for target in ("bool", "int8", "int64", "float16", "bfloat16", "float32", "complex64"):
            if source != target:
                assert (source, target) in pairs


def test_a_number_that_half_cannot_hold_is_tried_in_other_dtypes() -> None:
    found = [s for s in made("logit") if s.name.endswith("=1e+30")]
    assert found
    assert not any("float16" in s.dtypes for s in found)


def test_a_reduction_meets_nan_with_other_arguments_too() -> None:
    assert any(s.name.endswith("hard=self.sparse.ord=inf") for s in made("linalg_vector_norm"))


def test_an_index_out_of_bounds_and_nan_are_tried_in_tensors_of_other_ranks() -> None:
    found = [s for s in made("gather") if s.base == "float32"]
    refused = {len(s.tensors[0].shape) for s in found if s.name.endswith("hard=index.-1.refused")}
    sparse = {len(s.tensors[0].shape) for s in found if s.name.endswith("hard=self.sparse")}
    assert len(refused) == len(sparse) == 3


def test_nan_is_tried_along_the_first_and_the_last_dimension() -> None:
    found = [s for s in made("cumsum") if s.base == "float32" and s.name.endswith("hard=self.sparse")]
    assert {(len(s.tensors[0].shape), s.args[1]) for s in found} >= {(3, 1), (2, 1), (1, -1)}


def test_a_pointwise_op_has_one_sample_with_hard_values_in_an_argument() -> None:
    sources = {s.name.partition(".hard=")[0] for s in made("add.Tensor") if s.base == "float32"}
    assert len(sources) == 1


def test_an_argument_of_integers_has_one_large_count() -> None:
    found = [s for s in made("repeat_interleave.Tensor") if s.name.endswith(".last.1031")]
    assert any("int64" in s.dtypes for s in found)
    assert not any("int8" in s.dtypes or "uint8" in s.dtypes for s in found)
    assert not any(s.name.endswith(".last.1031") for s in made("gather"))


def test_hard_values_lie_in_long_rows_of_each_dimension() -> None:
    long = [s for s in made("sort.values_stable") if s.base == "int64" and "hard=self.self." in s.name]
    rank = len(long[0].tensors[0].shape)
    assert {max(range(rank), key=s.tensors[0].shape.__getitem__) for s in long} == set(range(rank))
    assert all(max(s.tensors[0].shape) > 1024 for s in long)


def test_flags_are_turned_where_hard_values_lie_in_long_rows() -> None:
    long = [s for s in made("topk") if s.base == "float32" and s.tensors[0].shape[-1] > 1024]
    assert {dict(s.kwargs).get("largest") for s in long if s.tensors[0].fill == "hard/sparse"} == {None, True, False}


def test_the_largest_numbers_are_reduced_in_a_wider_dtype_that_is_asked_for() -> None:
    (whole,) = (s for s in made("prod.int_out") if s.name.endswith(".max.dtype=int64"))
    assert {"int8", "int32"} <= set(whole.dtypes)
    assert whole.tensors[1].dtype == "int64"
    assert bool((values(whole, "self", "int8") == 127).all())


def test_a_tensor_of_one_number_is_hard() -> None:
    found = {(s.base, t.fill) for s in made("masked_fill.Tensor") for t in s.tensors if t.name == "value" and t.fill}
    assert {("int64", "hard/all/max"), ("int64", "hard/all/min"), ("float32", "hard/all/nan")} <= found


def test_complex_numbers_that_are_not_finite_meet_other_arguments() -> None:
    names = [s.name for s in made("masked_fill.Scalar") if s.base == "complex64"]
    assert any(".infinite.value=" in name for name in names)


def test_a_flag_is_turned_while_an_argument_is_infinite() -> None:
    found = [s for s in made("logsumexp") if ".inf.keepdim=" in s.name]
    assert found
    assert all(s.tensors[0].fill == "hard/all/inf" for s in found)
