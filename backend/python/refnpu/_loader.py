"""Whether the extension may be loaded: one built otherwise than this process is would end it, or lack symbols."""

from __future__ import annotations

import ctypes

import torch

BUILD = "pip install --no-build-isolation --no-deps --force-reinstall ./backend"


def check_torch_version() -> None:
    """Raise ImportError when the extension is missing or was built for another torch version than the running one."""
    try:
        from refnpu import _build_info
    except ImportError:
        raise ImportError(f"refnpu is not built; build it with: {BUILD}") from None
    if torch.__version__ != _build_info.TORCH:
        raise ImportError(
            f"refnpu was built for torch {_build_info.TORCH}, but torch {torch.__version__} is running; "
            f"build it for this one with: {BUILD}"
        )


# Of the sanitizers that cannot come late: a function that the process has when the runtime was preloaded.
_RUNTIMES = {"address": "__asan_init", "thread": "__tsan_init"}


def check_sanitizers() -> None:
    """Raise ImportError when the extension needs a sanitizer's runtime that the process was started without."""
    from refnpu import _build_info

    process = ctypes.CDLL(None)
    for sanitizer in _build_info.SANITIZE.split(","):
        if sanitizer in _RUNTIMES and not hasattr(process, _RUNTIMES[sanitizer]):
            raise ImportError(
                f"refnpu was built with -fsanitize={_build_info.SANITIZE}, and the runtime of '{sanitizer}' has to be "
                f"in the process from its start: run it as `conformance lane NAME-OF-LANE -- COMMAND`, or as a session "
                f"of nox, which preload it; or build it without: {BUILD}"
            )
