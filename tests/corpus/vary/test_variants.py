"""Samples with other arguments."""

from __future__ import annotations

import pytest

from conformance.corpus.drafts import SEED
from conformance.corpus.model import ComplexArg, DtypeArg, GeneratorArg, Sample
from conformance.corpus.vary.variants import PAIRS, generate, of_other_ranks
from tests.generated import corpus, made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def changed(overload: str) -> set[str]:
    """Return the replacements in the samples of an overload, each as the argument and its value."""
    return {s.name.partition(".")[2].rpartition(".")[2] if "=" in s.name else s.name for s in made(overload)}


def test_every_flag_is_tried_both_ways() -> None:
    flags = {s.args[2] for s in (*made("sum.dim_IntList"), *corpus().samples("sum.dim_IntList")) if len(s.args) > 2}
    assert flags == {True, False}


def test_every_dimension_is_tried_from_both_ends_and_one_too_far_raises() -> None:
    found = [s for s in made("_softmax") if len(s.tensors[0].shape) == 3]
    dims = {s.args[1]: s.raises for s in found if s.args[1] in range(-4, 4)}
    assert dims[3]
    assert dims[-4]
    assert not any(dims[d] for d in (-3, -2, 0, 1, 2) if d in dims)
    assert len(dims) >= 6


def test_an_optional_dtype_is_given_and_left_out() -> None:
    given = {a.name for s in made("sum.dim_IntList") for _, a in s.kwargs if isinstance(a, DtypeArg)}
    assert {"float64", "bfloat16", "int32"} <= given


def test_a_generator_is_given() -> None:
    given = [a for s in made("bernoulli_.float") for _, a in s.kwargs if isinstance(a, GeneratorArg)]
    assert given
    assert any(s.name.endswith(f".generator={SEED}") for s in made("bernoulli_.float"))


@pytest.mark.parametrize(
    "label", ["other=host_scalar", "self=host_scalar", "other=host_scalar_float64", "other=float64", "other=bool"]
)
def test_an_operand_may_have_another_dtype_or_lie_on_the_host(label: str) -> None:
    assert any(s.name.endswith(label) for s in made("add.Tensor"))


def test_an_operand_may_have_another_dtype_and_be_broadcast() -> None:
    rows = [s for s in made("add.Tensor") if s.name.endswith("other=row_int64")]
    assert rows
    assert all(len(s.tensors[0].shape) > len(s.tensors[1].shape) == 1 for s in rows)
    assert {s.tensors[1].dtype for s in rows} == {"int64"}


def test_a_row_without_a_batch_has_each_reduction_with_and_without_weights() -> None:
    found = [s for s in made_by(of_other_ranks, "nll_loss_forward.output") if len(s.tensors[0].shape) == 1]
    given = {(s.args[2] is not None, s.args[3]) for s in found}
    assert {(True, 0), (True, 1), (False, 1)} <= given


def test_integers_are_taken_to_a_power_past_what_float64_holds() -> None:
    assert any(s.base == "int64" and s.name.endswith("exponent=7") for s in made("pow.Tensor_Scalar_out"))


def test_floats_beside_integers_are_no_whole_numbers() -> None:
    found = [t for s in made("clamp.Tensor") for t in s.tensors if s.base == "int64" and t.dtype == "float64"]
    assert found
    drawn = [corpus().value(t, "int64").view(-1) for t in found if t.shape]
    assert all((v != v.trunc()).all() for v in drawn)


def test_complex_samples_have_other_arguments_too_and_no_pairs() -> None:
    found = [s.name for s in made("add.Tensor") if s.base == "complex64"]
    assert any(name.endswith(".alpha=2") for name in found)
    assert {name.count("=") for name in found} == {1}


def test_the_first_operand_of_a_composed_op_stays_on_the_device() -> None:
    hosts = {t.name for s in made("logical_and") for t in s.tensors if t.on_host}
    assert hosts == {"other"}


