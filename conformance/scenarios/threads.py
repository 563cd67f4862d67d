"""Several threads that allocate, compute and free at the same time, as data loaders and servers do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch

THREADS, ROUNDS, TENSORS = 4, 400, 200


def run(device: str) -> dict[str, torch.Tensor]:
    """What each thread has summed up over its rounds, [THREADS, 8]."""
    with ThreadPoolExecutor(THREADS) as pool:
        return {"sums": torch.stack(list(pool.map(lambda n: _work(device, n), range(THREADS))))}


def _work(device: str, seed: int) -> torch.Tensor:
    """Many tensors in a call: Python's lock, which would let one thread run at a time, is not held within one."""
    held = [torch.full((8,), seed + number, dtype=torch.int64, device=device) for number in range(TENSORS)]
    total = torch.zeros(8, dtype=torch.int64, device=device)
    for number in range(ROUNDS):
        total += torch.stack(torch._foreach_add(torch._foreach_mul(held, number), seed)).sum(0)  # noqa: SLF001
    return total
