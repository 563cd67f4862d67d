"""The small models that are tried if a user gives none."""

from __future__ import annotations

import torch

Made = tuple[torch.nn.Module, tuple[torch.Tensor, ...], object]


class Masked(torch.nn.Module):
    """Linear layers, a mask and a softmax: kernels of a library, and fused ones. x [n, 16], mask bool [n, 8]."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 8), torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return probabilities [n, 4], and the hidden values [n, 8]."""
        hidden = torch.relu(self.first(x)).masked_fill(mask, 0.0)
        return torch.softmax(self.second(hidden), -1), hidden


def static() -> Made:
    """Return the model with a fixed batch of 4."""
    return Masked(), (torch.randn(4, 16), torch.rand(4, 8) < 0.5), None


def dynamic() -> Made:
    """Return the model with a batch of 2 to 64."""
    batch = torch.export.Dim("batch", min=2, max=64)
    return Masked(), (torch.randn(4, 16), torch.rand(4, 8) < 0.5), {"x": {0: batch}, "mask": {0: batch}}


MODELS = tuple(f"{__name__}:{make.__name__}" for make in (static, dynamic))
