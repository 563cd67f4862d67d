"""Two outcomes of one case: differences that a native kernel may have, a fallback may have, and neither may have."""

from __future__ import annotations

import pytest
import torch

from conformance.ops.family import EXACT, Accumulation, Equivalence, OpFacts, Tolerance
from conformance.records import Mismatch
from conformance.vocabulary import Check, Route
from tests.two_sides import Op, case_of, judge, third, with_keyword

INF, NAN = float("inf"), float("nan")
ULP = torch.finfo(torch.float32).eps


def nearly_a_third(x: torch.Tensor) -> torch.Tensor:
    return third(x) * (1 + ULP)


def test_a_native_kernel_may_differ_from_cpu_by_rounding() -> None:
    assert judge(third, nearly_a_third, route=Route.NATIVE).mismatches == []


def test_a_fallback_must_equal_cpu_bit_for_bit() -> None:
    (found,) = judge(third, nearly_a_third, route=Route.FALLBACK).mismatches
    assert found.check is Check.VALUE
    assert found.facts["bound"] == {"exact": True, "signed_zeros": True}


def test_a_kernel_that_only_moves_values_must_equal_cpu_bit_for_bit() -> None:
    facts = OpFacts("misc", tolerance=EXACT)
    assert [m.check for m in judge(third, nearly_a_third, facts=facts).mismatches] == [Check.VALUE]


def test_an_undefined_result_is_compared_by_its_metadata_alone() -> None:
    facts = OpFacts("misc", undefined=(0,))
    assert judge(third, torch.neg, facts=facts).mismatches == []
    assert [m.check for m in judge(third, lambda x: third(x)[:1], facts=facts).mismatches] == [Check.SHAPE]


def test_a_result_that_is_not_unique_is_compared_by_its_equivalence() -> None:
    facts = OpFacts("misc", equivalence=((0, Equivalence.UNORDERED),))
    assert judge(torch.clone, lambda x: x.flip(0), facts=facts).mismatches == []
    assert [m.check for m in judge(torch.clone, third, facts=facts).mismatches] == [Check.VALUE]


@pytest.mark.parametrize(
    ("stable", "taken", "checks"),
    [
        (False, [[1, 0, 2], [2, 0, 1]], []),
        (False, [[0, 0, 2], [0, 1, 2]], [Check.VALUE]),
        (True, [[0, 1, 2], [0, 1, 2]], []),
        (True, [[1, 0, 2], [2, 0, 1]], [Check.VALUE]),
    ],
)
def test_a_sort_may_exchange_equal_elements_unless_it_is_stable(
    stable: bool, taken: list[list[int]], checks: list[Check]
) -> None:
    def in_order(x: torch.Tensor, stable: bool) -> tuple[torch.Tensor, torch.Tensor]:
        values, indices = x.sort(stable=True, dim=1)
        return values, indices

    def as_taken(x: torch.Tensor, stable: bool) -> tuple[torch.Tensor, torch.Tensor]:
        return x.sort(1).values, torch.tensor(taken)

    facts = OpFacts("misc", tolerance=EXACT, equivalence=((1, Equivalence.INDEX_OF_TAKEN),))
    rows = torch.tensor([[1.0, 1.0, 2.0], [3.0, 3.0, 3.0]])
    case = with_keyword("stable", stable)
    found = judge(in_order, as_taken, case, facts, values=lambda slot, _: rows)
    assert [m.check for m in found.mismatches] == checks


def test_what_a_native_kernel_keeps_for_its_backward_has_any_size() -> None:
    def with_kept(size: int) -> Op:
        return lambda x: (x.neg(), x.new_empty(size))

    facts = OpFacts("misc", equivalence=((1, Equivalence.PRIVATE),))
    assert judge(with_kept(6), with_kept(0), facts=facts).mismatches == []
    (found,) = judge(with_kept(6), with_kept(0), facts=facts, route=Route.FALLBACK).mismatches
    assert found.check is Check.SHAPE
    (found,) = judge(with_kept(6), lambda x: (x.exp(), x.new_empty(0)), facts=facts).mismatches
    assert (found.check, found.subject) == (Check.VALUE, "result[0]")


