"""A heap in which a read or a write past a block ends the process. Its C code is compiled at the first use."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from conformance.support.signals import INTERRUPTIONS

_SOURCE = Path(__file__).with_suffix(".c")
_COMPILERS = ("cc", "gcc", "clang")
_VARIABLE = "CONFORMANCE_GUARDED_HEAP"  # set in a process that has the heap


def restart() -> bool:
    """Run this command again with the heap, and exit with its exit code.

    If this process is the second run, or cannot have the heap, return whether it has the heap. It cannot without a C
    compiler, or if the C library is not glibc.
    """
    if _VARIABLE in os.environ:
        with watched(0):  # reserves the addresses before the address space of a child is limited
            return _switch() is not None
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None or not sys.platform.startswith("linux"):
        return False
    with tempfile.TemporaryDirectory(prefix="conformance-heap-") as directory:
        library = Path(directory) / "guarded_heap.so"
        command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return False
        loaded = ":".join(filter(None, (str(library), os.environ.get("LD_PRELOAD", ""))))
        variables = os.environ | {_VARIABLE: "1", "LD_PRELOAD": loaded}
        code = _code_of([sys.executable, *sys.orig_argv[1:]], variables)
        sys.exit(code if code >= 0 else 128 - code)  # a shell's exit code for a command that a signal ended


def _code_of(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a command to its end, and return its exit code. Signals that ask this process to end go to the command."""
    with subprocess.Popen(command, env=variables) as running:
        handled = [number for number in INTERRUPTIONS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, lambda n, _: running.send_signal(n)) for number in handled}
        try:
            return running.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@cache
def _switch() -> ctypes._NamedFuncPointer | None:
    return getattr(ctypes.CDLL(None), "guarded_heap", None)


@contextlib.contextmanager
def watched(byte: int) -> Iterator[None]:
    """Guard memory within this context, and fill fresh memory with ``byte``. Does nothing without the heap."""
    switch = _switch()
    if switch is None:
        yield
        return
    if switch(byte):
        raise MemoryError("the guarded heap needs 256 GiB of addresses; raise the limit (ulimit -v)")
    try:
        yield
    finally:
        switch(-1)
