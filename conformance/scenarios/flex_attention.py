"""Flex attention with a mask or with changed scores: eager and compiled, on CPU and the device."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from conformance.scenarios.compiling import by_inductor
from conformance.scenarios.model import NotOffered, Results, first_line, scenario

#: Makes the arguments of a call on a device: queries, keys and values, and keyword arguments.
Arguments = Callable[[str], tuple[list[torch.Tensor], dict[str, Any]]]
#: Size of the batch, heads, queries and keys, and elements of a head. The last block of the mask is not full.
BATCH, HEADS, LENGTH, WIDTH = 2, 4, 150, 16


def _heads(count: int, seed: int, device: str) -> torch.Tensor:
    drawn = torch.randn(BATCH, count, LENGTH, WIDTH, generator=torch.Generator().manual_seed(seed))
    return drawn.to(device)


def _causal(device: str) -> tuple[list[torch.Tensor], dict[str, Any]]:
    from torch.nn.attention.flex_attention import create_block_mask  # loads a thousand modules

    def mask(b: torch.Tensor, h: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
        return q >= k

    blocks = create_block_mask(mask, None, None, LENGTH, LENGTH, device=device)
    return [_heads(HEADS, seed, device) for seed in range(3)], {"block_mask": blocks}


def _biased(device: str) -> tuple[list[torch.Tensor], dict[str, Any]]:
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625], device=device)

    def score(found: torch.Tensor, b: torch.Tensor, h: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
        return found + slopes[h] * (k - q)

    given = [_heads(HEADS, 0, device), _heads(HEADS // 2, 1, device), _heads(HEADS // 2, 2, device)]
    return given, {"score_mod": score, "enable_gqa": True}


def _compared(make: Arguments, device: str) -> Results:
    """Return the attention on a device, eager and compiled, and compiled for CPU. On CPU all are eager."""
    if torch.device(device) == torch.device("cpu"):
        eager = _attention(make, "cpu")
        return {"eager": eager, "compiled for CPU": eager, "compiled for device": eager}
    return {
        "eager": _attention(make, device),
        "compiled for CPU": _compiled(make, "cpu"),
        "compiled for device": _compiled(make, device),
    }


def _attention(make: Arguments, device: str, change: Callable[..., Any] | None = None) -> torch.Tensor | NotOffered:
    """Return the attention, copied to CPU; NotOffered if torch itself refuses the kind of device."""
    from torch.nn.attention.flex_attention import flex_attention

    called = change(flex_attention) if change else flex_attention
    given, named = make(device)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about calls that are not compiled
            found: torch.Tensor = called(*given, **named).cpu()
            return found
    except ValueError as e:
        if "only supported on" not in str(e):
            raise
        return NotOffered(first_line(e))


def _compiled(make: Arguments, device: str) -> torch.Tensor | NotOffered:
    """Return the attention that code compiled by Inductor computes; NotOffered if torch refuses the device."""
    refused = _attention(make, device)
    if isinstance(refused, NotOffered):
        return refused
    return by_inductor("flex_attention", device, lambda: _attention(make, device, torch.compile))


@scenario(slow=True, compiles=True)
def causal_attention(device: str) -> Results:
    """Attention with a block mask, of which one block is not full."""
    return _compared(_causal, device)


@scenario(slow=True, compiles=True)
def biased_attention(device: str) -> Results:
    """Attention of heads in groups, with a bias that is added to the scores from a captured tensor."""
    return _compared(_biased, device)
