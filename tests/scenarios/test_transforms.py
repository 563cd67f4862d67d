"""Transforms of functions: wrong gradients, lost members of batches and equal draws are found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import func, nn

from conformance.scenarios import transforms
from conformance.scenarios.model import Program
from tests.scenarios import altered

pytestmark = [
    pytest.mark.forked,  # they run `backward`
    pytest.mark.filterwarnings("ignore:.*torch.jit.script"),  # torch loads forward derivative rules by it
]

different = partial(altered.different, within=1e-5)


@pytest.mark.parametrize("program", [transforms.of_functions, transforms.of_modules, transforms.draws_in_a_batch])
def test_a_program_gives_the_same_results_again_whatever_is_drawn(program: Program) -> None:
    assert different(program, lambda: None) == set()


def test_all_facts_of_draws_hold_on_cpu() -> None:
    assert altered.untrue(transforms.draws_in_a_batch) == []


def test_a_batch_that_loses_its_last_member_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    vmap = func.vmap

    def shorter(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        return lambda *args: vmap(function, *given, **named)(*args)[:-1]

    found = different(transforms.of_functions, lambda: monkeypatch.setattr(func, "vmap", shorter))
    assert {"vmap_of_grad", "vmap_in_chunks", "vmap_of_vmap"} <= found
    assert all("vmap" in name for name in found)


def test_a_wrong_derivative_is_found_by_whatever_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sine(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: torch.Tensor) -> torch.Tensor:
            return x.sin()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * ctx.saved_tensors[0].cos() * 1.5

    tried = {name: transforms.TRANSFORMS[name] for name in ("grad", "vjp", "jacrev", "hvp", "vmap_in_chunks")}
    monkeypatch.setattr(transforms, "TRANSFORMS", tried)
    found = different(transforms.of_functions, lambda: monkeypatch.setattr(torch, "sin", Sine.apply))
    assert found == {"grad", "vjp", "jacrev", "hvp"}


def test_a_function_that_keeps_its_module_s_parameters_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    call = func.functional_call

    def own(module: nn.Module, parameters: Any, given: Any) -> Any:
        return call(module, parameters, given) if next(module.parameters()).is_meta else module(*given)

    found = different(transforms.of_modules, lambda: monkeypatch.setattr(func, "functional_call", own))
    assert "called_with_others" in found


def test_members_that_draw_alike_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    vmap = func.vmap

    def alike(function: Callable[..., Any], randomness: str) -> Any:
        return vmap(function, randomness="same" if randomness == "different" else randomness)

    monkeypatch.setattr(func, "vmap", alike)
    for name, facts in transforms.draws_in_a_batch("cpu").items():
        assert isinstance(facts, torch.Tensor)
        assert facts.tolist() == [True, False, True], name


def test_draws_that_are_not_refused_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    vmap = func.vmap

    def never(function: Callable[..., Any], randomness: str) -> Any:
        return vmap(function, randomness=randomness.replace("error", "different"))

    monkeypatch.setattr(func, "vmap", never)
    for name, facts in transforms.draws_in_a_batch("cpu").items():
        assert isinstance(facts, torch.Tensor)
        assert facts.tolist() == [True, True, False], name
