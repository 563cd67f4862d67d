"""Records a program's ATen calls: one of all calls that differ only in their tensors' values.

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
from conformance.calls.capture import Capture, touches
from conformance.calls.model import Call
from conformance.calls.program import run_program
from conformance.corpus.model import NotStorable
from conformance.inventory import overload_of
from conformance.torch_versions import WatchingMode, without_modes


class Recorder(WatchingMode):
    """Records calls, in the order of their first occurrence. ``lost``: op -> why its call cannot be stored.

    Calls that differ in the values of their tensors alone are one, of which ``counts`` has the number.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device
        self.seen = 0
        self.calls: list[Call] = []
        self.lost: dict[str, str] = {}
        self.counts: list[int] = []
        self._kinds: dict[object, int] = {}

    def called(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Record one call, and make it."""
        if overload_of(func) and touches(self._device, (args, kwargs)):
            with without_modes(), torch.no_grad():
                self._take(func, args, kwargs)
        return func(*args, **kwargs)

    def _take(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.seen += 1
        try:
            call, _ = Capture(self._device).take(func, args, kwargs, f"call.{self.seen - 1}")
        except NotStorable as e:
            self.lost.setdefault(overload_of(func), str(e))
            return
        kind = kind_of(call)
        if kind not in self._kinds:
            self._kinds[kind] = len(self.calls)
            self.calls.append(call)
            self.counts.append(0)
        self.counts[self._kinds[kind]] += 1


def kind_of(call: Call) -> object:
    """Return a key that is equal for calls that differ only in the values of their tensors."""
    sample = call.case.sample
    return (sample.overload, sample.args, sample.kwargs, sample.tensors, call.case.placements, call.case.shared)


def main(arguments: list[str]) -> None:
    """Run the program and write its calls, also those before an exception of the program."""
    backend_name, path, largest, _, *program = arguments
    recorder = Recorder(torch.device(backends.find(backend_name).device))
    try:
        with recorder:
            run_program(program)
    finally:
        facts = {
            "torch": torch.__version__, "seen": recorder.seen, "lost": recorder.lost, "counts": recorder.counts,
        }  # fmt: skip
        file.save(Path(path), recorder.calls, int(largest), facts)
        lost = f"; calls of {len(recorder.lost)} ops cannot be stored: {recorder.lost}" if recorder.lost else ""
        print(f"{len(recorder.calls)} kinds of {recorder.seen} calls{lost}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
