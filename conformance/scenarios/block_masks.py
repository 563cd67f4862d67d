"""Block masks of attention: ``create_block_mask`` gives the same blocks eagerly and compiled, on CPU and the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from conformance.scenarios.compiling import by_inductor
from conformance.scenarios.model import NotOffered, Results, scenario

Mask = Callable[..., torch.Tensor]
#: Number of queries and of keys, size of the batch, and side of a block in elements. The last blocks are not full.
LENGTH, BATCH, BLOCK = 300, 2, 128
#: The tensors of a block mask.
_PARTS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices")


def causal(document: torch.Tensor, length: torch.Tensor) -> Mask:  # noqa: ARG001 - all masks have the same arguments
    """Return a mask in which a query sees the keys up to its own position."""
    return lambda b, h, q, k: q >= k  # noqa: ARG005 - the signature of a mask, also below


def sliding_window(document: torch.Tensor, length: torch.Tensor) -> Mask:  # noqa: ARG001 - as above
    """Return a mask in which a query sees the last 100 keys up to its own position."""
    return lambda b, h, q, k: (q >= k) & (q - k < 100)  # noqa: ARG005


def documents(document: torch.Tensor, length: torch.Tensor) -> Mask:  # noqa: ARG001 - as above
    """Return a mask in which a query sees the earlier keys of its own document. A sequence has several."""
    return lambda b, h, q, k: (q >= k) & (document[q] == document[k])  # noqa: ARG005


def padding(document: torch.Tensor, length: torch.Tensor) -> Mask:  # noqa: ARG001 - as above
    """Return a mask in which a query sees no padding. Each member of the batch has its own length."""
    return lambda b, h, q, k: k < length[b]  # noqa: ARG005


def _blocks(make: Callable[..., Mask], device: str, *, compiles: bool) -> Results:
    from torch.nn.attention.flex_attention import create_block_mask  # loads a thousand modules

    create = torch.compile(create_block_mask) if compiles else create_block_mask
    document, length = (torch.arange(LENGTH) // 130).to(device), torch.tensor([LENGTH, 90]).to(device)
    mask = create(make(document, length), BATCH, None, LENGTH, LENGTH, device=device, BLOCK_SIZE=BLOCK)
    return {part: _sorted_out(mask, part) for part in _PARTS}


def _sorted_out(mask: Any, part: str) -> torch.Tensor:
    """Return a tensor of a block mask, with -1 for the indices that its block counts do not reach.

    Such indices have no meaning.
    """
    found: torch.Tensor = getattr(mask, part).cpu()
    if not part.endswith("indices"):
        return found
    counts = getattr(mask, part.replace("indices", "num_blocks")).cpu()
    return found.masked_fill(torch.arange(found.shape[-1]) >= counts[..., None], -1)


def _compared(make: Callable[..., Mask], device: str) -> Results:
    """Return the blocks on a device, eager and compiled, and compiled for CPU. On CPU all are eager."""
    eager = _blocks(make, device, compiles=False)
    found: Results = {f"eager: {name}": tensor for name, tensor in eager.items()}
    for side in ("CPU", "device"):
        if torch.device(device) == torch.device("cpu"):
            compiled = eager
        else:
            compiled = _compiled(make, "cpu" if side == "CPU" else device)
        found |= {f"compiled for {side}: {name}": tensor for name, tensor in compiled.items()}
    return found


def _compiled(make: Callable[..., Mask], device: str) -> Results:
    """Return the blocks that code compiled by Inductor computes, or NotOffered for each."""
    found = by_inductor("create_block_mask", device, lambda: _blocks(make, device, compiles=True))
    return dict.fromkeys(_PARTS, found) if isinstance(found, NotOffered) else found


@scenario(exact=True, slow=True, compiles=True)
def causal_blocks(device: str) -> Results:
    """The blocks of a causal mask."""
    return _compared(causal, device)


@scenario(exact=True, slow=True, compiles=True)
def sliding_window_blocks(device: str) -> Results:
    """The blocks of a sliding window."""
    return _compared(sliding_window, device)


@scenario(exact=True, slow=True, compiles=True)
def document_blocks(device: str) -> Results:
    """The blocks of a mask of documents."""
    return _compared(documents, device)


@scenario(exact=True, slow=True, compiles=True)
def padding_blocks(device: str) -> Results:
    """The blocks of a mask of padding."""
    return _compared(padding, device)
