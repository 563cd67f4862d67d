"""Whether the extension may be loaded: one built for another torch would abort the process or lack symbols."""

from __future__ import annotations

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
