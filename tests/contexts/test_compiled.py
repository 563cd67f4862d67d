"""Graphs of one op. Graphs that torch compiles wrongly for CPU too, and devices unknown to Inductor, are not judged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from conformance import contexts, torch_versions
from conformance.backends import Capabilities
from conformance.contexts.compiled import Compiled, Inductor
from conformance.contexts.model import How
from conformance.inventory import inventory
from conformance.judging.judge import CaseResult
from conformance.support.compiled_code import compiler_error
from conformance.torch_versions import compilers
from conformance.vocabulary import Check, Route
from tests.two_sides import Device, case_of, judge

# torch's own modules use deprecated functions of torch.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def registered_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report no kernel of a backend for the op of these tests, which is not in the dispatcher."""
    monkeypatch.setattr(torch_versions, "is_registered_by_backend", lambda name, key: False)


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def wrong_if_compiled(x: torch.Tensor) -> torch.Tensor:
    return x * (3 if torch.compiler.is_compiling() else 2)


def broken_if_compiled(x: torch.Tensor) -> torch.Tensor:
    if torch.compiler.is_compiling():
        raise ValueError("no graph")
    return x * 2


def tripled(x: torch.Tensor) -> torch.Tensor:
    return x * 3


def compiled(wrong: object, variant: str = "aot_eager") -> CaseResult:
    case = replace(case_of(), variant=variant)
    return judge(doubled, wrong, case, route=Route.COMPOSITE, context=contexts.of("compiled"))  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", ["eager", "aot_eager"])
def test_a_right_device_passes(variant: str) -> None:
    found = compiled(doubled, variant)
    assert (found.skipped, found.mismatches) == ("", [])


def test_a_result_that_cpu_s_compiled_call_does_not_give_is_found() -> None:
    (mismatch,) = compiled(tripled).mismatches
    assert mismatch.check is Check.VALUE


def called(op: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return the result of a graph on a device that computes as CPU does."""
    result: torch.Tensor = Compiled.call(op, torch.device("cpu:0"), How("eager", "", nullcontext), [torch.ones(2)], {})
    return result


def test_what_torch_compiles_to_the_same_wrong_code_for_cpu_is_not_judged() -> None:
    with pytest.raises(NotImplementedError, match="torch compiles the call for CPU to code with the same results"):
        called(wrong_if_compiled)


def test_what_torch_compiles_on_no_device_is_not_judged() -> None:
    with pytest.raises(NotImplementedError, match="torch compiles the call for CPU neither"):
        called(broken_if_compiled)


def test_the_compiler_s_line_is_the_finding() -> None:
    said = "CppCompileError: C++ compile error\n\nOutput:\n/tmp/a.cpp:7:3: error: conflicting declaration\n"
    assert compiler_error(RuntimeError(said)) == "/tmp/a.cpp:7:3: error: conflicting declaration"
    assert compiler_error(RuntimeError("an error: of another kind")) == ""


@pytest.mark.forked  # Inductor lists its devices
def test_a_device_without_inductor_is_unsupported() -> None:
    assert not compilers.inductor_knows("hand")
    assert compilers.inductor_knows("cpu")
    op = Inductor().on_device(doubled, "hand", "inductor", Capabilities(Device(device="meta"), "hand"))
    with pytest.raises(NotImplementedError, match="Inductor has no backend registered for meta"):
        op(torch.ones(2))


def test_graphs_return_no_out_and_draw_nothing() -> None:
    context = contexts.of("compiled")
    found = {o.name: context.applies(o) for o in inventory("CPU") if o.name in ("add.Tensor", "add.out", "uniform_")}
    assert found == {"add.Tensor": True, "add.out": False, "uniform_": False}
