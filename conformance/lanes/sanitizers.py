"""What has to be in a process from its start where the backend is built with a sanitizer: preload and options.

The runtimes asked for are GCC's: an extension module cannot bring them, since the interpreter is loaded before it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

# Sanitizers by the names of -fsanitize; the library that has to come first, and a function that tells that it is there.
PRELOADED = {"address": ("libasan.so", "__asan_init"), "thread": ("libtsan.so", "__tsan_init")}
_REPORT_TO = "__sanitizer_set_report_fd"
_UBSAN = "libubsan.so.1"
NAMES = (*PRELOADED, "undefined")

# As by default, and each frame's module after it: sanitizer_report.py tells by it whose code it is.
_FRAMES: dict[str, object] = {"stack_trace_format": "'    #%n %p %F %L @%m'"}
# A death is a signal, like every other; faults of the machine are the sanitizer's to explain, whoever asks for them.
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
    "allocator_may_return_null": 1,  # running out of memory is an answer that the backend has to give
    "detect_leaks": 1,
    "leak_check_at_exit": 0,  # the suite asks, where it can say what leaked; other programs may leak at will
}
_UNDEFINED: dict[str, object] = {"halt_on_error": 1, "abort_on_error": 1, "print_stacktrace": 1}
_THREAD: dict[str, object] = {**_FATAL, "halt_on_error": 1}
_LEAK: dict[str, object] = {"print_suppressions": 0}


class NoRuntime(LookupError):
    """The compiler has no runtime of a sanitizer; the message says which file is missing."""


def variables(
    sanitizers: Iterable[str], suppressions: Path | None, environ: Mapping[str, str], log: Path | None = None
) -> dict[str, str]:
    """The variables of a process whose backend is built with ``-fsanitize`` of these; empty for none.

    ``suppressions`` lists leaks that are not the backend's. ``log``: where a report goes that no child's log takes; the
    process' number is added. Options in ``environ`` come last, so that what a user sets holds. Raises NoRuntime.
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
    # Python's own allocator hides its objects from the search for leaks, and an overrun of one from all.
    return found | {"LD_PRELOAD": " ".join(preload), "PYTHONMALLOC": "malloc"}


def report_to(descriptor: int) -> None:
    """Let whatever sanitizer is in this process write to an open file from now on; nothing where there is none."""
    for runtime in _present():
        runtime[_REPORT_TO](ctypes.c_void_p(descriptor))


def _present() -> Iterator[ctypes.CDLL]:
    """The runtimes in this process: one that was preloaded, and that of UBSan, which the backend brings."""
    process = ctypes.CDLL(None)
    if hasattr(process, _REPORT_TO):
        yield process
    with contextlib.suppress(OSError):
        yield ctypes.CDLL(_UBSAN, mode=os.RTLD_NOLOAD)


def missing(sanitizers: Iterable[str]) -> str:
    """The first of these sanitizers whose runtime this process was started without; "" when none is."""
    here = ctypes.CDLL(None)
    return next((s for s in sanitizers if s in PRELOADED and not hasattr(here, PRELOADED[s][1])), "")


def _joined(values: Mapping[str, object], own: str) -> str:
    return ":".join([*(f"{key}={value}" for key, value in values.items()), *([own] if own else [])])


def _runtimes(sanitizers: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """The libraries to preload. libstdc++ comes along: the runtime looks for its functions when it starts."""
    compiler = next(filter(None, map(shutil.which, (environ.get("CXX") or "c++", "g++"))), None)
    if compiler is None:
        raise NoRuntime("no C++ compiler found (c++, g++), whose sanitizer runtime would be loaded; name it in CXX")
    wanted = [PRELOADED[s][0] for s in sanitizers if s in PRELOADED]
    return [_library(compiler, name) for name in (*wanted, "libstdc++.so.6")] if wanted else []


def _library(compiler: str, name: str) -> str:
    command = [compiler, f"-print-file-name={name}"]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not os.path.isabs(path):  # noqa: PTH117  # the compiler's answer, not a path yet: the bare name when it has none
        raise NoRuntime(f"{compiler} has no {name}; install the sanitizer runtime of this compiler (GCC's are known)")
    return str(Path(path).resolve())