@pytest.mark.parametrize("wrong", [2.5, 3, None])
def test_results_that_are_not_tensors_are_compared_by_type_and_value(wrong: object) -> None:
    assert judge(lambda _: 2.0).mismatches == []
    (found,) = judge(lambda _: 2.0, lambda _: wrong).mismatches
    assert found.check is (Check.VALUE if isinstance(wrong, float) else Check.DTYPE)


def test_a_missing_result_is_reported() -> None:
    (found,) = judge(lambda x: (x + 1, x + 2), lambda x: (x + 1,)).mismatches
    assert found == Mismatch(Check.SHAPE, "", {"kind": "count", "device": 1, "cpu": 2})


def test_the_same_error_on_both_sides_passes() -> None:
    def refuse(x: torch.Tensor) -> torch.Tensor:
        raise IndexError("out of range")

    assert judge(refuse).mismatches == []
    (found,) = judge(refuse, third).mismatches
    assert found.facts == {
        "kind": "errors", "device": None, "cpu": {"type": "IndexError", "message": "out of range"},
    }  # fmt: skip


def test_only_a_complex_zero_under_a_bit_may_have_another_sign() -> None:
    facts = OpFacts("misc", tolerance=EXACT)

    def zeros(x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(x.shape)

    def minus_zeros(x: torch.Tensor) -> torch.Tensor:
        return -torch.zeros(x.shape)

    conj = case_of("conj", dtype="complex64")
    assert judge(zeros, minus_zeros, case=conj, facts=facts).mismatches == []
    for case in (case_of(), case_of("neg")):
        assert [m.check for m in judge(zeros, minus_zeros, case=case, facts=facts).mismatches] == [Check.VALUE]


class TestResultsFinerThanArguments:
    """Means of float16 rows."""

    @staticmethod
    def checks(right: Op, wrong: Op) -> list[Check]:
        rows = torch.tensor([[1.0, 1.001, 1.0], [3.0, 3.002, 3.0]], dtype=torch.float16)
        sums = OpFacts("misc", Tolerance(4.0, accumulation=Accumulation.REDUCED))
        case = case_of(dtype="float16")
        return [
            m.check
            for m in judge(
                right, wrong, case, sums, values=lambda slot, dtype: rows.to(getattr(torch, dtype))
            ).mismatches
        ]

    def test_a_device_that_rounds_to_the_dtype_of_the_arguments_is_wrong(self) -> None:
        assert self.checks(lambda x: x.float().mean(1), lambda x: x.mean(1).float()) == [Check.VALUE]
        assert self.checks(lambda x: x.float().mean(1), lambda x: x.float().sum(1) / 3) == []

    def test_a_device_may_round_a_result_in_that_dtype(self) -> None:
        assert self.checks(lambda x: x.mean(1), lambda x: (x.float().sum(1) * (1 / 3)).half()) == []


class TestANumberThatIsNotOne:
    """The sums of two rows: NaN, infinity and 1; and infinity, 1 and 2."""

    @staticmethod
    def checks(right: Op, wrong: Op) -> list[Check]:
        rows = torch.tensor([[NAN, INF, 1.0], [INF, 1.0, 2.0]])
        sums = OpFacts("misc", Tolerance(2.0, accumulation=Accumulation.REDUCED))
        return [m.check for m in judge(right, wrong, facts=sums, values=lambda slot, _: rows).mismatches]

    def test_a_device_that_leaves_nan_out_of_a_sum_is_wrong(self) -> None:
        assert self.checks(lambda x: x.sum(1), lambda x: x.nan_to_num(0.0, INF).sum(1)) == [Check.VALUE]

    def test_infinities_that_cancel_on_cpu_may_stay_infinite(self) -> None:
        assert self.checks(lambda x: x.sum(1) + (x.sum(1) - x.sum(1)), lambda x: x.sum(1)) == []
