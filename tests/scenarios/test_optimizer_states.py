"""Optimizers with further settings: an ignored setting and a lost state are found."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import optimizer_states
from conformance.scenarios.model import Program
from tests.scenarios.altered import different

PROGRAMS = (optimizer_states.steps_with_settings, optimizer_states.states_that_move)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gives_the_same_results_again(program: Program) -> None:
    assert different(program, lambda: None) == set()


def test_a_list_of_tensors_that_leaves_one_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = torch._foreach_lerp_

    def short(tensors: Any, *given: Any) -> None:
        was(tensors[1:], *[g[1:] if isinstance(g, (list, tuple)) else g for g in given])

    found = different(optimizer_states.steps_with_settings, lambda: monkeypatch.setattr(torch, "_foreach_lerp_", short))
    assert found
    assert all(name.endswith("_foreach") for name in found)


def test_a_state_that_is_not_loaded_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(optimizer: torch.optim.Optimizer, _: Any) -> None:
        optimizer.state.clear()

    found = different(
        optimizer_states.states_that_move,
        lambda: monkeypatch.setattr(torch.optim.Optimizer, "load_state_dict", forget),
    )
    assert {name.partition(".")[0] for name in found} == set(optimizer_states.MOVED)


def test_a_state_that_is_elsewhere_is_an_error() -> None:
    parameter = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], momentum=0.5)
    optimizer.state[parameter] = {"momentum_buffer": torch.ones(2, device="meta")}
    with pytest.raises(AssertionError, match="momentum_buffer is on meta"):
        optimizer_states.row_of(optimizer, [parameter])
