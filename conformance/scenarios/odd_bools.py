"""Bools stored as bytes other than 1, as C libraries may produce them. Ops must treat them as true."""

from __future__ import annotations

import torch

# Two rows of several, one of none: true as a byte with its lowest bit set, and without.
BYTES = [[0, 2, 0, 0, 255, 0, 0, 128], [0] * 8, [2, 0, 4, 0, 8, 0, 16, 0]]


def run(device: str) -> dict[str, torch.Tensor]:
    """Return the results of ops on the flags, [3, 8], with bools as integers."""
    flags = torch.tensor(BYTES, dtype=torch.uint8, device=device).view(torch.bool)
    values = torch.linspace(-1, 1, flags.numel(), device=device).view(flags.shape)
    return {
        "any": flags.any(-1).to(torch.int64),
        "any_at_all": flags.any().to(torch.int64),
        "all": flags[:, 1:2].all(-1).to(torch.int64),
        "not": flags.logical_not().to(torch.int64),
        "sum": flags.sum(-1),
        "where": torch.where(flags, values, 0.0),
        "masked_fill": values.masked_fill(flags, 5.0),
        "masked_select": values[flags],
        "to_float": flags.to(torch.float32),
        "equal_to_true": (flags == torch.ones_like(flags)).to(torch.int64),
    }
