"""Generation of samples in forked children: a kernel may crash, hang, or allocate all memory."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import torch

from conformance.corpus.calls import HasValues
from conformance.corpus.codec import decode, encode
from conformance.corpus.model import Sample
from conformance.corpus.vary.trial import Trials
from conformance.support.forking import fork
from conformance.torch_versions.compilers import load_decompositions

_MEMORY = 4 << 30  # bytes that a child may have beyond those of its parent

Found = list[Sample]
Generate = Callable[[str, Trials], Iterable[Sample]]  # overload -> samples that ran


def generate(
    overloads: Iterable[str], values: HasValues, make: Generate, jobs: int
) -> Iterator[tuple[str, Found | None]]:
    """Yield the generated samples of each overload, in any order. ``make`` runs in children, ``jobs`` at a time.

    The samples are None if ``make`` raised an error, which its child has printed, or if the last child died. A child
    that dies is replaced once, by a child that isolates its trials.
    """
    load_decompositions()  # some are meta kernels; else each child would import their modules
    waiting = list(overloads)[::-1]
    running: dict[int, _Child] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            child = _Child(waiting.pop(), values, make)
            running[child.pid] = child
        pid, status = os.wait()
        child = running.pop(pid)
        found = child.reply()
        if os.WIFSIGNALED(status) and not child.isolated:
            again = _Child(child.overload, values, make, isolated=True)
            running[again.pid] = again
        else:
            yield child.overload, found


class _Child:
    """A process that generates the samples of one overload, and writes them to an anonymous file."""

    def __init__(self, overload: str, values: HasValues, make: Generate, *, isolated: bool = False) -> None:
        self.overload = overload
        self.isolated = isolated
        self._file = os.memfd_create(overload)
        self.pid = fork()
        if self.pid == 0:
            self._live(values, make)

    def reply(self) -> Found | None:
        """Return the samples; None if the child has written none."""
        with os.fdopen(self._file, "rb") as file:
            file.seek(0)
            text = file.read()
        if not text:
            return None
        rows, sets = json.loads(text)
        return [decode(self.overload, row, [tuple(s) for s in sets]) for row in rows]

    def _live(self, values: HasValues, make: Generate) -> NoReturn:
        code = 1
        try:
            warnings.simplefilter("ignore")
            faulthandler.disable()  # the parent sees deaths
            torch.set_num_threads(1)
            _quiet()
            used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, resource.RLIM_INFINITY))
            found = list(make(self.overload, Trials(values, isolated=self.isolated)))
            sets = [list(s.dtypes) for s in found]
            text = json.dumps([[encode(s, i) for i, s in enumerate(found)], sets])
            with open(self._file, "w", encoding="utf-8", closefd=False) as file:
                file.write(text)
            code = 0
        except Exception:  # noqa: BLE001 - nothing above this frame may run twice
            traceback.print_exc()
        finally:
            os._exit(code)


def _quiet() -> None:
    """Keep the output of libraries, such as errors and torch's warnings, off the terminal.

    Python's errors are still printed. Standard output is discarded too, because oneMKL prints to it.
    """
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for printed in (1, 2):
        os.dup2(nowhere, printed)
