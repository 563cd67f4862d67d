"""Several threads that allocate, compute and free at the same time, as data loaders and servers do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch

THREADS, ROUNDS, TENSORS = 4, 300, 200


def run(device: str) -> dict[str, torch.Tensor]:
    """The norm of each thread's gradients, summed up over its rounds, [THREADS]."""
    with ThreadPoolExecutor(THREADS) as pool:
        return {"norms": torch.stack(list(pool.map(lambda n: _work(device, n), range(THREADS))))}


def _work(device: str, seed: int) -> torch.Tensor:
    """Many tensors in a call: Python's lock, which would let one thread run at a time, is not held within one."""
    parameters = [torch.ones(8, device=device, requires_grad=True) for _ in range(TENSORS)]
    for number, parameter in enumerate(parameters):
        parameter.grad = torch.full((8,), float(seed + number), device=device)
    total = torch.zeros((), device=device)
    for _ in range(ROUNDS):
        total += torch.nn.utils.clip_grad_norm_(parameters, 1e6, foreach=True)
    return total
