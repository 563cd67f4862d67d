"""The checks before the extension is loaded. If it does not fit, loading ends the process, or symbols are missing."""

from __future__ import annotations

import ctypes

import torch

BUILD = "pip install --no-build-isolation --no-deps --force-reinstall ./backend"


def check_torch_version() -> None:
    """Raise ImportError if the extension is missing or was built for another torch version than the running one."""
    try:
        from refnpu import _build_info
    except ImportError:
        raise ImportError(f"refnpu is not built; build it with: {BUILD}") from None
    if torch.__version__ != _build_info.TORCH:
        raise ImportError(
            f"refnpu was built for torch {_build_info.TORCH}, but torch {torch.__version__} is running; "
            f"build it for this one with: {BUILD}"
        )


# For each sanitizer whose runtime must be preloaded: a function that the process has if the runtime was preloaded.
_RUNTIMES = {"address": "__asan_init", "thread": "__tsan_init"}


def check_sanitizers() -> None:
    """Raise ImportError if the extension needs a sanitizer's runtime that was not preloaded into the process."""
    from refnpu import _build_info

    process = ctypes.CDLL(None)
    for sanitizer in _build_info.SANITIZE.split(","):
        if sanitizer in _RUNTIMES and not hasattr(process, _RUNTIMES[sanitizer]):
            raise ImportError(
                f"refnpu was built with -fsanitize={_build_info.SANITIZE}, and the runtime of '{sanitizer}' has to be "
                f"in the process from its start: run it as `conformance lane NAME-OF-LANE -- COMMAND`, or as a session "
                f"of nox, which preload it; or build it without: {BUILD}"
            )