def test_of_more_than_two_operands_none_lies_on_the_host() -> None:
    assert not any(t.on_host for s in made("addcmul") for t in s.tensors)


def test_a_factory_stays_on_the_device() -> None:
    names = [s.name for s in made("empty.memory_format")]
    assert not any("device=" in name or "pin_memory=" in name for name in names)
    assert any(name.endswith("dtype=int32") for name in names)


def test_a_scalar_is_tried_as_every_python_number() -> None:
    found = {type(s.args[1]) for s in made("mul.Scalar")}
    assert {int, float, bool, ComplexArg} <= found


def test_no_variant_repeats_a_sample() -> None:
    calls = [repr((s.base, s.args, s.kwargs)) for s in made("add.Tensor")]
    assert len(calls) == len(set(calls))


def test_two_arguments_change_together() -> None:
    names = {s.name for s in made("topk")}
    assert any("k=1" in name and "largest=False" in name for name in names)
    assert any("dim=" in name and "keepdim=" in name for name in {s.name for s in made("sum.dim_IntList")})


def test_a_count_of_one_meets_other_values_of_the_other_arguments() -> None:
    names = {s.name.partition(".k=")[2] for s in made("topk")}
    assert "1.largest=False" in names
    assert any(name.startswith("1.dim=") for name in names)


def test_an_exponent_that_float32_rounds_to_an_even_one_is_tried_where_nothing_rounds_it() -> None:
    tried = [s for s in made("pow.Tensor_Scalar") if s.name.endswith(f"exponent={2**24 + 1}")]
    assert {d for s in tried for d in s.dtypes} <= {"float64", "int64"}
    assert any(s.name.endswith(f"value={2**24 + 1}") and s.base == "int64" for s in made("addcmul"))


def test_pairs_are_few_and_take_turns_between_the_arguments() -> None:
    pairs = [s.name for s in made("topk") if s.name.count("=") == 2 and s.base == "float32"]
    sources = {name.partition("=")[0] for name in pairs}
    assert 0 < len(pairs) <= PAIRS * len(sources)


def test_a_number_that_the_dtype_cannot_hold_is_refused_where_it_is_written() -> None:
    refused = {(s.args[1], d) for s in made("fill_.Scalar") if s.raises for d in s.dtypes}
    assert {(300, "int8"), (-70000, "int8")} <= refused
    assert not any(s.raises for s in made("eq.Scalar"))


@pytest.mark.parametrize(
    ("overload", "argument"),
    [
        ("where.self", "condition"),
        ("where.self", "other"),
        ("index_put", "values"),
        ("index_fill.int_Tensor", "value"),
    ],
)
def test_an_argument_that_torch_brings_to_the_device_may_be_a_number_on_the_host(overload: str, argument: str) -> None:
    assert argument in {t.name for s in made(overload) for t in s.tensors if t.on_host}


def test_a_number_on_the_host_has_another_dtype_of_the_width_of_the_cells() -> None:
    hosts = {(t.dtype, d) for s in made("mul.Tensor") for t in s.tensors if t.on_host for d in s.dtypes}
    assert {("int32", "float32"), ("float64", "int64")} <= hosts


def test_a_flag_goes_with_a_number_on_the_host() -> None:
    crossed = [s for s in made("index_put_") if s.name.endswith("accumulate=True.values=host_scalar")]
    assert crossed
    assert all((*s.args[3:], *dict(s.kwargs).values()) == (True,) for s in crossed)


def test_a_number_on_the_host_is_tried_at_its_largest() -> None:
    (sample, *_) = (s for s in made("mul.Tensor") if s.name.endswith("other=host_scalar_largest"))
    (slot,) = (t for t in sample.tensors if t.on_host)
    assert int(corpus().value(slot, "float32")) == 2**63 - 1


