"""The attention mask of a decoder: the causal mask, combined with the padding of a batch."""

from __future__ import annotations

import torch

BATCH, LENGTH = 2, 10


def run(device: str) -> dict[str, torch.Tensor]:
    """Return the causal and the combined mask, [B, 1, T, T], and the attention weights under them, [B, T, T]."""
    padding = torch.ones((BATCH, LENGTH), dtype=torch.int64, device=device)
    padding[1, :3] = 0
    allowed = torch.tril(torch.ones(LENGTH, LENGTH, dtype=torch.bool, device=device))
    causal = torch.full((BATCH, 1, LENGTH, LENGTH), float("-inf"), device=device)
    causal = causal.masked_fill_(allowed.unsqueeze(0).unsqueeze(0), 0.0)
    # Like the code of models: a copy of an expanded tensor, then an op on a mask of many dimensions.
    padded = 1.0 - padding[:, None, None, :].expand(BATCH, 1, LENGTH, LENGTH).to(torch.float32)
    joined = causal.masked_fill(padded.to(torch.bool), torch.finfo(torch.float32).min)
    scores = torch.linspace(-2, 2, BATCH * LENGTH * LENGTH, device=device).view(BATCH, LENGTH, LENGTH)
    weights = (scores.transpose(-1, -2).contiguous() + joined.squeeze(1)).softmax(-1)
    return {"causal": causal, "joined": joined, "weights": weights, "rows_without_any": padding.sum(-1).eq(0).any()}
