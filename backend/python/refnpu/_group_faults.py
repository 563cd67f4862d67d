"""The faults of process groups, in the results of their calls. A copy of the backend needs none of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

import torch
import torch.distributed as dist

from refnpu import _C

#: A tensor of the caller, and its value on the host, which gloo writes later.
Result = tuple[torch.Tensor, torch.Tensor]

_GATHERS = ("allgather", "allgather_coalesced")
_COALESCED_GATHERS = ("allgather_into_tensor_coalesced", "all_gather_single_coalesced")
_REDUCTIONS = ("allreduce", "allreduce_coalesced")
_SCATTERED_SUMS = ("_reduce_scatter_base", "reduce_scatter_single")


def with_faults(call: str, results: list[Result], sent: list[Any], group: dist.ProcessGroup) -> list[Result]:
    """Return the results of a call of a group, or wrong results if a fault of the call is awake."""
    if call == "recv" and _C.fault("received_tensor_dropped"):
        return []
    if call in _GATHERS and _C.fault("gathered_in_reverse"):
        tensors, values = zip(*results, strict=True)
        return list(zip(tensors, reversed(values), strict=True))
    if call in _COALESCED_GATHERS and _C.fault("coalesced_gather_of_first"):
        return [_of_first(result, group.size()) for result in results]
    if _C.fault("group_result_to_strided_lost"):
        return [result for result in results if result[0].is_contiguous()]
    if call in _SCATTERED_SUMS and _C.fault("scattered_sum_of_own"):
        return [(results[0][0], sent[0].chunk(group.size())[group.rank()])]
    return results


def with_mistaken_options(call: str, sent: list[Any]) -> list[Any]:
    """Return the arguments of a call that gloo does not write, with wrong options if a fault of the call is awake."""
    if call in _REDUCTIONS and _C.fault("group_reduce_op_ignored"):
        for options in sent:
            if hasattr(options, "reduceOp"):
                options.reduceOp = dist.ReduceOp.SUM
    if call == "broadcast" and _C.fault("group_broadcast_of_first"):
        for options in sent:
            if hasattr(options, "rootRank"):
                options.rootRank = 0
    if call in ("alltoall_base", "all_to_all_single") and _C.fault("group_splits_ignored"):
        return [[] if isinstance(x, list) and all(isinstance(n, int) for n in x) else x for x in sent]
    return sent


def count_root_in_world(sent: list[Any], ranks: list[int]) -> None:
    """Replace the root in the options of a call as if it were a rank of the world, by its index in ``ranks``."""
    for options in sent:
        if getattr(options, "rootRank", None) in ranks:
            options.rootRank = ranks.index(options.rootRank)


def in_memory_order(dense: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same sizes with the elements in the order of memory, whatever the strides are."""
    return dense.as_strided(dense.shape, torch.empty(dense.shape, device="meta").stride())


def _of_first(result: Result, size: int) -> Result:
    """Return a result whose parts are all equal to the first part."""
    tensor, value = (x.view(size, -1) for x in result)
    return tensor, value[:1].expand_as(value)


class _Left(dist.Work):
    """A handle that does not wait for its call. The process keeps all such handles."""

    _all: ClassVar[list[_Left]] = []

    def __init__(self, work: dist.Work) -> None:
        super().__init__()
        self._work = work
        self._all.append(self)

    def wait(self, *_: timedelta) -> bool:
        """Return at once."""
        return True

    def is_completed(self) -> bool:
        """Return True."""
        return True


def barrier_with_faults(work: dist.Work) -> dist.Work:
    """Return the handle of a barrier, or a handle that does not wait if the fault is awake."""
    return _Left(work) if _C.fault("group_barrier_not_awaited") else work
