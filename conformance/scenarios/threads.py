"""Several threads that allocate, compute and free concurrently, like data loaders and servers."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import torch

from conformance.scenarios.model import Results, scenario

THREADS, ROUNDS, TENSORS = 4, 300, 200
# A slow device, such as a simulator or a device with injected delays, does fewer rounds, with the same results.
SECONDS = 20.0


@scenario(slow=True)
def clipped_gradients(device: str) -> Results:
    """Return what each thread made: the parameters and gradients, [TENSORS, 8], and the extreme norms, [2].

    The norm is the same in each round, so the smallest and the largest show a wrong one.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        made = list(pool.map(lambda n: _work(device, n), range(THREADS)))
    return {
        f"{name}_of_{number}": torch.stack([tensor.detach().cpu() for tensor in tensors])
        for number, found in enumerate(made)
        for name, tensors in found.items()
    }


def _work(device: str, seed: int) -> dict[str, list[torch.Tensor]]:
    """Return the results of calls that compute with many tensors each. During a call, Python's lock is released."""
    parameters = [torch.ones(8, device=device, requires_grad=True) for _ in range(TENSORS)]
    gradients = [torch.full((8,), float(seed + number), device=device) for number in range(TENSORS)]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    norms: list[torch.Tensor] = []
    end = time.monotonic() + SECONDS
    while not norms or (len(norms) < ROUNDS and time.monotonic() < end):
        norms.append(torch.nn.utils.clip_grad_norm_(parameters, 1e6, foreach=True))
    fetched = torch.stack([norm.cpu() for norm in norms])
    return {"parameters": [*parameters], "gradients": gradients, "norms": [fetched.min(), fetched.max()]}
