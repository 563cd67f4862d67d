"""A three-line ``masked_fill_`` on an expanded mask."""

from __future__ import annotations

import torch


def run(device: str) -> dict[str, torch.Tensor]:
    """Return the filled tensor, [2, 3]."""
    x = torch.ones((2, 3), device=device)
    mask = torch.tensor([[True, False, True], [False, True, False]], device=device)
    return {"filled": x.masked_fill_(mask, -1.0)}
