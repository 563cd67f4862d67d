"""Late work that ends when the test ends it, even on a slow machine."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from types import TracebackType

from refnpu.cpp_extension import library_paths

DRIVER = ctypes.CDLL(str(Path(library_paths()[0]) / "librefnpu.so"))
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Gate:
    """A ``with`` block during which the default stream of the current device waits. Needs late work."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._wait = HOST_FUNCTION(self._until_it_is_open)  # must live as long as the work

    def _until_it_is_open(self, _: int | None) -> None:
        self._open.wait()

    def __enter__(self) -> None:
        assert DRIVER.npuLaunchHostFunction(None, self._wait, None) == 0

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None) -> None:
        self._open.set()
