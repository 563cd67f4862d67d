"""One case on both sides: what a route may get away with, what is not judged, and when the reference is doubted."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import count

import pytest
import torch

from conformance import judge as module
from conformance.judge import LAYOUT, LOST, TWICE, UNSOUND
from conformance.ops.family import EXACT, Equivalence, OpFacts
from conformance.vocabulary import Check, Route
from tests.two_sides import case_of, judge

ULP = torch.finfo(torch.float32).eps


def third(x: torch.Tensor) -> torch.Tensor:
    return x / 3


def nearly_a_third(x: torch.Tensor) -> torch.Tensor:
    return third(x) * (1 + ULP)


def test_a_native_kernel_may_round_otherwise() -> None:
    assert judge(third, nearly_a_third, route=Route.NATIVE).mismatches == []


def test_a_fallback_may_not() -> None:
    (found,) = judge(third, nearly_a_third, route=Route.FALLBACK).mismatches
    assert found.check is Check.VALUE
    assert "must be equal bit for bit" in found.message


def test_nor_may_a_kernel_that_only_moves_values() -> None:
    facts = OpFacts("misc", tolerance=EXACT)
    assert [m.check for m in judge(third, nearly_a_third, facts=facts).mismatches] == [Check.VALUE]


def test_a_fallback_that_did_not_run_is_found() -> None:
    def natively(x: torch.Tensor) -> torch.Tensor:
        return third(x)

    assert judge(third, natively, route=Route.FALLBACK).mismatches == []
    assert [m.message for m in module.route_taken(Route.FALLBACK, (3, 1), (4, 1))] == [
        "served by the fallback, but the fallback did not run"
    ]


def test_who_does_not_count_calls_is_not_asked_for_them() -> None:
    assert module.route_taken(Route.NATIVE, None, None) == []


def test_a_result_that_is_not_defined_is_compared_by_its_metadata_alone() -> None:
    facts = OpFacts("misc", undefined=(0,))
    assert judge(third, torch.neg, facts=facts).mismatches == []
    assert [m.check for m in judge(third, lambda x: third(x)[:1], facts=facts).mismatches] == [Check.SHAPE]


def test_a_result_that_is_not_unique_is_compared_as_such() -> None:
    facts = OpFacts("misc", equivalence=((0, Equivalence.UNORDERED),))
    assert judge(torch.clone, lambda x: x.flip(0), facts=facts).mismatches == []
    assert [m.check for m in judge(torch.clone, third, facts=facts).mismatches] == [Check.VALUE]


@pytest.mark.parametrize("wrong", [2.5, 3, None])
def test_results_that_are_no_tensors_are_compared(wrong: object) -> None:
    assert judge(lambda _: 2.0).mismatches == []
    (found,) = judge(lambda _: 2.0, lambda _: wrong).mismatches
    assert found.check is (Check.VALUE if isinstance(wrong, float) else Check.DTYPE)


def test_a_missing_result_is_found() -> None:
    (found,) = judge(lambda x: (x + 1, x + 2), lambda x: (x + 1,)).mismatches
    assert (found.check, found.message) == (Check.SHAPE, "the device returned 1 results, CPU 2")


def test_the_same_error_on_both_sides_is_parity() -> None:
    def refuse(x: torch.Tensor) -> torch.Tensor:
        raise IndexError("out of range")

    assert judge(refuse).mismatches == []
    (found,) = judge(refuse, third).mismatches
    assert found.message == "the device raised nothing; CPU raised IndexError: out of range"


def test_a_dtype_without_a_cpu_kernel_is_not_judged() -> None:
    def lacking(x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError('"hand" not implemented for Float')

    found = judge(lacking, third)
    assert found.skipped.startswith("CPU: NotImplementedError")
    assert found.mismatches == []


def test_a_device_that_serves_nothing_is_not_judged_but_a_registered_kernel_that_says_so_is() -> None:
    def lacking(x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("this kernel is for another day")

    assert judge(third, lacking, route=Route.UNSUPPORTED).skipped.startswith("NotImplementedError")
    assert [m.check for m in judge(third, lacking, route=Route.NATIVE).mismatches] == [Check.ERROR_PARITY]


def test_an_expanded_argument_that_cpu_writes_without_a_word_is_not_judged() -> None:
    found = judge(third, case=case_of("expanded", written=True))
    assert (found.skipped, found.tainted) == (TWICE, False)


def test_an_expanded_argument_that_cpu_takes_for_dense_damages_nothing() -> None:
    written = []

    def as_dense(x: torch.Tensor) -> torch.Tensor:
        ctypes.memset(x.data_ptr(), 0, x.numel() * x.element_size())  # both rows, of which the storage has one
        written.append(x)
        return x

    found = judge(as_dense, case=case_of("expanded", written=True))
    assert (found.skipped, found.tainted, len(written)) == (TWICE, False, 1)
    assert written[0].untyped_storage().nbytes() < written[0].numel() * written[0].element_size()


def test_an_error_about_an_expanded_argument_has_to_be_the_device_s_too() -> None:
    def refuse(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("several indices, one place")

    case = case_of("expanded", written=True)
    assert judge(refuse, case=case).mismatches == []
    assert [m.check for m in judge(refuse, third, case=case).mismatches] == [Check.ERROR_PARITY]


def test_a_reference_that_does_not_return_its_out_is_not_held_against_the_device() -> None:
    case = case_of(written=True, defined=False)
    found = judge(lambda x: x + 1, lambda x: x.fill_(1.0), case=case)
    assert found.skipped == LOST
    assert judge(lambda x: x.fill_(1.0), lambda x: x + 1, case=case).skipped == ""


def test_an_out_that_a_call_without_results_writes_is_held_against_the_device() -> None:
    def filled(value: float) -> Callable[[torch.Tensor], None]:
        def fill(x: torch.Tensor) -> None:
            x.fill_(value)

        return fill

    case = case_of(written=True, defined=False)
    found = judge(filled(1.0), filled(2.0), case=case)
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.VALUE])
    assert judge(filled(1.0), case=case).mismatches == []


def test_a_reference_that_gives_other_bits_each_time_is_not_held_against_the_device() -> None:
    calls = count()
    found = judge(lambda x: x + next(calls), third)
    assert (found.skipped, found.tainted) == (UNSOUND, True)


def test_a_reference_that_depends_on_the_layout_is_not_held_against_the_device() -> None:
    def by_memory_order(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.is_contiguous() else x - 1

    found = judge(by_memory_order, lambda x: x + 1, case=case_of("transposed"))
    assert found.skipped == LAYOUT


def test_a_device_that_gives_neither_of_the_values_of_such_a_reference_is_wrong() -> None:
    def by_memory_order(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.is_contiguous() else x - 1

    def fill_by_memory_order(x: torch.Tensor) -> torch.Tensor:
        return x.fill_(1.0 if x.is_contiguous() else 2.0)

    found = judge(by_memory_order, lambda x: x + 2, case=case_of("transposed"))
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.VALUE])
    written = case_of("transposed", written=True)
    found = judge(fill_by_memory_order, lambda x: x.fill_(3.0), case=written)
    assert (found.skipped, {m.check for m in found.mismatches}) == ("", {Check.VALUE})
    assert judge(fill_by_memory_order, lambda x: x.fill_(1.0), case=written).skipped == LAYOUT


def test_a_device_that_is_wrong_in_a_layout_is_told_from_a_reference_that_is() -> None:
    found = judge(lambda x: x + 1, lambda x: x - 1, case=case_of("transposed"))
    assert [m.check for m in found.mismatches] == [Check.VALUE]


def test_a_written_argument_that_is_not_returned_is_compared() -> None:
    def nothing(x: torch.Tensor) -> None:
        x.add_(1)

    def nothing_at_all(x: torch.Tensor) -> None:
        x.add_(0)

    case = case_of("offset_gap", written=True)
    assert judge(nothing, case=case).mismatches == []
    (found,) = judge(nothing, nothing_at_all, case=case).mismatches
    assert found.check is Check.VALUE
    assert found.message.startswith("self: 6 of 6 elements differ, first at [0, 0]: device 1.0, CPU 2.0")


def promoted(x: torch.Tensor) -> torch.Tensor:
    """As CPU lays out a sum of ints and floats: densely, by what it has converted."""
    return torch.add(x, 0.5)


def test_a_promoted_result_may_be_laid_out_as_the_argument_is_but_in_no_third_way() -> None:
    case = case_of("transposed", dtype="int64")

    def dense(x: torch.Tensor) -> torch.Tensor:
        return (x + 0.5).contiguous()

    def as_the_argument(x: torch.Tensor) -> torch.Tensor:
        return (x.to(torch.float32) + 0.5).t().contiguous().t()

    def laid_out(x: torch.Tensor) -> torch.Tensor:
        return dense(x) if x.dtype is torch.int64 else as_the_argument(x)

    def in_a_third_way(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided((2, 3), (4, 1), dtype=torch.float32).copy_(x + 0.5)

    assert judge(laid_out, as_the_argument, case=case).mismatches == []
    assert [m.check for m in judge(laid_out, in_a_third_way, case=case).mismatches] == [Check.STRIDE]


def test_the_sign_of_a_negated_complex_zero_is_let_go_and_of_a_real_one_is_not() -> None:
    facts = OpFacts("misc", tolerance=EXACT)

    def zeros(x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(x.shape)

    def minus_zeros(x: torch.Tensor) -> torch.Tensor:
        return -torch.zeros(x.shape)

    conj = case_of("conj", dtype="complex64")
    assert judge(zeros, minus_zeros, case=conj, facts=facts).mismatches == []
    for case in (case_of(), case_of("neg")):
        assert [m.check for m in judge(zeros, minus_zeros, case=case, facts=facts).mismatches] == [Check.VALUE]
