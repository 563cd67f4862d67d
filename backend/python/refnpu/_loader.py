"""Loading the extension: refuses, in words, one that was built for another torch."""

from __future__ import annotations

import importlib
from types import ModuleType

import torch


def load() -> ModuleType:
    """The extension module; raises ImportError when it is missing or was built for another torch version."""
    try:
        from refnpu import _build_info
    except ImportError:
        raise ImportError("refnpu is not built: install it with `pip install --no-build-isolation ./backend`") from None
    # Loaded into another version it would abort the process or lack symbols, so this comes before the import.
    if torch.__version__ != _build_info.TORCH:
        raise ImportError(
            f"refnpu was built for torch {_build_info.TORCH}, but torch {torch.__version__} is running; "
            "build it again: pip install --no-build-isolation --force-reinstall --no-deps ./backend"
        )
    return importlib.import_module("refnpu._C")
