"""The tensors of a call, made from the example inputs by the grid's descriptions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch

from conformance.aoti.model import Given


def make(givens: Sequence[Given], examples: Sequence[torch.Tensor], seed: int = 0) -> list[torch.Tensor]:
    """Return new tensors on their devices. The same arguments give the same tensors.

    A tensor has the values of its example if the sizes are equal and its elements do not overlap. Otherwise its values
    are drawn from the example's values, so that indices stay valid and masks stay masks. So are the values in gaps.
    """
    generator = torch.Generator().manual_seed(seed)
    return [_made(given, examples[given.source], generator) for given in givens]


def _made(given: Given, example: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    dtype = getattr(torch, given.dtype)
    values = example.detach().cpu()
    reached = 0 if 0 in given.size else 1 + sum((n - 1) * s for n, s in zip(given.size, given.stride, strict=True))
    storage = _drawn(values, given.offset + reached, generator).to(dtype)
    if given.device != "cpu":
        storage = storage.to(given.device)
    view = storage.as_strided(given.size, given.stride, given.offset)
    if given.size == tuple(example.shape) and _injective(given) and storage.device.type != "meta":
        view.copy_(values.to(dtype))
    return view


def _drawn(values: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    if values.numel() == 0:
        return torch.zeros(count, dtype=values.dtype)
    flat = values.reshape(-1)
    return flat[torch.randint(flat.numel(), (count,), generator=generator)]


def _injective(given: Given) -> bool:
    """Return whether the strides, in ascending order, prove that no two elements share memory."""
    if prod(given.size) == 0:
        return True
    reach = 0
    for stride, n in sorted((s, n) for s, n in zip(given.stride, given.size, strict=True) if n > 1):
        if stride <= reach:
            return False
        reach += stride * (n - 1)
    return True
