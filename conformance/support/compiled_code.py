"""The code that torch's compiler generates: its directory, and the error of a C++ compiler that refused it."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

_DIRECTORY = "TORCHINDUCTOR_CACHE_DIR"
_THREADS = "TORCHINDUCTOR_COMPILE_THREADS"
_OF_TORCH = "torchinductor_"  # the prefix of torch's own directory among temporary files; the user's name follows


def use_own_cache() -> None:
    """Give this process and its children a directory for compiled code, which is removed when this process ends.

    The compiler then runs in the process that calls it, because a pool of workers does not survive a fork. A directory
    or a number of threads that the user has set in the environment is kept. torch's own directory, which torch sets in
    the environment at its first use, is not kept, because it may hold code of another version of the backend.
    """
    os.environ.setdefault(_THREADS, "1")
    if os.environ.get(_DIRECTORY, "").startswith(f"{tempfile.gettempdir()}/{_OF_TORCH}"):
        del os.environ[_DIRECTORY]
    if _DIRECTORY not in os.environ:
        directory = tempfile.mkdtemp(prefix="conformance-compiled-")
        os.environ[_DIRECTORY] = directory
        atexit.register(_remove, directory, os.getpid())


def _remove(directory: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def compiler_error(error: BaseException) -> str:
    """Return the error line of a C++ compiler that refused generated code, "" for any other error."""
    text = str(error)
    if "CppCompileError" not in f"{type(error).__name__} {text}" and "C++ compile error" not in text:
        return ""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in lines if "error: " in line), lines[0] if lines else "")
