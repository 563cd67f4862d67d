"""The negative log-likelihood loss and its gradient equal CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from against_cpu import FLOATS, LAYOUTS, check, values
from test_reduce import compare

aten: Any = torch.ops.aten
TARGET = torch.tensor([2, 0, -100, 1])


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_nll_loss_and_its_gradient_equal_cpu(dtype: torch.dtype, layout: str, reduction: int) -> None:
    place = LAYOUTS[layout]
    self, target = place(values(4, 3, dtype=dtype)), place(TARGET)
    for weight in (None, place(values(3, dtype=dtype, seed=1))):
        compare(aten.nll_loss_forward, self, target, weight, reduction, -100)
        compare(aten.nll_loss_forward, self[0], target[0], weight, reduction, -100)
        total = torch.tensor(3.0).to(dtype)
        grad = values(4, dtype=dtype, seed=2) if reduction == 0 else total
        compare(aten.nll_loss_backward, grad, self, target, weight, reduction, -100, total)
        compare(aten.nll_loss_backward, total, self[0], target[0], weight, reduction, -100, total)
    check(aten.nll_loss_forward, self, target, None, reduction, 0)
    compare(aten.nll_loss_forward, self[:0], target[:0], None, reduction, -100)


def test_cross_entropy_and_its_gradient_equal_cpu() -> None:
    def gradients(logits: torch.Tensor, target: torch.Tensor) -> list[torch.Tensor]:
        logits = logits.detach().requires_grad_()
        loss = torch.nn.functional.cross_entropy(logits, target)
        loss.backward()
        return [loss.detach(), logits.grad]  # type: ignore[list-item]

    compare(gradients, values(4, 3), TARGET)
