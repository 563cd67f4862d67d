"""The last calls of a program within a size limit, with their shared storages and the times of their frees."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import replace

import torch

from conformance.calls.model import Call
from conformance.calls.sequence import Gaps, Step
from conformance.judging.oracle import CallOutcome
from conformance.judging.twins import Side
from conformance.torch_versions import StorageWeakRef, storage_id, storage_ref

MOST_CALLS = 2000
MOST_BYTES = 256 << 20  # of recorded storages; equal contents count once


class History:
    """The last calls on the device. A storage that does not change between two calls is stored once."""

    def __init__(self, device: torch.device, most_calls: int = MOST_CALLS, most_bytes: int = MOST_BYTES) -> None:
        self._device, self._most_calls, self._most_bytes = device, most_calls, most_bytes
        self._steps: deque[Step] = deque()
        self._alive: dict[int, tuple[int, StorageWeakRef]] = {}  # id of a storage -> its number
        self._latest: dict[int, torch.Tensor] = {}  # number -> its bytes at the last call with it
        self._uses: Counter[int] = Counter()  # id of a stored tensor of bytes -> number of steps with it
        self._bytes = self._cut = self._given = 0
        self._missed: Counter[str] = Counter()

    @property
    def steps(self) -> list[Step]:
        """The recorded calls, the latest last. The latest has no results until it returns."""
        return list(self._steps)

    @property
    def gaps(self) -> Gaps:
        """The calls that are not recorded."""
        return Gaps(self._cut, tuple(sorted(self._missed.items())))

    def miss(self, op: str) -> None:
        """Count a call that cannot be recorded."""
        self._missed[op] += 1

    def take(self, call: Call, side: Side) -> None:
        """Record a call, before it is made with the arguments of ``side``."""
        freed = tuple(self._gone())
        numbers = tuple(self._number(a.base) for a in side.arguments)
        step = Step(self._thrifty(call, numbers), numbers, (), freed)
        self._steps.append(step)
        for data in step.call.storages.values():
            self._bytes += data.numel() if not self._uses[id(data)] else 0
            self._uses[id(data)] += 1
        while len(self._steps) > 1 and (len(self._steps) > self._most_calls or self._bytes > self._most_bytes):
            self._drop()

    def made(self, outcome: CallOutcome) -> None:
        """Record the storages of the results of the last call that :meth:`take` recorded."""
        numbers = tuple(self._number(leaf) if isinstance(leaf, torch.Tensor) else None for _, leaf in outcome.leaves)
        self._steps[-1] = replace(self._steps[-1], results=numbers)

    def _number(self, tensor: torch.Tensor) -> int | None:
        if tensor.device.type != self._device.type or tensor.layout != torch.strided:
            return None
        key = storage_id(tensor)
        if key not in self._alive:
            self._alive[key] = self._given, storage_ref(tensor)
            self._given += 1
        return self._alive[key][0]

    def _gone(self) -> Iterator[int]:
        for key, (number, ref) in list(self._alive.items()):
            if ref.expired():
                del self._alive[key]
                self._latest.pop(number, None)
                yield number

    def _thrifty(self, call: Call, numbers: tuple[int | None, ...]) -> Call:
        """Return the call with bytes that are stored already, where a storage has not changed since an earlier call."""
        kept = dict(call.storages)
        for slot, number in zip(call.case.sample.tensors, numbers, strict=True):
            data = kept[slot.pool]
            before = None if number is None else self._latest.get(number)
            if before is not None and torch.equal(before, data):
                kept[slot.pool] = before
            elif number is not None:
                self._latest[number] = data
        return Call(call.case, kept)

    def _drop(self) -> None:
        step = self._steps.popleft()
        self._cut += 1
        if self._steps and step.freed:
            self._steps[0] = replace(self._steps[0], freed=step.freed + self._steps[0].freed)
        for data in step.call.storages.values():
            self._uses[id(data)] -= 1
            if not self._uses[id(data)]:
                del self._uses[id(data)]
                self._bytes -= data.numel()
                self._latest = {n: latest for n, latest in self._latest.items() if latest is not data}
