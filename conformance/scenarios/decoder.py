"""A small decoder with the structure of Qwen2, random weights, and greedy generation with a cache."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch.nn.functional import embedding, linear, scaled_dot_product_attention, silu

from conformance.scenarios.model import Results, scenario

TOKENS = 12  # new tokens of each generation
WORDS, WIDTH, INNER, LAYERS = 96, 64, 128, 2
HEADS, SHARED, SIZE = 4, 2, 16  # heads of queries, of keys and values, and the size of each
SCALE = 0.3  # standard deviation of the weights: large, so that the likeliest tokens lie far apart


class Layer(NamedTuple):
    """The weights of one layer. Its keys and values, [B, SHARED, T, SIZE], are in :class:`Cache`."""

    before_attention: torch.Tensor
    query: tuple[torch.Tensor, torch.Tensor]
    key: tuple[torch.Tensor, torch.Tensor]
    value: tuple[torch.Tensor, torch.Tensor]
    output: torch.Tensor
    before_inner: torch.Tensor
    gate: torch.Tensor
    up: torch.Tensor
    down: torch.Tensor


class Decoder:
    """The network. Its weights are drawn on CPU, and are the same each time."""

    def __init__(self, device: str) -> None:
        self._generator = torch.Generator().manual_seed(0)
        self._device = device
        self.words = self._drawn(WORDS, WIDTH)
        self.layers = [self._layer() for _ in range(LAYERS)]
        self.last = torch.ones(WIDTH, device=device)
        self.head = self._drawn(WORDS, WIDTH)
        powers = torch.arange(0, SIZE, 2, dtype=torch.float32, device=device) / SIZE
        self.frequencies = 1.0 / (10_000.0**powers)

    def _drawn(self, *size: int) -> torch.Tensor:
        return (torch.randn(size, generator=self._generator) * SCALE).to(self._device)

    def _with_bias(self, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self._drawn(rows, WIDTH), self._drawn(rows)

    def _layer(self) -> Layer:
        ones = torch.ones(WIDTH, device=self._device)
        query, key, value = (self._with_bias(heads * SIZE) for heads in (HEADS, SHARED, SHARED))
        output = self._drawn(WIDTH, HEADS * SIZE)
        return Layer(
            ones, query, key, value, output, ones.clone(),
            self._drawn(INNER, WIDTH), self._drawn(INNER, WIDTH), self._drawn(WIDTH, INNER),
        )  # fmt: skip

    def logits(
        self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, cache: Cache
    ) -> torch.Tensor:
        """Return the logits of the last token, [B, WORDS].

        ``ids`` and ``positions`` are [B, T]. ``mask`` is added to the scores of the attention.
        """
        angles = positions[:, :, None].to(torch.float32) * self.frequencies
        turned = torch.cat([angles, angles], -1)[:, None]
        turns = turned.cos(), turned.sin()
        hidden = embedding(ids, self.words)
        for number, layer in enumerate(self.layers):
            hidden = hidden + self._attention(layer, _norm(hidden, layer.before_attention), turns, mask, cache, number)
            inner = _norm(hidden, layer.before_inner)
            hidden = hidden + linear(silu(linear(inner, layer.gate)) * linear(inner, layer.up), layer.down)
        return linear(_norm(hidden[:, -1:], self.last), self.head)[:, -1]

    def _attention(
        self, layer: Layer, hidden: torch.Tensor, turns: Turns, mask: torch.Tensor | None, cache: Cache, number: int
    ) -> torch.Tensor:
        batch, length, _ = hidden.shape
        query, key, value = (
            linear(hidden, *of).view(batch, length, -1, SIZE).transpose(1, 2)
            for of in (layer.query, layer.key, layer.value)
        )
        key, value = cache.extended(number, _rotated(key, turns), value)
        repeated = [
            kept[:, :, None].expand(batch, SHARED, HEADS // SHARED, kept.shape[2], SIZE).reshape(batch, HEADS, -1, SIZE)
            for kept in (key, value)
        ]
        causal = mask is None and length > 1
        found = scaled_dot_product_attention(_rotated(query, turns), *repeated, attn_mask=mask, is_causal=causal)
        return linear(found.transpose(1, 2).contiguous().view(batch, length, HEADS * SIZE), layer.output)


class Cache:
    """The keys and values of all tokens so far, of each layer."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def extended(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Append the keys and values of new tokens. Return those of all tokens."""
        if layer in self._kept:
            keys, values = self._kept[layer]
            key, value = torch.cat([keys, key], 2), torch.cat([values, value], 2)
        self._kept[layer] = key, value
        return key, value


Turns = tuple[torch.Tensor, torch.Tensor]  # cosines and sines, [B, 1, T, SIZE]


def _norm(hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    variance = hidden.to(torch.float32).pow(2).mean(-1, keepdim=True)
    return weight * (hidden * torch.rsqrt(variance + 1e-6))


def _rotated(heads: torch.Tensor, turns: Turns) -> torch.Tensor:
    first, second = heads[..., : SIZE // 2], heads[..., SIZE // 2 :]
    cosines, sines = turns
    return heads * cosines + torch.cat([-second, first], -1) * sines


def _added_mask(given: torch.Tensor, length: int) -> torch.Tensor:
    """Return the mask to add to the scores of the last ``length`` tokens, [B, 1, length, T], for a mask [B, T]."""
    batch, total = given.shape
    lowest = torch.finfo(torch.float32).min
    columns = torch.arange(total, device=given.device)
    later = columns > columns[total - length :].reshape(-1, 1)
    causal = torch.full((length, total), lowest, device=given.device) * later
    causal = causal[None, None].expand(batch, 1, -1, -1).clone()
    padding = causal + given[:, None, None, :].to(causal.dtype)
    return causal.masked_fill(padding == 0, lowest)


@scenario(slow=True)
def generation(device: str) -> Results:
    """Return the tokens of a left-padded batch with its mask, and of one prompt without a mask: [B, T], int64.

    Besides, the logits of all steps, [B, TOKENS, WORDS].
    """
    network = Decoder(device)
    prompts = torch.tensor([[0, 0, 17, 5, 41, 8], [23, 9, 3, 30, 11, 2]])
    ids, mask = prompts.to(device), (prompts != 0).to(torch.int64).to(device)
    with torch.no_grad():
        masked, masked_logits = generate(network, ids, mask)
        plain, logits = generate(network, ids[1:], None)
    return {"masked": masked, "masked_logits": masked_logits, "unmasked": plain, "unmasked_logits": logits}


def generate(network: Decoder, ids: torch.Tensor, mask: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the prompt followed by the likeliest token of each step, and the logits of all steps."""
    cache, given = Cache(), mask if mask is not None else torch.ones_like(ids)
    new, steps = ids, []
    for _ in range(TOKENS):
        positions = (given.cumsum(-1) - 1).masked_fill(given == 0, 1)[:, -new.shape[1] :]
        added = None if mask is None else _added_mask(given, new.shape[1])
        steps.append(network.logits(new, positions, added, cache))
        new = steps[-1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, new], -1)
        given = torch.cat([given, given.new_ones((given.shape[0], 1))], -1)
    return ids, torch.stack(steps, 1)
