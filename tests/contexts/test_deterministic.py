"""Deterministic algorithms: an op gives the same bits or raises, and must not raise where torch only has to warn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from unittest.mock import ANY

import pytest
import torch

from conformance import contexts
from conformance.judging.judge import CaseResult
from conformance.vocabulary import Check
from tests.two_sides import case_of, judge


def plus_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def under_determinism(wrong: Callable[[torch.Tensor], torch.Tensor], variant: str) -> CaseResult:
    return judge(plus_one, wrong, replace(case_of(), variant=variant), context=contexts.of("deterministic"))


NOT_DETERMINISTIC = (
    "hand does not have a deterministic implementation, but you set ...",
    "Deterministic behavior was enabled, but this operation is not deterministic because it uses a library",
)


@pytest.mark.parametrize("said", NOT_DETERMINISTIC, ids=["torch", "cuda"])
def test_an_op_without_a_deterministic_algorithm_is_not_judged_unless_torch_only_warns(said: str) -> None:
    def refuses(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError(f"{said}\nand more")

    assert under_determinism(refuses, "").skipped == f"RuntimeError: {said}"
    assert judge(plus_one, refuses).mismatches
    (mismatch,) = under_determinism(refuses, "warn_only").mismatches
    broken = f"torch was asked for a warning, and the op raised: {said}"
    assert (mismatch.check, mismatch.facts["broken"]) == (Check.CONTEXT, broken)


def test_an_op_that_raises_only_where_torch_does_not_warn_is_judged_where_it_warns() -> None:
    def alerting(number: int, x: torch.Tensor) -> torch.Tensor:
        if torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled():
            raise RuntimeError(NOT_DETERMINISTIC[0])
        return x + number

    assert under_determinism(partial(alerting, 1), "warn_only") == replace(CaseResult(), raw_ns=ANY)
    assert [m.check for m in under_determinism(partial(alerting, 2), "warn_only").mismatches] == [Check.VALUE]


def test_another_error_of_an_op_that_may_warn_is_that_error() -> None:
    def refuses(x: torch.Tensor) -> torch.Tensor:
        raise IndexError("no such row")

    assert [m.check for m in under_determinism(refuses, "warn_only").mismatches] == [Check.ERROR_PARITY]


@pytest.mark.parametrize("variant", ["", "warn_only"])
def test_a_call_that_changes_the_mode_of_deterministic_algorithms_is_found(variant: str) -> None:
    def leaving(x: torch.Tensor) -> torch.Tensor:
        torch.set_deterministic_debug_mode("default")
        return x + 1

    (mismatch,) = under_determinism(leaving, variant).mismatches
    assert (mismatch.check, mismatch.facts["broken"]) == (
        Check.CONTEXT, "the call changed the mode of deterministic algorithms",
    )  # fmt: skip


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_the_mode_of_deterministic_algorithms_is_restored(mode: int) -> None:
    torch.set_deterministic_debug_mode(mode)
    try:
        assert under_determinism(plus_one, "").mismatches == []
        assert torch.get_deterministic_debug_mode() == mode
    finally:
        torch.set_deterministic_debug_mode(0)


def test_a_call_that_is_not_deterministic_is_found_under_the_context() -> None:
    calls: list[int] = []

    def other_each_time(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x + 1 + 1e-7 * len(calls)

    (mismatch,) = under_determinism(other_each_time, "").mismatches
    assert mismatch.check is Check.DETERMINISM
    assert under_determinism(other_each_time, "warn_only").mismatches == []
