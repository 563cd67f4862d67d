"""One case on both sides: the route that was taken, and what cannot be judged."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from conformance.corpus.model import DeviceArg
from conformance.judging import judge as module
from conformance.ops.family import OpFacts, Random
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Check, Route
from tests.samples import sample, slot
from tests.two_sides import judge


def third(x: torch.Tensor) -> torch.Tensor:
    return x / 3


def test_a_registered_fallback_that_did_not_run_is_reported() -> None:
    def natively(x: torch.Tensor) -> torch.Tensor:
        return third(x)

    assert judge(third, natively, route=Route.FALLBACK).mismatches == []
    facts = {"kind": "route", "registered": "fallback", "native": 1, "fallback": 0}
    assert [m.facts for m in module.route_taken(Route.FALLBACK, (3, 1), (4, 1))] == [facts]


def test_a_backend_without_call_counters_has_no_route_mismatch() -> None:
    assert module.route_taken(Route.NATIVE, None, None) == []


def test_a_dtype_without_a_cpu_kernel_is_skipped() -> None:
    def lacking(x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError('"hand" not implemented for Float')

    found = judge(lacking, third)
    assert found.skipped.startswith("CPU: NotImplementedError")
    assert found.mismatches == []


def test_not_implemented_fails_only_for_a_registered_kernel() -> None:
    def lacking(x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("this kernel is for another day")

    assert judge(third, lacking, route=Route.UNSUPPORTED).skipped.startswith("NotImplementedError")
    assert [m.check for m in judge(third, lacking, route=Route.NATIVE).mismatches] == [Check.ERROR_PARITY]


@pytest.mark.parametrize("axis", ["sizes", "variants"])
def test_draws_of_a_generated_sample_are_compared_by_their_distribution(axis: str) -> None:
    made = replace(sample("hand", slot(0, "self", (64,)), DeviceArg(), dtypes=("float32",)), axis=axis)
    (case,) = cases(CellId("misc", "hand", "float32", axis), [made])
    facts = OpFacts("misc", random=Random("uniform"))
    assert not judge(torch.rand_like, case=case, facts=facts).mismatches
    found = judge(torch.rand_like, lambda x: torch.rand_like(x) / 2, case=case, facts=facts)
    assert [m.check for m in found.mismatches] == [Check.DISTRIBUTION]
