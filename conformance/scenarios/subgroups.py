"""Process groups of some of three processes, and the ranks of their members."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from conformance.scenarios.groups import called, in_a_group
from conformance.scenarios.model import Results, scenario

OF_ALL_GROUPS = 3
#: The members of each group, by their ranks among all processes.
MEMBERS = ((1, 2), (0, 2), (2,), (0, 1, 2))


@scenario(exact=True, slow=True, area="distributed")
def ranks_in_subgroups(device: str) -> Results:
    """In a group of some of three processes, calls name processes by their ranks among all of them."""
    return in_a_group(device, _in_subgroups, OF_ALL_GROUPS)


def _in_subgroups(device: str) -> Results:
    from torch import distributed as dist

    results: Results = {}
    for ranks in MEMBERS:
        group = dist.new_group(list(ranks))
        for name, call in _IN_A_GROUP.items() if dist.get_rank() in ranks else ():
            for root in ranks:
                named = f"{name} of {ranks} at {root}"
                results[named] = called(named, partial(call, dist, group, ranks, root), device)
    return results


def _broadcast(dist: Any, group: Any, _: Sequence[int], root: int, x: torch.Tensor) -> torch.Tensor:
    dist.broadcast(x, src=root, group=group)
    return x


def _reduced(dist: Any, group: Any, _: Sequence[int], root: int, x: torch.Tensor) -> torch.Tensor:
    dist.reduce(x, dst=root, group=group)
    return x if dist.get_rank() == root else torch.zeros(1)


def _gathered(dist: Any, group: Any, ranks: Sequence[int], root: int, x: torch.Tensor) -> torch.Tensor:
    outputs = [torch.zeros_like(x) for _ in ranks] if dist.get_rank() == root else None
    dist.gather(x, outputs, dst=root, group=group)
    return torch.cat(outputs) if outputs else torch.zeros(1)


def _scattered(dist: Any, group: Any, ranks: Sequence[int], root: int, x: torch.Tensor) -> torch.Tensor:
    output, inputs = torch.zeros_like(x), [x + rank for rank in ranks] if dist.get_rank() == root else None
    dist.scatter(output, inputs, src=root, group=group)
    return output


def _all_gathered(dist: Any, group: Any, ranks: Sequence[int], root: int, x: torch.Tensor) -> torch.Tensor:
    outputs = [torch.zeros_like(x) for _ in ranks]
    dist.all_gather(outputs, x + root, group=group)
    return torch.cat(outputs)


def _sent(dist: Any, group: Any, ranks: Sequence[int], root: int, x: torch.Tensor) -> torch.Tensor:
    others = [rank for rank in ranks if rank != root]
    if dist.get_rank() == root:
        for other in others:
            dist.send(x + other, dst=other, group=group)
    else:
        dist.recv(x, src=root, group=group)
    return x


_IN_A_GROUP: dict[str, Callable[..., torch.Tensor]] = {
    "broadcast": _broadcast, "reduce": _reduced, "gather": _gathered,
    "scatter": _scattered, "all_gather": _all_gathered, "send and recv": _sent,
}  # fmt: skip