@pytest.mark.parametrize(
    ("overload", "label", "raises"),
    [
        ("index_select", "index=int32", False),
        ("take", "index=int32", True),
        ("masked_fill_.Scalar", "mask=uint8", True),
    ],
)
def test_an_index_or_a_mask_of_another_dtype_runs_or_must_be_refused(overload: str, label: str, raises: bool) -> None:
    assert {s.raises for s in made(overload) if s.name.endswith(label)} == {raises}


def test_an_integer_is_tried_that_32_bits_do_not_hold_unless_it_is_an_enumeration() -> None:
    assert any(2**40 in s.args for s in made("random_.to"))
    assert not any("reduction=1099511627776" in s.name for s in made("nll_loss_forward"))


def test_numbers_that_torch_refuses_without_memory_too_must_raise() -> None:
    refused = [s for s in made("addr") if s.raises and ".alpha=0.5" in s.name]
    assert {s.base for s in refused} == {"int64"}


def test_operands_of_another_shape_must_raise_where_torch_says_so_without_memory_too() -> None:
    refused = {s.name.rpartition(".")[2] for s in made("native_layer_norm") if s.raises}
    assert {"bias=turned", "weight=longer"} <= refused


def test_half_precision_stands_beside_float32() -> None:
    mixed = [s for s in made("native_layer_norm") if "others=float32" in s.name]
    assert {s.dtypes for s in mixed} == {("bfloat16",)}
    assert all(t.dtype == "float32" for s in mixed for t in s.tensors[1:])


def test_results_are_asked_for_in_every_combination() -> None:
    masks = {s.args[7] for s in made("native_layer_norm_backward") if "output_mask=" in s.name}
    assert len(masks) >= 7


def test_bfloat16_stands_beside_no_complex_number() -> None:
    beside = [s for s in made("where.self") if s.name.endswith("=complex64")]
    assert beside
    assert not any("bfloat16" in s.dtypes for s in beside)


def test_a_mask_of_bytes_has_others_than_0_and_1() -> None:
    found = [s for s in made("where.self") if s.name.endswith("condition=bytes")]
    assert found
    for sample in found:
        condition = corpus().value(sample.tensors[0], "uint8")
        assert {0, 2} <= set(condition.view(-1).tolist())
    assert not any(s.name.endswith("mask=bytes") for s in made("masked_fill.Tensor"))  # which takes no byte mask


def test_a_tensor_has_another_shape_where_cpu_takes_it() -> None:
    sources = {(s.tensors[1].shape, s.tensors[2].shape) for s in made("put_") if not s.raises}
    assert {((3, 1), (3,)), ((3,), (3, 1))} <= sources
    assert not any(s.raises for s in made("put_") if s.name.endswith(("=column", "=flat")))


def test_a_word_is_every_one_that_an_op_of_the_family_takes() -> None:
    assert any(s.name.endswith("reduce=multiply") and not s.raises for s in made("scatter.value_reduce"))


@pytest.mark.parametrize("overload", ["linalg_vector_norm", "dist", "renorm"])
def test_the_order_of_a_norm_may_be_infinite(overload: str) -> None:
    assert any(s.name.endswith(("ord=inf", "p=inf")) and not s.raises for s in made(overload))


def test_a_composite_that_autocast_knows_has_operands_of_other_dtypes_and_nothing_else() -> None:
    found = {s.name.rpartition(".")[2] for s in made("scaled_dot_product_attention")}
    assert "attn_mask=bool" in found
    assert all(name.startswith(("key=", "value=", "attn_mask=", "others=float32_")) for name in found)
    assert not made("masked_select_backward")  # a composite without a rule of autocast


def test_numbers_beside_no_dims_stay_as_they_are() -> None:
    """Without dims, ``roll`` treats all elements as one row."""
    flat = [s for s in made("roll") if s.name.endswith("dims=empty")]
    assert flat
    assert all(not s.raises and s.args[1:] == ((5,), ()) for s in flat if s.args[1] == (5,))
    assert any(s.args[1] == (5,) for s in flat)
