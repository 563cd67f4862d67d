"""Collective calls that are drawn: kinds, dtypes, sizes, layouts, groups, and ways to wait for several in flight.

All processes draw the same calls. The values are small integers, so the order of a sum does not change a bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import torch

from conformance.scenarios.busy_streams import busy_stream, synchronize
from conformance.scenarios.groups import NOT_STRIDED, NOT_SUPPORTED, PROCESSES, in_a_group
from conformance.scenarios.model import Broken, NotOffered, Results, first_line, name_of, offered, scenario

BATCHES = 100
POLLS = 100  # one per millisecond
IN_FLIGHT = 3  # calls of a batch, at most
REAL_DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.uint8,
    torch.bool,
)  # fmt: skip
SHAPES = ((), (0,), (1,), (5,), (3, 4), (2, 3, 4), (4, 1), (1000,), (129, 65), (70_001,))
FORMS = ("dense", "dense", "dense", "offset", "turned", "every second", "expanded")
REDUCTIONS = ("SUM", "PRODUCT", "MIN", "MAX")
OF_FLOATS, OF_INTEGERS = (*REDUCTIONS, "AVG"), (*REDUCTIONS, "BAND", "BOR", "BXOR")
WAITS = ("at once", "wait", "wait", "future", "polled")
SENT = "isend and irecv"
GATHER = "gather"  # gloo lacks it for complex numbers, so CPU has no result to compare with
#: Parts of the messages with which torch and backends refuse reductions and dtypes that a group does not have.
NOT_OF_ALL = ("Cannot use ReduceOp", "nsupported", "Unconvertible")
GROUPS = ("", "", "a group of both", "a group of its own")


@dataclass(frozen=True, slots=True)
class Call:
    """A drawn call. ``root``: the rank of the process that alone gives or gets values."""

    kind: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    form: str  # of each tensor; a tensor that the call writes is never expanded
    op: str
    root: int
    group: str
    waits: str
    first: int  # where the values begin

    def __str__(self) -> str:
        told = [f"{name_of(self.dtype)} {list(self.shape)}", self.form, self.group]
        told += [self.op] if self.kind in _REDUCING else []
        told += [f"root {self.root}"] if self.kind in _ROOTED else []
        told += ["" if self.waits == "at once" else f"async, {self.waits}"]
        return f"{self.kind}({', '.join(filter(None, told))})"


@dataclass(frozen=True, slots=True)
class Started:
    """A call in flight: the tensors that it writes, those that it must only read, and its handle."""

    written: list[torch.Tensor]
    read: list[tuple[torch.Tensor, torch.Tensor]]  # each with the values on the host that it was given
    work: Any


#: The tensors that a call writes, and its handle.
Begun = tuple[list[torch.Tensor], Any]
#: A call that has ended, successfully or not.
Ended = Started | Broken | NotOffered


class Caller:
    """The process that starts drawn calls as a member of a group, with tensors of a device."""

    def __init__(self, device: str) -> None:
        from torch import distributed as dist  # slow to import

        self.dist, self.device, self.rank = dist, device, dist.get_rank()
        alone = [dist.new_group([i]) for i in range(PROCESSES)]
        self._groups = {"": None, "a group of both": dist.new_group(list(range(PROCESSES)))}
        self._groups["a group of its own"] = alone[self.rank]
        self._given: list[tuple[torch.Tensor, torch.Tensor]] = []  # tensors of the call that is being started

    def start(self, call: Call) -> Started:
        """Start a call. Raises what torch or the backend raises."""
        self._given = []
        written, work = KINDS[call.kind](self, call)
        return Started(written, self._given, work)

    def named(self, call: Call) -> dict[str, Any]:
        """Return the arguments for the group, and for whether the call is asynchronous."""
        return {"group": self._groups[call.group], "async_op": call.waits != "at once"}

    def root(self, call: Call) -> int:
        """Return the rank of the process that alone gives or gets values."""
        return self.rank if self.processes(call) == 1 else call.root

    def processes(self, call: Call) -> int:
        """Return the number of processes in the group of a call."""
        return 1 if call.group == "a group of its own" else PROCESSES

    def reduction(self, call: Call) -> Any:
        """Return the reduction of a call, a member of ``torch.distributed.ReduceOp``."""
        return getattr(self.dist.ReduceOp, call.op)

    def given(self, call: Call, number: int = 0, shape: tuple[int, ...] | None = None) -> torch.Tensor:
        """Return a tensor that this process gives. Its values depend on ``number`` and on the rank."""
        shape = call.shape if shape is None else shape
        numel = torch.Size(shape).numel()
        first = call.first + 3 * self.rank + 7 * number
        values = torch.arange(first, first + numel).remainder_(5).view(shape)
        values = values > 1 if call.dtype is torch.bool else values.to(call.dtype)
        if call.form == "expanded" and shape:
            values = values[:1].expand(shape)
        is_expanded = call.form == "expanded" and shape and self.device != "cpu"
        x = values[:1].to(self.device).expand(shape) if is_expanded else self._lying(values, call.form)
        self._given.append((x, values))
        return x

    def zeros(self, call: Call, shape: tuple[int, ...] | None = None) -> torch.Tensor:
        """Return a tensor for a call to write."""
        shape = call.shape if shape is None else shape
        return self._lying(torch.zeros(shape, dtype=call.dtype), "dense" if call.form == "expanded" else call.form)

    def _lying(self, values: torch.Tensor, form: str) -> torch.Tensor:
        """Return values on the device in a form. They are dense on CPU: gloo treats strided tensors as dense ones."""
        x = values.contiguous().to(self.device)
        if self.device == "cpu" or form == "dense":
            return x
        if form == "turned" and x.dim() > 1:
            return x.new_empty(tuple(reversed(x.shape))).permute(*reversed(range(x.dim()))).copy_(x)
        step = 2 if form == "every second" else 1
        storage = x.new_zeros(1 + step * x.numel() + 2)
        return storage[1 : 1 + step * x.numel() : step].view(x.shape).copy_(x)


def _all_reduce(at: Caller, call: Call) -> Begun:
    x = at.zeros(call).copy_(at.given(call))
    return [x], at.dist.all_reduce(x, op=at.reduction(call), **at.named(call))


def _reduce(at: Caller, call: Call) -> Begun:
    x = at.zeros(call).copy_(at.given(call))
    work = at.dist.reduce(x, dst=at.root(call), op=at.reduction(call), **at.named(call))
    return [x] if at.rank == at.root(call) else [], work  # the others' tensors are not defined


def _broadcast(at: Caller, call: Call) -> Begun:
    x = at.zeros(call).copy_(at.given(call))
    return [x], at.dist.broadcast(x, src=at.root(call), **at.named(call))


def _all_gather(at: Caller, call: Call) -> Begun:
    outputs, x = [at.zeros(call) for _ in range(at.processes(call))], at.given(call)
    return outputs, at.dist.all_gather(outputs, x, **at.named(call))


def _all_gather_into_tensor(at: Caller, call: Call) -> Begun:
    x, (first, *others) = at.given(call), call.shape or (1,)
    output = at.zeros(call, (at.processes(call) * first, *others))
    return [output], at.dist.all_gather_into_tensor(output, x, **at.named(call))


def _gather(at: Caller, call: Call) -> Begun:
    x, gets = at.given(call), at.rank == at.root(call)
    outputs = [at.zeros(call) for _ in range(at.processes(call))] if gets else []
    work = at.dist.gather(x, outputs if gets else None, dst=at.root(call), **at.named(call))
    return outputs, work


def _scatter(at: Caller, call: Call) -> Begun:
    output, gives = at.zeros(call), at.rank == at.root(call)
    inputs = [at.given(call, number) for number in range(at.processes(call))] if gives else []
    work = at.dist.scatter(output, inputs if gives else None, src=at.root(call), **at.named(call))
    return [output], work


def _reduce_scatter(at: Caller, call: Call) -> Begun:
    output, inputs = at.zeros(call), [at.given(call, number) for number in range(at.processes(call))]
    work = at.dist.reduce_scatter(output, inputs, op=at.reduction(call), **at.named(call))
    return [output], work


def _reduce_scatter_tensor(at: Caller, call: Call) -> Begun:
    first, *others = call.shape or (1,)  # torch's gloo crashes if an output has no dimensions
    output, x = at.zeros(call, (first, *others)), at.given(call, shape=(at.processes(call) * first, *others))
    work = at.dist.reduce_scatter_tensor(output, x, op=at.reduction(call), **at.named(call))
    return [output], work


def _all_to_all_single(at: Caller, call: Call) -> Begun:
    first, *others = call.shape or (1,)
    shape = (at.processes(call) * first, *others)
    x, output = at.given(call, shape=shape), at.zeros(call, shape)
    return [output], at.dist.all_to_all_single(output, x, **at.named(call))


def _all_to_all_uneven(at: Caller, call: Call) -> Begun:
    """Start a call in which process 0 sends one row to itself and two to process 1, and gets three."""
    _, *others = call.shape or (1,)
    rows, rank = ([[1, 2], [3, 0]], at.rank) if at.processes(call) > 1 else ([[2]], 0)
    sent, received = rows[rank], [row[rank] for row in rows]
    x, output = at.given(call, shape=(sum(sent), *others)), at.zeros(call, (sum(received), *others))
    return [output], at.dist.all_to_all_single(output, x, received, sent, **at.named(call))


def _all_to_all(at: Caller, call: Call) -> Begun:
    numbers = range(at.processes(call))
    inputs, outputs = [at.given(call, number) for number in numbers], [at.zeros(call) for _ in numbers]
    return outputs, at.dist.all_to_all(outputs, inputs, **at.named(call))


def _sent(at: Caller, call: Call) -> Begun:
    """Start a send from the root to the other process, or an all_reduce if the group has one process."""
    if at.processes(call) == 1:
        return _all_reduce(at, call)
    other, group = 1 - at.rank, at.named(call)["group"]
    if at.rank == call.root:
        x = at.given(call)
        return [], at.dist.isend(x, dst=other, group=group)
    output = at.zeros(call)
    return [output], at.dist.irecv(output, src=other, group=group)


KINDS: dict[str, Callable[[Caller, Call], Begun]] = {
    "all_reduce": _all_reduce,
    "reduce": _reduce,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "all_gather_into_tensor": _all_gather_into_tensor,
    GATHER: _gather,
    "scatter": _scatter,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_tensor": _reduce_scatter_tensor,
    "all_to_all_single": _all_to_all_single,
    "all_to_all_single, uneven": _all_to_all_uneven,
    "all_to_all": _all_to_all,
    SENT: _sent,
}
_REDUCING = frozenset({"all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor"})
_ROOTED = frozenset({"reduce", "broadcast", GATHER, "scatter", SENT})


@scenario(exact=True, slow=True, area="distributed")
def drawn_collectives(device: str) -> Results:
    """Collective calls that are drawn with a seed, several of them in flight, give what CPU gives."""
    return in_a_group(device, _calls)


def _calls(device: str) -> Results:
    at, results = Caller(device), Results()
    has_streams = isinstance(offered(partial(_on_a_stream, device)), torch.Tensor)
    for number, batch in enumerate(_drawn()):
        with busy_stream(device) if batch.busy and has_streams else nullcontext():
            found = [_tried(device, call, partial(at.start, call)) for call in batch.calls]
            for i in batch.order:
                if isinstance(started := found[i], Started):
                    found[i] = _tried(device, batch.calls[i], partial(_waited, device, batch, batch.calls[i], started))
        synchronize(device)
        for i, (call, ended) in enumerate(zip(batch.calls, found)):
            results[f"{number}.{i} {call}"] = _result(call, ended, device)
    return results


def _on_a_stream(device: str) -> torch.Tensor:
    with busy_stream(device):
        return torch.tensor(True)


def _result(call: Call, ended: Ended, device: str) -> torch.Tensor | Broken | NotOffered:
    """Return the tensors that a call has written. If it changed a tensor that it must only read, return Broken."""
    if not isinstance(ended, Started):
        return ended
    if device != "cpu" and not all(torch.equal(x.cpu(), values) for x, values in ended.read):
        return Broken((str(call), "assert that it has changed nothing that it reads"), 1, None)
    return torch.cat([x.cpu().flatten() for x in ended.written]) if ended.written else torch.empty(0)


def _tried(device: str, call: Call, work: Callable[[], Started]) -> Ended:
    """Start a call or wait for it. Return the call, or the reason why it failed.

    CPU need not support each kind of call, so a failure on CPU is always NotOffered.
    """
    try:
        return work()
    except (RuntimeError, ValueError) as e:
        if device == "cpu" or any(words in str(e) for words in (*NOT_SUPPORTED, NOT_STRIDED, *NOT_OF_ALL)):
            return NotOffered(first_line(e))
        return Broken((str(call),), 0, (type(e).__name__, first_line(e)))


@dataclass(frozen=True, slots=True)
class Batch:
    """Calls that are in flight together. ``busy``: whether they are on a stream that has other work."""

    calls: list[Call]
    order: list[int]  # the order in which they are waited for
    busy: bool


def _waited(device: str, batch: Batch, call: Call, started: Started) -> Started:
    """Wait for a call as it was drawn. The result of a completed call is available on the default stream.

    On CPU always use ``wait``: some handles have no future there, and a failed call counts as completed.
    """
    waits = "wait" if device == "cpu" or call.kind == SENT else call.waits
    if started.work is None:
        return started
    if waits == "future":
        started.work.get_future().wait()
    elif waits == "wait" or batch.busy or not _is_completed(started.work):
        started.work.wait()
    return started


def _is_completed(work: Any) -> bool:
    """Return whether a call soon reports that it is completed. Some gloo handles do so only after a wait."""
    for _ in range(POLLS):
        if work.is_completed():
            return True
        time.sleep(0.001)
    return False


def _drawn() -> Iterator[Batch]:
    """Yield the batches, the same in each process."""
    chance = Random(0)
    for _ in range(BATCHES):
        calls = [_one(chance) for _ in range(1 + int(chance.random() * IN_FLIGHT))]
        yield Batch(calls, chance.sample(range(len(calls)), len(calls)), chance.random() < 0.3)


def _one(chance: Random) -> Call:
    def drawn(choices: Any) -> Any:
        return choices[int(chance.random() * len(choices))]

    kind = drawn(tuple(KINDS))
    dtype = drawn(REAL_DTYPES if kind == GATHER else (*REAL_DTYPES, torch.complex64))
    op = drawn(("SUM",) if dtype.is_complex else OF_FLOATS if dtype.is_floating_point else OF_INTEGERS)
    return Call(
        kind, dtype, drawn(SHAPES), drawn(FORMS), op, drawn(range(PROCESSES)), drawn(GROUPS),
        drawn(WAITS), drawn(range(5)),
    )  # fmt: skip
