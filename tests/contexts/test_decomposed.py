"""Graphs of decompositions: a device that is wrong in a decomposition, and right in a plain call, is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn.functional import silu
from torch.utils._python_dispatch import TorchDispatchMode

from conformance import contexts
from conformance.contexts.decomposed import Decomposed
from conformance.contexts.model import How
from conformance.inventory import inventory
from conformance.judging.judge import CaseResult
from conformance.vocabulary import Check, Route
from tests.two_sides import case_of, judge

Op = Callable[[torch.Tensor], torch.Tensor]
CPU = torch.device("cpu")
PLAIN = How("", "", torch.no_grad)


def judged(wrong: Op, layout: str = "decomposed") -> CaseResult:
    case = case_of()
    case = replace(case, cell=replace(case.cell, layout=layout))
    return judge(silu, wrong, case, route=Route.COMPOSITE, context=contexts.of(layout))


def wrong_in_a_graph(x: torch.Tensor) -> torch.Tensor:
    return silu(x) if type(x) is torch.Tensor else silu(x) * 2


def raising_in_a_graph(x: torch.Tensor) -> torch.Tensor:
    if type(x) is not torch.Tensor:
        raise RuntimeError("no kernel for fake tensors")
    return silu(x)


def test_a_right_device_passes() -> None:
    found = judged(silu)
    assert (found.mismatches, found.skipped) == ([], "")


GOES_WRONG = [(wrong_in_a_graph, Check.VALUE), (raising_in_a_graph, Check.ERROR_PARITY)]


@pytest.mark.parametrize(("wrong", "check"), GOES_WRONG)
def test_what_is_wrong_in_a_graph_alone_is_found(wrong: Op, check: Check) -> None:
    assert judged(wrong, "contiguous").mismatches == []
    assert {m.check for m in judged(wrong).mismatches} == {check}


def test_the_graph_has_the_simpler_ops() -> None:
    called: list[Any] = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            called.append(func)
            return func(*args, **(kwargs or {}))

    with Seen():
        Decomposed.call(torch.ops.aten.gelu_backward.default, CPU, PLAIN, [torch.ones(3), torch.ones(3)], {})
    assert torch.ops.aten.erf.default in called


def test_a_decomposition_that_is_wrong_on_cpu_too_is_not_judged() -> None:
    with pytest.raises(NotImplementedError, match="something else on CPU"):
        Decomposed.call(wrong_in_a_graph, CPU, PLAIN, [torch.ones(3)], {})


def test_what_cannot_be_traced_on_cpu_is_not_judged() -> None:
    with pytest.raises(NotImplementedError, match="cannot decompose"):
        Decomposed.call(raising_in_a_graph, CPU, PLAIN, [torch.ones(3)], {})


def test_arguments_that_the_op_writes_are_written_on_both_sides() -> None:
    means = [torch.zeros(2), torch.zeros(2)]
    given = [torch.ones(3, 2), None, None, means[0], torch.ones(2), True, 0.5, 1e-5]
    Decomposed.call(torch.ops.aten.native_batch_norm.default, CPU, PLAIN, given, {})
    assert torch.equal(means[0], torch.full((2,), 0.5))


@pytest.mark.parametrize(("name", "has"), [("gelu_backward", True), ("relu_", False), ("native_dropout", False)])
def test_overloads_that_torch_decomposes_have_cells(name: str, has: bool) -> None:
    overload = next(o for o in inventory("CPU") if o.name == name)
    assert contexts.of("decomposed").applies(overload) is has
