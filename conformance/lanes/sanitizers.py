"""Environment variables for a backend that is built with a sanitizer: libraries to preload, and options.

The runtimes are GCC's. An extension module cannot load them, because they must be loaded before the interpreter.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

# Sanitizers by the names of -fsanitize: the library to preload, and a function by which a loaded runtime is detected.
PRELOADED = {"address": ("libasan.so", "__asan_init"), "thread": ("libtsan.so", "__tsan_init")}
_REPORT_TO = "__sanitizer_set_report_fd"
_UBSAN = "libubsan.so.1"
NAMES = (*PRELOADED, "undefined")

# The default format and the module of each frame, by which sanitizer_report.py finds the frames of the backend.
_FRAMES: dict[str, object] = {"stack_trace_format": "'    #%n %p %F %L @%m'"}
# An error ends the process by a signal, as without a sanitizer. The sanitizer handles signals such as SIGSEGV.
_FATAL: dict[str, object] = {
    "abort_on_error": 1,
    "handle_segv": 2,
    "handle_sigbus": 2,
    "handle_sigfpe": 2,
    "handle_sigill": 2,
}
_ADDRESS: dict[str, object] = {
    **_FATAL,
    "alloc_dealloc_mismatch": 1,
    "detect_odr_violation": 2,
    "detect_stack_use_after_return": 1,
    "check_initialization_order": 1,
    "strict_init_order": 1,
    "strict_string_checks": 1,
    "allocator_may_return_null": 1,  # the backend must report that it is out of memory
    "detect_leaks": 1,
    "leak_check_at_exit": 0,  # the suite searches for leaks after batches of cells
}
_UNDEFINED: dict[str, object] = {"halt_on_error": 1, "abort_on_error": 1, "print_stacktrace": 1}
_THREAD: dict[str, object] = {
    **_FATAL,
    "halt_on_error": 1,
    "ignore_noninstrumented_modules": 1,  # other libraries' synchronization is not seen, and would look like races
}
_LEAK: dict[str, object] = {"print_suppressions": 0}


class NoRuntime(LookupError):
    """The compiler lacks a sanitizer's runtime. The message names the missing file."""


def variables(
    sanitizers: Iterable[str], suppressions: Path | None, environ: Mapping[str, str], log: Path | None = None
) -> dict[str, str]:
    """Return the variables of a process whose backend is built with these sanitizers; empty if there are none.

    ``suppressions``: a file that lists leaks outside the backend. ``log``: the file for reports that do not go to a
    child's log; the process id is added to its name. Options in ``environ`` come last, so that the user's settings have
    priority. Raises NoRuntime.
    """
    chosen = tuple(sanitizers)
    if not chosen:
        return {}
    options = {"ASAN_OPTIONS": _ADDRESS, "UBSAN_OPTIONS": _UNDEFINED, "TSAN_OPTIONS": _THREAD, "LSAN_OPTIONS": _LEAK}
    options = {name: {**values, **_FRAMES, **({"log_path": log} if log else {})} for name, values in options.items()}
    if suppressions is not None:
        options["LSAN_OPTIONS"] = {**options["LSAN_OPTIONS"], "suppressions": suppressions}
    found = {name: _joined(values, environ.get(name, "")) for name, values in options.items()}
    preload = [*_runtimes(chosen, environ), *environ.get("LD_PRELOAD", "").split()]
    return found | {"LD_PRELOAD": " ".join(preload)}


def report_to(descriptor: int) -> None:
    """Make the sanitizers of this process, if there are any, write their reports to an open file."""
    for runtime in _present():
        runtime[_REPORT_TO](ctypes.c_void_p(descriptor))


def _present() -> Iterator[ctypes.CDLL]:
    """Yield the sanitizer runtimes in this process: the preloaded runtime, and UBSan's, which the backend links."""
    process = ctypes.CDLL(None)
    if hasattr(process, _REPORT_TO):
        yield process
    with contextlib.suppress(OSError):
        yield ctypes.CDLL(_UBSAN, mode=os.RTLD_NOLOAD)


def missing(sanitizers: Iterable[str]) -> str:
    """Return the first of these sanitizers whose runtime this process lacks, "" if it lacks none."""
    here = ctypes.CDLL(None)
    return next((s for s in sanitizers if s in PRELOADED and not hasattr(here, PRELOADED[s][1])), "")


def _joined(values: Mapping[str, object], own: str) -> str:
    return ":".join([*(f"{key}={value}" for key, value in values.items()), *([own] if own else [])])


def _runtimes(sanitizers: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Return the libraries to preload, with libstdc++, because a runtime looks up its functions at the start."""
    compiler = next(filter(None, map(shutil.which, (environ.get("CXX") or "c++", "g++"))), None)
    if compiler is None:
        raise NoRuntime("no C++ compiler found (c++, g++) to take the sanitizer runtime from; set CXX")
    wanted = [PRELOADED[s][0] for s in sanitizers if s in PRELOADED]
    return [_library(compiler, name) for name in (*wanted, "libstdc++.so.6")] if wanted else []


def _library(compiler: str, name: str) -> str:
    command = [compiler, f"-print-file-name={name}"]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not os.path.isabs(path):  # noqa: PTH117  # the compiler prints the bare name if it does not find the library
        raise NoRuntime(f"{compiler} has no {name}; install its sanitizer runtime (the suite supports GCC)")
    return str(Path(path).resolve())
