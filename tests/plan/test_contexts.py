"""Cells and cases of contexts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from conformance import backends
from conformance.contexts import CONTEXTS as CONTEXTS_CLASSES
from conformance.corpus.model import Sample, TensorSlot
from conformance.layouts import CONTEXTS
from conformance.plan.case import Case
from conformance.plan.cases import cases, cells
from conformance.plan.context_cases import SAMPLES
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.vocabulary import CellId


def sample(name: str, dtypes: tuple[str, ...] = ("float64", "float32"), raises: bool = False) -> Sample:
    slot = TensorSlot(0, "self", (3, 4), None, False, "float32", 0)
    return Sample(name, "neg", dtypes[0], dtypes, (slot,), (), (slot,), raises)


PLAIN, REFUSED = sample("opinfo.neg.1"), sample("opinfo.neg.2", raises=True)


def of(context: str, *samples: Sample, dtype: str = "float32") -> list[Case]:
    return cases(CellId("pointwise_unary", "neg", dtype, context), samples)


def dtypes_of(context: str, *samples: Sample, dtypes: frozenset[str] | None = None) -> list[str]:
    tier = replace(TIERS["wide"], dtypes=dtypes)
    return [c.dtype for c in cells("pointwise_unary", "neg", samples, tier) if c.layout == context]


def test_an_overload_has_a_cell_of_one_dtype_in_each_context() -> None:
    found = [c.layout for c in cells("pointwise_unary", "neg", [PLAIN]) if c.layout in CONTEXTS]
    assert set(found) == set(CONTEXTS) - {"default_dtype"}
    assert dtypes_of("thread", PLAIN) == ["float32"]
    assert dtypes_of("thread", sample("a", ("uint8", "int8"))) == ["int8"]


def test_the_default_dtype_is_tried_with_integers_alone() -> None:
    assert dtypes_of("default_dtype", sample("a", ("float32", "int64"))) == ["int64"]


def test_autocast_has_cells_of_what_it_lowers_to_and_of_what_it_must_not_lower() -> None:
    several = sample("a", ("float32", "bfloat16", "float64", "int64"))
    assert sorted(dtypes_of("autocast", several)) == ["bfloat16", "float32", "float64"]


def test_gradients_are_taken_in_half_precision_and_of_complex_numbers_too() -> None:
    several = sample("a", ("float32", "float16", "bfloat16", "float64", "complex64"))
    for context in ("backward", "forward_ad"):
        assert sorted(dtypes_of(context, several)) == ["bfloat16", "complex64", "float32"]


def test_the_dtype_of_a_context_does_not_depend_on_the_selection() -> None:
    assert dtypes_of("thread", PLAIN, dtypes=frozenset({"float64"})) == []
    assert dtypes_of("thread", PLAIN, dtypes=frozenset({"float32"})) == ["float32"]


def test_a_context_calls_some_contiguous_samples_that_do_not_raise() -> None:
    (case,) = of("thread", PLAIN, REFUSED, replace(PLAIN, name="opinfo.neg.3", axis="sizes"))
    assert (case.sample, case.variant, case.placements[0].layout) == (PLAIN, "", "contiguous")
    assert len(of("thread", *(sample(f"opinfo.neg.{i}") for i in range(20)))) == SAMPLES


def test_autocast_also_meets_arguments_of_several_dtypes() -> None:
    one = sample("opinfo.neg.1")
    other = TensorSlot(1, "other", (3, 4), "bool", False, "float32", 0)
    mixed = [
        replace(one, name=f"opinfo.neg.1.other={dtype}{i}", axis="variants", tensors=(*one.tensors, slot))
        for i, dtype in enumerate(("bool", "bool", "float16"))
        for slot in [replace(other, dtype=dtype)]
    ]
    on_host = replace(mixed[0], name="opinfo.neg.1.host", tensors=(*one.tensors, replace(other, on_host=True)))
    tried = [c.sample.name for c in of("autocast", one, on_host, *mixed) if c.variant == "float16"]
    assert tried == ["opinfo.neg.1", "opinfo.neg.1.other=bool0", "opinfo.neg.1.other=float162"]
    assert [c.sample for c in of("thread", one, *mixed)] == [one]


def test_a_call_comes_after_an_allocation_and_after_a_call_that_raise() -> None:
    memory, refused = of("after_error", PLAIN, REFUSED)
    assert (memory.variant, memory.before) == ("", ())
    assert (refused.variant, refused.before[0].sample) == (f"after={REFUSED.name}", REFUSED)


def test_a_run_says_which_contexts_its_backend_has_no_cells_of() -> None:
    def said(*layouts: str) -> str:
        selection = Selection(layouts=frozenset(layouts))
        return Plan(backends.find("torch:cpu"), selection, seed=20).contexts_left_out()

    assert (
        said("thread", "stream") == "contexts that are not tried: stream (needs a device that is torch's accelerator)"
    )
    assert said("thread", "contiguous") == ""


def test_autocast_is_tried_with_two_dtypes_and_from_two() -> None:
    assert [c.variant for c in of("autocast", PLAIN)] == ["bfloat16", "float16"]
    assert dtypes_of("autocast", sample("a", ("bfloat16", "float32"))) == ["bfloat16", "float32"]


def test_contexts_that_compile_take_few_overloads_of_each_family_in_the_wide_tier_alone() -> None:
    plan = Plan(backends.find("torch:cpu"), Selection(tier=TIERS["wide"], layouts=frozenset({"inductor"})), seed=20)
    taken = Counter(cell.family for overload in plan.overloads() for cell in plan.cells(overload))
    assert len(taken) > 25
    assert max(taken.values()) == CONTEXTS_CLASSES["inductor"].per_family
    assert not any(tier.has_context("inductor", "add.Tensor") for name, tier in TIERS.items() if name != "wide")


def test_a_compiled_graph_gets_arguments_at_an_offset_too() -> None:
    found = {c.variant: c.placements[0].layout for c in of("inductor", PLAIN)}
    assert found == {"inductor": "contiguous", "inductor+offset1": "offset1"}


def test_a_layout_that_fits_no_argument_makes_no_case_of_its_own() -> None:
    row = TensorSlot(0, "self", (4,), None, False, "float32", 0)
    vector = replace(PLAIN, name="opinfo.neg.3", args=(row,), tensors=(row,))
    assert [case.variant for case in of("deterministic", PLAIN, vector) if case.sample is vector] == ["", "warn_only"]
    assert [case.variant for case in of("deterministic", PLAIN)] == ["", "strided+transposed", "warn_only"]
