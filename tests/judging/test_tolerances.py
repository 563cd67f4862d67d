"""The facts of ops/ about an overload, as the judge uses them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from conformance.corpus.model import TensorSlot
from conformance.judging.closeness import Closeness
from conformance.judging.oracle import CallOutcome, call
from conformance.judging.tolerances import Criteria, criteria_of, position_of
from conformance.judging.twins import CPU, Twins
from conformance.ops.family import ADDED, EXACT, Accumulation, Equivalence, OpFacts, Random, Tolerance
from conformance.plan.cases import cases
from conformance.vocabulary import CellId
from tests.samples import sample, slot
from tests.two_sides import value_of

DRAWS = Criteria(OpFacts("random", random=Random("uniform", results=(1,))))


def values_of(slot: TensorSlot, dtype: str) -> torch.Tensor:
    """Return the values of ``value_of``; in complex dtypes, with an equal imaginary part."""
    found = value_of(slot, dtype)
    return found * complex(1, 1) if found.is_complex() else found


def outcome(op: object = torch.mm, dtype: str = "float32") -> CallOutcome:
    one = sample(
        "mm", slot(0, "self", (2, 5)), slot(1, "weight", (5, 4)), dtypes=("float32", "bfloat16", "complex64", "int8")
    )
    case = cases(CellId("f", "mm", dtype, "contiguous"), [one])[0]
    return call(op, Twins(values_of).side(case, CPU))  # type: ignore[arg-type]  # any callable


def test_functions_of_complex128_may_cancel_and_no_wider_dtype_tells() -> None:
    moving = Criteria(OpFacts("f", Tolerance(4.0)))
    assert moving.sums(torch.complex128)
    assert not moving.sums(torch.complex64)
    assert Criteria(OpFacts("f", Tolerance(4.0, accumulation=Accumulation.INNER))).sums(torch.complex64)


def test_a_product_that_is_added_to_an_argument_has_the_terms_of_its_first_factor() -> None:
    three = sample("addmm", slot(0, "self", (2, 4)), slot(1, "mat1", (2, 5)), slot(2, "mat2", (5, 4)))
    case = cases(CellId("f", "addmm", "float32", "contiguous"), [three])[0]
    found = call(torch.addmm, Twins(values_of).side(case, CPU))
    criteria = Criteria(OpFacts("f", Tolerance(4.0, accumulation=Accumulation.INNER)))
    assert criteria.closeness(found, found.leaves[0][1]).terms == 5


@pytest.mark.parametrize(
    ("accumulation", "terms"),
    [
        (Accumulation.NONE, 1),
        (Accumulation.REDUCED, 20 // 8),
        (Accumulation.INNER, 5),
        (Accumulation.WINDOW, 20 // 5),
        (Accumulation.ALL, 20),
    ],
)
def test_the_bound_counts_the_terms_that_an_op_sums(accumulation: Accumulation, terms: int) -> None:
    criteria = Criteria(OpFacts("f", tolerance=Tolerance(ulps=3, cpu_multiple=2, accumulation=accumulation)))
    found = outcome()
    closeness = criteria.closeness(found, found.leaves[0][1])
    assert (closeness.ulps, closeness.multiple, closeness.terms) == (3, 2, terms)
    assert closeness.accumulates is (accumulation is not Accumulation.NONE)


@pytest.mark.parametrize(
    ("indices", "terms"), [([[1, 0, 1, 1]], 3), ([[1, 0, 1, 1], [0, 0, 2, 3]], 2), ([[1, 0, 1, 1], [0]], 3)]
)
def test_a_sum_at_indices_has_as_many_terms_as_they_name_one_element(indices: list[list[int]], terms: int) -> None:
    slots = [slot(1 + i, f"indices[{i}]", (len(of),), "int64") for i, of in enumerate(indices)]
    one = sample("index_put_", slot(0, "self", (4, 4)), *slots)
    case = cases(CellId("f", "index_put_", "float32", "contiguous"), [one])[0]
    values = {f"indices[{i}]": torch.tensor(of) for i, of in enumerate(indices)}
    side = Twins(lambda s, dtype: values[s.name] if s.name in values else values_of(s, dtype)).side(case, CPU)
    found = call(lambda x, *_: x, side)
    closeness = Criteria(OpFacts("f", ADDED)).closeness(found, found.leaves[0][1])
    assert (closeness.terms, closeness.accumulates) == (terms, False)


def test_an_op_that_keeps_its_shape_sums_up_to_a_longest_row() -> None:
    criteria = Criteria(OpFacts("f", tolerance=Tolerance(accumulation=Accumulation.REDUCED)))
    found = outcome(lambda x, y: torch.ones(4, 5))
    assert criteria.closeness(found, found.leaves[0][1]).terms == 5


def test_only_drawn_results_are_not_compared_by_value() -> None:
    assert (DRAWS.drawn(0), DRAWS.drawn(1)) == (False, True)
    assert DRAWS.equivalence(1) is Equivalence.METADATA
    assert DRAWS.equivalence(0) is Equivalence.EQUAL
    assert DRAWS.random


def test_an_overload_that_does_not_draw_has_no_drawn_result() -> None:
    criteria = Criteria(OpFacts("f"))
    assert not criteria.random
    assert not criteria.drawn(0)
    assert not criteria.drawn(None)


def test_criteria_follow_the_facts_of_the_op() -> None:
    assert Criteria(OpFacts("f", tolerance=EXACT)).exact
    assert not Criteria(OpFacts("f")).exact
    assert Criteria(OpFacts("f", may_alias=True)).may_alias
    assert not Criteria(OpFacts("f", unstable="atomics")).stable
    assert Criteria(OpFacts("f", undefined=(1,))).equivalence(1) is Equivalence.METADATA


def test_a_copy_is_exact_and_a_draw_is_random_and_a_sum_is_neither() -> None:
    assert criteria_of("copy_").exact
    assert criteria_of("uniform_").random
    assert not criteria_of("add.Tensor").exact


def test_a_written_argument_has_the_position_of_its_result() -> None:
    assert position_of(outcome(lambda a, b: (a + 1, b.view(-1))), 1) == 1
    assert position_of(outcome(lambda a, b: a + 1), 1) is None


def closeness_of(facts: OpFacts, dtype: str = "float32", op: object = torch.mm) -> Closeness:
    found = outcome(op, dtype)
    return Criteria(facts).closeness(found, found.leaves[0][1])


def test_a_complex_result_has_four_times_the_bound() -> None:
    facts = OpFacts("f", tolerance=Tolerance(ulps=3))
    assert closeness_of(facts).ulps == 3
    assert closeness_of(facts, "complex64").ulps == 12


@pytest.mark.parametrize(
    ("dtype", "normwise", "ulps", "steps"),
    [("bfloat16", False, 64, 4), ("bfloat16", True, 8, 0), ("float32", False, 64, 4), ("float32", True, 64, 0)],
)
def test_a_small_float_may_be_off_by_few_units(dtype: str, normwise: bool, ulps: int, steps: int) -> None:
    found = closeness_of(OpFacts("f", tolerance=Tolerance(ulps=64, normwise=normwise)), dtype)
    assert (found.ulps, found.steps) == (ulps, steps)


def test_an_index_beside_floats_does_not_widen_the_bound_of_a_cancelling_op() -> None:
    one = sample("gather", slot(0, "self", (2, 5)), slot(1, "index", (2, 5), dtype="int64"))
    case = cases(CellId("f", one.overload, "float32", "contiguous"), [one])[0]

    def values(slot: TensorSlot, dtype: str) -> torch.Tensor:
        return torch.full((10,), 9000) if slot.name == "index" else torch.linspace(0, 1, 10)

    found = call(lambda x, index: x * 2, Twins(values).side(case, CPU))
    facts = OpFacts("f", tolerance=Tolerance(accumulation=Accumulation.CANCELS))
    expected = torch.linspace(0, 1, 10, dtype=torch.float32).double().reshape(2, 5)
    assert torch.equal(torch.as_tensor(Criteria(facts).closeness(found, found.leaves[0][1]).magnitude), expected)


@pytest.mark.parametrize(("dtype", "largest"), [("float32", 20.0), ("complex64", abs(complex(20, 20))), ("int8", 20.0)])
def test_the_bound_of_a_cancelling_op_is_relative_to_its_largest_argument(dtype: str, largest: float) -> None:
    facts = OpFacts("f", tolerance=Tolerance(accumulation=Accumulation.CANCELS))
    assert closeness_of(facts, dtype).magnitude == pytest.approx(largest)
    assert closeness_of(OpFacts("f"), dtype).magnitude == 0


def test_an_op_computed_in_a_coarser_dtype_has_the_bound_of_that_dtype() -> None:
    assert closeness_of(OpFacts("f", computed_in="bfloat16")).dtype is torch.bfloat16
    assert closeness_of(OpFacts("f")).dtype is None
    assert closeness_of(OpFacts("f", computed_in="float64")).dtype is None, "finer than the result: no excuse"


def test_a_wider_out_has_the_bound_of_the_dtype_of_its_arguments() -> None:
    out = replace(slot(1, "out", (2, 5), "float64", written=True), pool="")
    one = sample("exp.out", slot(0, "self", (2, 5)), out)
    side = Twins(value_of).side(cases(CellId("f", "exp.out", "float32", "contiguous"), [one])[0], CPU)
    found = call(lambda x, out: torch.exp(x, out=out), side)
    assert found.error is None, found.error
    criteria = Criteria(OpFacts("f"))
    assert criteria.closeness(found, side.arguments[1].tensor).dtype is torch.float32
    assert criteria.closeness(found, found.leaves[0][1].clone()).dtype is None, "a result of its own"


@pytest.mark.parametrize(("size", "computed_in"), [((2, 5), torch.float32), ((), None)])
def test_a_number_of_a_finer_dtype_counts_only_beside_other_numbers(
    size: tuple[int, ...], computed_in: torch.dtype | None
) -> None:
    out = replace(slot(2, "out", size, "complex128", written=True), pool="")
    one = sample("div.out", slot(0, "self", (), "complex128"), slot(1, "other", size), out)
    side = Twins(value_of).side(cases(CellId("f", "div.out", "float32", "contiguous"), [one])[0], CPU)
    found = call(lambda x, other, out: torch.div(x, other, out=out), side)
    assert found.error is None, found.error
    assert Criteria(OpFacts("f")).closeness(found, side.arguments[2].tensor).dtype is computed_in
