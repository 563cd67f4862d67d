"""Masks: ``masked_fill_`` in three lines, a decoder's attention mask, and bools stored as bytes other than 1."""

from __future__ import annotations

import torch

from conformance.scenarios.model import Results, scenario

BATCH, LENGTH = 2, 10
# Two rows with several true elements, one with none. Some true bytes have the lowest bit set, others do not.
BYTES = [[0, 2, 0, 0, 255, 0, 0, 128], [0] * 8, [2, 0, 4, 0, 8, 0, 16, 0]]


@scenario()
def masked_fill(device: str) -> Results:
    """Return the filled tensor, [2, 3]."""
    x = torch.ones((2, 3), device=device)
    mask = torch.tensor([[True, False, True], [False, True, False]], device=device)
    return {"filled": x.masked_fill_(mask, -1.0)}


@scenario()
def attention_mask(device: str) -> Results:
    """Return the causal and the combined mask, [B, 1, T, T], and the attention weights under them, [B, T, T]."""
    padding = torch.ones((BATCH, LENGTH), dtype=torch.int64, device=device)
    padding[1, :3] = 0
    allowed = torch.tril(torch.ones(LENGTH, LENGTH, dtype=torch.bool, device=device))
    causal = torch.full((BATCH, 1, LENGTH, LENGTH), float("-inf"), device=device)
    causal = causal.masked_fill_(allowed.unsqueeze(0).unsqueeze(0), 0.0)
    # As in models: a copy of an expanded tensor, then an op on a mask of many dimensions.
    padded = 1.0 - padding[:, None, None, :].expand(BATCH, 1, LENGTH, LENGTH).to(torch.float32)
    joined = causal.masked_fill(padded.to(torch.bool), torch.finfo(torch.float32).min)
    scores = torch.linspace(-2, 2, BATCH * LENGTH * LENGTH, device=device).view(BATCH, LENGTH, LENGTH)
    weights = (scores.transpose(-1, -2).contiguous() + joined.squeeze(1)).softmax(-1)
    return {"causal": causal, "joined": joined, "weights": weights, "rows_without_any": padding.sum(-1).eq(0).any()}


@scenario()
def odd_bools(device: str) -> Results:
    """Return the results of ops on bools that C libraries may store, [3, 8]. Every byte but 0 must count as true."""
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
