"""Greedy generation by a small Qwen2 with random weights, with and without an attention mask."""

from __future__ import annotations

from typing import Any

import torch

NEEDS = "transformers"
TOKENS = 12  # new tokens of each generation


def run(device: str) -> dict[str, torch.Tensor]:
    """Return the tokens of a left-padded batch with its mask, and of one prompt without a mask: [B, T], int64."""
    network = model().to(device)
    prompts = torch.tensor([[0, 0, 17, 5, 41, 8], [23, 9, 3, 30, 11, 2]])
    mask = (prompts != 0).to(torch.int64).to(device)
    ids = prompts.to(device)
    return {"masked": generate(network, ids, attention_mask=mask), "unmasked": generate(network, ids[1:])}


def model() -> Any:
    """Return the same network each time, on CPU. It is made from a config, so nothing is downloaded."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=96, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.3,
        bos_token_id=None, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    network: Any = Qwen2ForCausalLM(config)
    return network.eval()


def generate(network: Any, ids: torch.Tensor, **inputs: torch.Tensor) -> torch.Tensor:
    """Return the prompt and the continuation with the likeliest token at each step."""
    with torch.no_grad():
        tokens: torch.Tensor = network.generate(ids, do_sample=False, max_new_tokens=TOKENS, **inputs)
    return tokens
