"""One case on both sides: the route that was taken, and what cannot be judged."""

from __future__ import annotations

import torch

from conformance.judging import judge as module
from conformance.vocabulary import Check, Route
from tests.two_sides import judge


def third(x: torch.Tensor) -> torch.Tensor:
    return x / 3


def test_a_fallback_that_did_not_run_is_found() -> None:
    def natively(x: torch.Tensor) -> torch.Tensor:
        return third(x)

    assert judge(third, natively, route=Route.FALLBACK).mismatches == []
    facts = {"kind": "route", "registered": "fallback", "native": 1, "fallback": 0}
    assert [m.facts for m in module.route_taken(Route.FALLBACK, (3, 1), (4, 1))] == [facts]


def test_who_does_not_count_calls_is_not_asked_for_them() -> None:
    assert module.route_taken(Route.NATIVE, None, None) == []


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
