"""Recurrent layers and their cells give CPU's states and gradients, with biases and without."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn


def states_and_gradients(module: nn.Module, x: torch.Tensor, device: str) -> list[torch.Tensor]:
    """Return all results of the module, and the gradients of its parameters and of ``x``, on CPU."""
    there, given = copy.deepcopy(module).to(device), x.detach().to(device).requires_grad_()
    results: list[torch.Tensor] = []

    def collect(value: object) -> None:
        if isinstance(value, tuple):
            for one in value:
                collect(one)
        elif isinstance(value, torch.Tensor):
            results.append(value)

    collect(there(given))
    torch.stack([t.square().sum() for t in results]).sum().backward()
    gradients = [t.grad for t in (given, *there.parameters()) if t.grad is not None]
    return [t.detach().cpu() for t in (*results, *gradients)]


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no_bias"])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN, nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_states_and_gradients_are_those_of_cpu(kind: type[nn.Module], bias: bool) -> None:
    module = kind(3, 4, bias=bias)
    x = torch.randn(2, 3) if kind.__name__.endswith("Cell") else torch.randn(5, 2, 3)
    cpu, npu = (states_and_gradients(module, x, device) for device in ("cpu", "npu"))
    assert len(cpu) == len(npu) > 3
    for one, other in zip(npu, cpu, strict=True):
        torch.testing.assert_close(one, other)


def test_a_cell_of_which_one_state_is_used_alone_has_its_gradient() -> None:
    module, x = nn.LSTMCell(3, 4), torch.randn(2, 3)
    for used in (0, 1):
        gradients = []
        for device in ("cpu", "npu"):
            given = x.detach().to(device).requires_grad_()
            copy.deepcopy(module).to(device)(given)[used].sum().backward()
            assert given.grad is not None
            gradients.append(given.grad.cpu())
        torch.testing.assert_close(*gradients)
