"""Uses of ``torch.nn`` modules: a wrong move, state, initialization or average is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from conformance.scenarios import modules
from conformance.scenarios.model import Program
from tests.scenarios.altered import different

pytestmark = pytest.mark.forked  # they run `backward`

PROGRAMS = (modules.moved, modules.materialized, modules.initialized, modules.parametrized)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gives_the_same_results_again_whatever_it_draws(program: Program) -> None:
    assert different(program, lambda: None) == set()


def test_a_conversion_that_changes_weights_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = nn.Module.double

    def flipped(module: nn.Module) -> nn.Module:
        module.first.weight.data.copy_(module.first.weight.data.flip(0))
        return was(module)

    assert different(modules.moved, lambda: monkeypatch.setattr(nn.Module, "double", flipped)) == {"double"}


def test_a_part_that_stays_elsewhere_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    was = nn.Module.to

    def forgetful(module: nn.Module, *given: Any, **named: Any) -> nn.Module:
        module = was(module, *given, **named)
        module.register_buffer("cached", torch.ones(8, device="meta"), persistent=False)
        return module

    with pytest.raises(AssertionError, match=r"devices of a moved module: ..cpu., .meta.."):
        different(modules.moved, lambda: monkeypatch.setattr(nn.Module, "to", forgetful))


def test_a_state_that_is_not_loaded_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = nn.Module.to_empty

    def filled(module: nn.Module, **named: Any) -> nn.Module:
        module = was(module, **named)
        monkeypatch.setattr(module, "load_state_dict", lambda *_: [p.data.fill_(7) for p in module.parameters()])
        return module

    found = different(modules.materialized, lambda: monkeypatch.setattr(nn.Module, "to_empty", filled))
    assert found == {"emptied_and_loaded"}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("eye_", lambda weight: weight.zero_()),
        ("trunc_normal_", lambda weight, *_: weight.normal_()),
        ("kaiming_normal_", lambda weight, **_: weight.normal_(0, 0.1)),
        ("orthogonal_", lambda weight: weight.normal_()),
        ("xavier_uniform_", lambda weight: weight.uniform_(0, (6 / 800) ** 0.5)),
    ],
)
def test_an_initialization_that_is_wrong_is_found(
    name: str, wrong: Callable[..., torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        monkeypatch.setattr(nn.init, name, lambda weight, *given, **named: wrong(weight.detach(), *given, **named))

    assert different(modules.initialized, change) == {name}


def test_gradients_that_are_not_clipped_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def change() -> None:
        monkeypatch.setattr(nn.utils, "clip_grad_value_", lambda *_: None)

    assert different(modules.parametrized, change) == {"clipped"}
