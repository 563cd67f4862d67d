"""Rounding errors that cancellation amplifies pass, and defects in the same results fail."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from conformance.corpus.model import DeviceArg, TensorSlot
from conformance.judging import conditioning
from conformance.judging.other_references import OtherReference
from conformance.ops.family import SUMMED, TRANSCENDENTAL, Accumulation, OpFacts, Tolerance
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Check
from tests.samples import sample
from tests.two_sides import case_of, judge, with_number

Op = Callable[[torch.Tensor], torch.Tensor]

# The sum of each row is about 1e-3 of its terms, and no term is exact in binary.
CANCELLING = torch.tensor([[1234.1, -2345.7, 1111.601], [0.3, 1e5 / 3, -33333.6333]], dtype=torch.float64)


def value_of(slot: TensorSlot, dtype: str) -> torch.Tensor:
    return CANCELLING.reshape(slot.shape).to(getattr(torch, dtype))


def in_order(x: torch.Tensor) -> torch.Tensor:
    return (x[:, 0] + x[:, 1]) + x[:, 2]


def in_another_order(x: torch.Tensor) -> torch.Tensor:
    return x[:, 0] + (x[:, 2] + x[:, 1])


def without_its_smallest_term(x: torch.Tensor) -> torch.Tensor:
    kept = torch.where(x.abs() == x.abs().amin(1, keepdim=True), torch.zeros_like(x), x)
    return in_order(kept)


def checks(right: Op, wrong: Op, dtype: str, tolerance: Tolerance = SUMMED) -> list[Check]:
    found = judge(right, wrong, case_of(dtype=dtype), OpFacts("misc", tolerance), values=value_of)
    return [m.check for m in found.mismatches]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
class TestASumThatCancels:
    def test_a_cancelling_sum_that_differs_by_rounding_passes(self, dtype: str) -> None:
        assert not torch.equal(in_order(value_of_all(dtype)), in_another_order(value_of_all(dtype)))
        assert checks(in_order, in_another_order, dtype) == []

    def test_a_cancelling_sum_without_one_term_fails(self, dtype: str) -> None:
        assert checks(in_order, without_its_smallest_term, dtype) == [Check.VALUE]

    def test_a_cancelling_sum_with_a_term_that_is_16_ulps_off_fails(self, dtype: str) -> None:
        off = 1 + 16 * torch.finfo(getattr(torch, dtype)).eps
        scale = torch.tensor([1.0, off, 1.0], dtype=getattr(torch, dtype))
        assert checks(in_order, lambda x: in_order(x * scale), dtype) == [Check.VALUE]


def rows_of_all_sizes(slot: TensorSlot, dtype: str) -> torch.Tensor:
    rows = torch.tensor([[1e30, 3e29, 7e29], [0.1, 0.7, 0.3]], dtype=torch.float64)
    return rows.reshape(slot.shape).to(getattr(torch, dtype))


class TestASmallElementBesideALargeOne:
    """The sums of two rows, one of large terms and one of small terms."""

    @staticmethod
    def checks(wrong: Op, tolerance: Tolerance = SUMMED) -> list[Check]:
        found = judge(in_order, wrong, case_of(), OpFacts("misc", tolerance), values=rows_of_all_sizes)
        return [m.check for m in found.mismatches]

    def test_it_may_be_off_by_its_own_rounding_alone(self) -> None:
        assert self.checks(in_another_order) == []
        assert self.checks(lambda x: in_order(x) - x[:, 2] * torch.tensor([0.0, 1.0])) == [Check.VALUE]

    def test_it_may_be_off_by_that_of_the_largest_where_algorithms_are_normwise(self) -> None:
        normwise = Tolerance(SUMMED.ulps, SUMMED.cpu_multiple, SUMMED.accumulation, normwise=True)
        assert self.checks(lambda x: in_order(x) - x[:, 2] * torch.tensor([0.0, 1.0]), normwise) == []


def value_of_all(dtype: str) -> torch.Tensor:
    return CANCELLING.to(getattr(torch, dtype))


def test_the_rounding_of_a_cancelling_sum_exceeds_the_pointwise_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OtherReference, "own", lambda _, reference: torch.zeros_like(reference.abs()))
    pointwise = Tolerance(SUMMED.ulps, SUMMED.cpu_multiple)
    assert checks(in_order, in_another_order, "float64", pointwise) == [Check.VALUE]


def test_a_step_of_floor_is_not_excused_as_rounding() -> None:
    def two(x: torch.Tensor) -> torch.Tensor:
        return torch.floor(x / value_of_all("float32").to(x.dtype) * 2)

    assert checks(two, two, "float32") == []
    assert checks(two, lambda x: two(x) - 1, "float32") == [Check.VALUE]


def test_a_pointwise_function_is_not_excused_by_rounding_of_its_input() -> None:
    def sloppy(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x * (1 + torch.finfo(x.dtype).eps))

    assert checks(torch.sin, sloppy, "float32", TRANSCENDENTAL) == [Check.VALUE]


class TestRangesBetweenIntegers:
    """Ranges without floating-point tensor arguments, and a device whose result differs in one element."""

    FEW = OpFacts("factory", Tolerance(2.0, accumulation=Accumulation.FEW))

    def checks(self, op: Callable[..., torch.Tensor], arguments: tuple[float, ...], at: int, by: float) -> list[Check]:
        """Return the failed checks of a device that adds ``by`` to the element ``at`` of the result of ``op``."""
        dtype = str(op(*arguments).dtype).removeprefix("torch.")
        one = sample("hand", *arguments, DeviceArg(), dtypes=(dtype,))
        (case,) = cases(CellId("factory", "hand", dtype, "contiguous"), [one])

        def off(*given: float) -> torch.Tensor:
            made = op(*given)
            made[at] += int(by) if dtype == "int64" else by
            return made

        return [m.check for m in judge(op, off, case, self.FEW).mismatches]

    def test_the_ends_of_a_range_may_round_where_they_cancel(self) -> None:
        between_minus_one_and_four = torch.ops.aten.linspace.default, (-1, 4, 50)
        assert self.checks(*between_minus_one_and_four, at=10, by=4.5e-8) == []
        assert self.checks(*between_minus_one_and_four, at=10, by=1e-6) == [Check.VALUE]
        assert self.checks(*between_minus_one_and_four, at=40, by=4e-6) == [Check.VALUE]

    def test_a_large_integer_that_is_cut_from_float64_may_round(self) -> None:
        def powers(start: float, end: float, steps: int, base: float) -> torch.Tensor:
            return torch.logspace(start, end, steps, base, dtype=torch.int64)

        assert self.checks(powers, (0, 33, 100, 3.0), at=96, by=5) == []
        assert self.checks(powers, (0, 33, 100, 3.0), at=96, by=5_000) == [Check.VALUE]
        assert self.checks(powers, (0, 33, 100, 3.0), at=6, by=1) == [Check.VALUE]


class TestSpread:
    TRUE = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)

    def spread(self, near: tuple[float, ...], far: tuple[float, ...]) -> float:
        draws = ([self.TRUE + d for d in distances] for distances in (near, far))
        found = conditioning.spread(self.TRUE, *draws)
        assert len({repr(number) for number in found.tolist()}) == 1
        return float(found[0])

    def test_the_spread_is_the_largest_near_draw_relative_to_its_size(self) -> None:
        assert self.spread((2.0, -4.0), (16.0, -32.0)) == 4.0 / conditioning.NEAR

    @pytest.mark.parametrize(("near", "far"), [((1.0, 0.0), (1.0, 1.0)), ((0.0, 0.0), (0.0, 1.0))])
    def test_the_spread_is_not_known_where_draws_jump(self, near: tuple[float, ...], far: tuple[float, ...]) -> None:
        assert math.isnan(self.spread(near, far))

    def test_the_spread_is_not_known_where_no_draw_is_finite(self) -> None:
        assert math.isnan(self.spread((math.nan,), (math.inf,)))

    def test_the_spread_is_zero_where_no_draw_moves_the_result(self) -> None:
        assert self.spread((0.0, math.nan), (0.0, 0.0)) == 0.0

    def test_the_spread_counts_errors_that_grow_as_a_square_root(self) -> None:
        assert self.spread((4.0,), (4.0 * math.sqrt(conditioning.FAR / conditioning.NEAR),)) == 0.5

    def test_the_spread_ignores_draws_that_are_not_finite(self) -> None:
        assert self.spread((math.nan, 4.0, math.inf), (32.0,)) == 0.5


class TestPerturb:
    @pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
    def test_a_perturbation_moves_elements_by_at_most_the_given_share(self, dtype: torch.dtype) -> None:
        before = torch.linspace(1, 5, 100, dtype=torch.float64).to(dtype)
        after = before.clone()
        conditioning.perturb(after, 1e-6, 1.0, 0)
        moved = (after - before).abs() / before.abs()
        assert 0.5e-6 < float(moved.max()) <= 1e-6

    def test_one_draw_in_two_sizes_is_parallel_and_two_draws_are_not(self) -> None:
        before = torch.linspace(1, 5, 100, dtype=torch.float64)
        near, far, other = before.clone(), before.clone(), before.clone()
        conditioning.perturb(near, 1e-6, 1.0, 3)
        conditioning.perturb(far, 1e-6, 64.0, 3)
        conditioning.perturb(other, 1e-6, 1.0, 4)
        assert torch.allclose((far - before) / (near - before), torch.full((100,), 64.0, dtype=torch.float64))
        assert not torch.allclose(near, other, rtol=1e-9)

    def test_a_perturbation_keeps_zeros_infinities_and_nan(self) -> None:
        storage = torch.tensor([0.0, math.inf, math.nan], dtype=torch.float64)
        conditioning.perturb(storage, 1e-6, 1.0, 0)
        assert storage[0] == 0
        assert torch.isinf(storage[1])
        assert torch.isnan(storage[2])


class TestPerturbed:
    def test_a_perturbed_number_moves_by_at_most_the_given_share(self) -> None:
        moved = [conditioning.perturbed(4.0, 1e-6, 1.0, draw) for draw in range(20)]
        assert 2e-6 < max(abs(x - 4.0) for x in moved) <= 4e-6
        assert all(isinstance(x, float) for x in moved)

    def test_a_perturbed_complex_number_stays_complex(self) -> None:
        assert isinstance(conditioning.perturbed(1 + 2j, 1e-6, 1.0, 0), complex)


def test_rounding_of_number_arguments_is_excused_too() -> None:
    """A line from 4.3 down to -3 passes zero, where its rounding depends on the order of two additions."""

    def line(x: torch.Tensor, start: float) -> torch.Tensor:
        step = torch.tensor((-3 - start) / 49, dtype=x.dtype)
        return start + torch.arange(50, dtype=x.dtype) * step

    def from_both_ends(x: torch.Tensor, start: float) -> torch.Tensor:
        i = torch.arange(50, dtype=x.dtype)
        return torch.where(i < 25, line(x, start), -3 - (49 - i) * torch.tensor((-3 - start) / 49, dtype=x.dtype))

    few = OpFacts("misc", Tolerance(2.0, accumulation=Accumulation.FEW))
    case = with_number(4.3)
    assert not torch.equal(line(torch.ones(1), 4.3), from_both_ends(torch.ones(1), 4.3))
    assert judge(line, from_both_ends, case, few).mismatches == []
    assert judge(line, lambda x, s: from_both_ends(x, s) + 1e-6, case, few).mismatches


# Intermediate results -------------------------------------------------------------------------------------------------


def rest_of_sigmoid(x: torch.Tensor) -> torch.Tensor:
    return 1 - torch.sigmoid(x)


def rest_of_sigmoid_off_by(units: int) -> Op:
    """Return ``rest_of_sigmoid`` with a sigmoid that is ``units`` units in the last place too small."""

    def op(x: torch.Tensor) -> torch.Tensor:
        unit = torch.finfo(x.dtype).eps / 2  # in the last place of numbers between 0.5 and 1
        return 1 - (torch.sigmoid(x) - units * unit)

    return op


def of_a_few(slot: TensorSlot, dtype: str) -> torch.Tensor:
    """Return values whose sigmoid is nearly 1."""
    return torch.linspace(5, 6, slot.numel, dtype=torch.float64).reshape(slot.shape).to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
class TestANumberThatIsRoundedOnTheWay:
    def found(self, wrong: Op, dtype: str) -> list[Check]:
        tolerance = Tolerance(ulps=2, cpu_multiple=2)
        judged = judge(rest_of_sigmoid, wrong, case_of(dtype=dtype), OpFacts("misc", tolerance), values=of_a_few)
        return [m.check for m in judged.mismatches]

    def test_a_device_that_rounds_it_the_other_way_passes(self, dtype: str) -> None:
        assert self.found(rest_of_sigmoid_off_by(1), dtype) == []

    def test_a_device_that_is_further_off_than_cpu_is_nearby_fails(self, dtype: str) -> None:
        assert self.found(rest_of_sigmoid_off_by(5), dtype) == [Check.VALUE]

    def test_without_the_nearby_arguments_the_first_device_would_fail(
        self, dtype: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(OtherReference, "own", lambda _, reference: torch.zeros_like(reference.abs()))
        assert self.found(rest_of_sigmoid_off_by(1), dtype) == [Check.VALUE]
