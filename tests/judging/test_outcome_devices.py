"""The device of a result, and when a result may be on the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.corpus.model import DeviceArg
from conformance.judging import oracle
from conformance.judging.other_references import OtherReferences
from conformance.judging.outcomes import Comparison
from conformance.judging.tolerances import Criteria
from conformance.judging.twins import CPU, Twins
from conformance.ops.family import OpFacts
from conformance.plan.case import Case
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Check, Route
from tests.samples import sample, slot
from tests.two_sides import Op, judge, third, value_of


def test_a_result_whose_memory_is_on_another_device_than_it_says_is_wrong() -> None:
    class Elsewhere(torch.Tensor):
        def untyped_storage(self) -> torch.UntypedStorage:
            return torch.empty(3, device="meta").untyped_storage()

    (found,) = judge(third, lambda x: third(x).as_subclass(Elsewhere)).mismatches
    assert (found.check, found.facts["device"], found.facts["wanted"]) == (Check.DEVICE, "meta", "cpu")


def on_the_host(route: Route, op: Op, case: Case, context: str = "") -> list[Check]:
    """Return the failed checks if ``op`` returns its results on the host, and its arguments are on a device."""
    if context:
        case = replace(case, cell=replace(case.cell, layout=context))
    twins = Twins(value_of)
    on_host = oracle.call(op, twins.side(case, CPU))
    comparison = Comparison(Criteria(OpFacts("misc")), route, torch.device("meta"))
    return [m.check for m in comparison.results(on_host, on_host, OtherReferences(case, twins, op))]


def given(*arguments: Any) -> Case:
    one = sample("hand", *arguments, dtypes=("float32",))
    return cases(CellId("misc", "hand", "float32", "contiguous"), [one])[0]


X = slot(0, "self", (2, 3))


ON_HOST = replace(X, on_host=True)


@pytest.mark.parametrize(
    ("route", "op", "checks"),
    [
        (Route.NATIVE, torch.neg, [Check.DEVICE]),
        (Route.COMPOSITE, torch.neg, []),  # torch's own kernels for all devices decide where results are
        (Route.NATIVE, lambda x: torch.ones(2), []),
        (Route.NATIVE, torch.nonzero, [Check.DEVICE]),  # Meta has no values, and raises
        (Route.COMPOSITE, torch.nonzero, []),
    ],
)
def test_a_result_of_arguments_on_the_device_is_not_left_on_the_host(
    route: Route, op: Callable[[torch.Tensor], torch.Tensor], checks: list[Check]
) -> None:
    assert on_the_host(route, op, given(X)) == checks


def test_where_meta_raises_a_result_may_be_on_the_host_if_anything_else_says_so() -> None:
    def chosen(x: torch.Tensor, *_: object) -> torch.Tensor:
        return x[x > 1]

    def put_into_the_last(*tensors: torch.Tensor) -> torch.Tensor:
        return tensors[-1].copy_(tensors[0][tensors[0] > 3].sum())

    assert on_the_host(Route.NATIVE, chosen, given(ON_HOST)) == []
    assert on_the_host(Route.NATIVE, chosen, given(X, DeviceArg())) == []
    assert on_the_host(Route.NATIVE, chosen, given(X), context="thread") == []
    host_out = replace(slot(1, "out", (), written=True), on_host=True)
    assert on_the_host(Route.NATIVE, put_into_the_last, given(X, host_out)) == []
    assert on_the_host(Route.NATIVE, chosen, given(X, host_out)) == [Check.DEVICE]
