"""Trials of generated samples on CPU, in forked children: a kernel may crash, hang, or ask for all memory."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import torch

from conformance.corpus.calls import HasValues, argument, tensors_of
from conformance.corpus.codec import decode, encode
from conformance.corpus.drafts import SEED
from conformance.corpus.model import Sample
from conformance.corpus.validate import readable
from conformance.corpus.vary.places import with_tensors
from conformance.inventory import call_of

# A generated sample has at most so many elements in its arguments, and in its results.
MOST_ELEMENTS = 300_000
# CPU seconds that a call may take. The full tier makes it some ten times.
MOST_SECONDS = 0.03
_HANGS = 20  # seconds until a trial is given up
_MEMORY = 4 << 30  # bytes that a child may have beyond those of its parent

Found = list[Sample]


@dataclass(frozen=True, slots=True)
class Ran:
    """A call that returned: the shapes of its written arguments afterwards, and the dtypes of its results."""

    sample: Sample  # outputs have the sizes that the call gave them
    dtypes: tuple[str, ...]


class Trials:
    """Tries samples in this process. ``deadly`` lists the numbers of the trials not to make, since one killed a child."""

    def __init__(self, values: HasValues, deadly: frozenset[int] = frozenset(), note: Callable[[int], None] = print):
        self._values = values
        self._deadly = deadly
        self._note = note
        self._count = 0

    def run(self, sample: Sample, dtype: str) -> Ran | None:
        """Return what came of the call; None if CPU refuses it, or it is too large, too slow or deadly."""
        outcome = self._run(sample, dtype)
        return outcome if isinstance(outcome, Ran) else None

    def raises(self, sample: Sample, dtype: str) -> bool:
        """Return whether CPU refuses the call by an error."""
        return isinstance(self._run(sample, dtype), Exception)

    def _run(self, sample: Sample, dtype: str) -> Ran | Exception | None:
        self._count += 1
        if self._count in self._deadly or sum(s.numel for s in sample.tensors) > MOST_ELEMENTS:
            return None
        self._note(self._count)
        try:
            tensors = tensors_of(sample, dtype, self._values)
        except Exception:  # noqa: BLE001 - values that a slot or this dtype cannot hold
            return None
        args = [argument(a, dtype, tensors) for a in sample.args]
        kwargs = {k: argument(a, dtype, tensors) for k, a in sample.kwargs}
        torch.manual_seed(SEED)
        signal.alarm(_HANGS)
        began = time.process_time()
        try:
            with torch.no_grad():
                result = call_of(sample.overload)(*args, **kwargs)
        except Exception as e:  # noqa: BLE001 - that it raised is the answer
            return e
        finally:
            signal.alarm(0)
        slow = time.process_time() - began > MOST_SECONDS
        leaves = _leaves(result)
        if slow or not readable(result) or sum(t.numel() for t in leaves) > MOST_ELEMENTS:
            return None
        slots = [
            s if s.pool else replace(s, shape=tuple(t.shape)) for s, t in zip(sample.tensors, tensors, strict=True)
        ]
        dtypes = tuple(str(t.dtype).removeprefix("torch.") for t in leaves)
        return Ran(with_tensors(sample, slots), dtypes)


def _leaves(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for r in result for t in _leaves(r)] if isinstance(result, (list, tuple)) else []


Generate = Callable[[str, Trials], Iterable[Sample]]  # overload -> samples that ran


def generate(overloads: Iterable[str], values: HasValues, make: Generate, jobs: int) -> Iterator[tuple[str, Found]]:
    """Yield the generated samples of each overload, in any order. ``make`` runs in children, ``jobs`` at a time."""
    waiting = list(overloads)[::-1]
    running: dict[int, _Child] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            child = _Child(waiting.pop(), frozenset(), values, make)
            running[child.pid] = child
        pid, status = os.wait()
        child = running.pop(pid)
        found, last = child.reply()
        if os.WIFSIGNALED(status):  # in a trial, which is left out the next time
            again = _Child(child.overload, child.deadly | {last}, values, make)
            running[again.pid] = again
        elif found is None:
            raise RuntimeError(f"no samples could be generated for {child.overload}: see the traceback above")
        else:
            yield child.overload, found


class _Child:
    """A process that generates the samples of one overload, and writes them to a file without a name."""

    def __init__(self, overload: str, deadly: frozenset[int], values: HasValues, make: Generate) -> None:
        self.overload = overload
        self.deadly = deadly
        self._file = os.memfd_create(overload)
        self._progress = os.memfd_create("progress")
        self.pid = os.fork()
        if self.pid == 0:
            self._live(values, make)

    def reply(self) -> tuple[Found | None, int]:
        """Return the samples, None if the child died; and the number of the last trial."""
        last = int.from_bytes(os.pread(self._progress, 8, 0), "little")
        os.close(self._progress)
        with os.fdopen(self._file, "rb") as file:
            file.seek(0)
            text = file.read()
        if not text:
            return None, last
        rows, sets = json.loads(text)
        return [decode(self.overload, row, [tuple(s) for s in sets]) for row in rows], last

    def _live(self, values: HasValues, make: Generate) -> NoReturn:
        code = 1
        try:
            warnings.simplefilter("ignore")
            faulthandler.disable()  # the parent sees deaths
            torch.set_num_threads(1)
            used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, resource.RLIM_INFINITY))
            found = list(make(self.overload, Trials(values, self.deadly, self._note)))
            sets = [list(s.dtypes) for s in found]
            text = json.dumps([[encode(s, i) for i, s in enumerate(found)], sets])
            with open(self._file, "w", encoding="utf-8", closefd=False) as file:  # noqa: PTH123 - it has no path
                file.write(text)
            code = 0
        except Exception:  # noqa: BLE001 - nothing above this frame may run twice
            traceback.print_exc()
        finally:
            os._exit(code)

    def _note(self, trial: int) -> None:
        os.pwrite(self._progress, trial.to_bytes(8, "little"), 0)
