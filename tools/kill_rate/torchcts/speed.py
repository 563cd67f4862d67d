"""Replacements of functions that TorchCTS 0.4.1 calls thousands of times. With them it collects ten times as fast.

The results do not change: one function reads a file of the package, one summarizes the file, and one looks for a
``unittest.TestCase`` among its callers, and TorchCTS has no such class.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

SLOW = (
    ("torchcts.op_metadata", "_validation_metadata"),
    ("torchcts.core.coverage", "_load_generated_cases_manifest"),
)


def remember() -> None:
    """Replace these functions."""
    for module, name in SLOW:
        owner = import_module(module)
        setattr(owner, name, once(getattr(owner, name)))
    import_module("torch.testing._internal.common_utils").extract_test_fn = lambda: None  # type: ignore[attr-defined]


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ``function`` once for the same argument objects, which it keeps alive."""
    known: dict[tuple[int, ...], tuple[tuple[Any, ...], Any]] = {}

    def remembered(*arguments: Any) -> Any:
        key = tuple(map(id, arguments))
        if key not in known:
            known[key] = arguments, function(*arguments)
        return known[key][1]

    return remembered
