"""Several threads that allocate, compute and free concurrently, like data loaders and servers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch

THREADS, ROUNDS, TENSORS = 4, 300, 200


def run(device: str) -> dict[str, torch.Tensor]:
    """Return the norm of each thread's gradients, summed over its rounds, [THREADS]."""
    with ThreadPoolExecutor(THREADS) as pool:
        return {"norms": torch.stack(list(pool.map(lambda n: _work(device, n), range(THREADS))))}


def _work(device: str, seed: int) -> torch.Tensor:
    """Compute with many tensors in one call: during the call, Python's lock is released."""
    parameters = [torch.ones(8, device=device, requires_grad=True) for _ in range(TENSORS)]
    for number, parameter in enumerate(parameters):
        parameter.grad = torch.full((8,), float(seed + number), device=device)
    total = torch.zeros((), device=device)
    for _ in range(ROUNDS):
        total += torch.nn.utils.clip_grad_norm_(parameters, 1e6, foreach=True)
    return total
