"""The process that records a program's ATen calls. Calls that differ only in their tensors' values are recorded once.

``python -m conformance.calls.recording BACKEND FILE LARGEST -- PROGRAM...``
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from conformance import backends
from conformance.calls import file
from conformance.calls.capture import Capture, tensors_in, touches
from conformance.calls.model import Call
from conformance.calls.program import run_program
from conformance.corpus.model import NotStorable
from conformance.inventory import overload_of
from conformance.support.signals import interrupt_once
from conformance.torch_versions import WatchingMode, has_no_memory, storage_id, storage_ids, without_modes


class Recorder(WatchingMode):
    """A mode that records calls, in the order of their first occurrence. ``lost``: op -> why its call cannot be stored.

    Calls that differ only in the values of their tensors are recorded once. For each recorded call, ``counts`` has the
    number of such calls, and ``made`` the most bytes of new storages on the device in their results.
    """

    def __init__(self, device: torch.device, with_bytes: bool = True) -> None:
        """``with_bytes``: whether the calls have the bytes of their storages. Storages on ``meta`` have no bytes."""
        super().__init__()
        self._device = device
        self._with_bytes = with_bytes
        self.seen = 0
        self.calls: list[Call] = []
        self.lost: dict[str, str] = {}
        self.counts: list[int] = []
        self.made: list[int] = []
        self._kinds: dict[object, int] = {}

    def called(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Record one call, and make it."""
        kind = None
        if overload_of(func) and touches(self._device, (args, kwargs)):
            with without_modes(), torch.no_grad():
                kind = self._take(func, args, kwargs)
        result = func(*args, **kwargs)
        if kind is not None:
            self.made[kind] = max(self.made[kind], new_bytes((args, kwargs), result, self._device))
        return result

    def _take(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
        """Record one call. Return its position in the lists, None if it cannot be stored."""
        self.seen += 1
        try:
            call, _ = Capture(self._device, self._with_bytes).take(func, args, kwargs, f"call.{self.seen - 1}")
        except NotStorable as e:
            self.lost.setdefault(overload_of(func), str(e))
            return None
        kind = kind_of(call)
        if kind not in self._kinds:
            self._kinds[kind] = len(self.calls)
            self.calls.append(call)
            self.counts.append(0)
            self.made.append(0)
        self.counts[self._kinds[kind]] += 1
        return self._kinds[kind]


def kind_of(call: Call) -> object:
    """Return a key that is equal for calls that differ only in the values of their tensors."""
    sample = call.case.sample
    return (sample.overload, sample.args, sample.kwargs, sample.tensors, call.case.placements, call.case.shared)


def new_bytes(given: Any, result: Any, device: torch.device) -> int:
    """Return the bytes of the storages on the device that a result has and the arguments do not have."""
    known = set(storage_ids(t for t in tensors_in(given) if has_storage(t)))
    new = {storage_id(t): t for t in tensors_in(result) if has_storage(t) and t.device.type == device.type}
    return sum(int(t.untyped_storage().nbytes()) for key, t in new.items() if key not in known)


def has_storage(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has one storage, which sparse tensors and the zeros of autograd do not have."""
    return tensor.layout is torch.strided and not has_no_memory(tensor)


def main(arguments: list[str]) -> None:
    """Run the program and write its calls, also if the program raises."""
    backend_name, path, largest, _, *program = arguments
    recorder = Recorder(torch.device(backends.find(backend_name).device))
    interrupt_once()  # a second Ctrl-C must not stop the writing
    try:
        with recorder:
            run_program(program)
    finally:
        facts = {
            "torch": torch.__version__, "seen": recorder.seen, "lost": recorder.lost, "counts": recorder.counts,
            "made": recorder.made,
        }  # fmt: skip
        file.save(Path(path), recorder.calls, int(largest), facts)
        lost = f"; calls of {len(recorder.lost)} ops cannot be stored: {recorder.lost}" if recorder.lost else ""
        print(f"{len(recorder.calls)} kinds of {recorder.seen} calls{lost}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
