"""The operators that run inside a call, as torch's profiler records them: each with the one that called it."""

from __future__ import annotations

from collections.abc import Callable

import torch

MOST = 64  # operators kept of one call

_ATEN = "aten::"


def ran(call: Callable[[], object]) -> list[tuple[str, str]]:
    """Make ``call``; returns (operator, the operator that called it or "") for each that ran, in the order they began.

    Overload names are not recorded. A dispatch mode would see the outermost calls alone: what a kernel calls runs
    below it.
    """
    with torch.autograd.profiler.profile() as seen:
        call()
    events = [e for e in seen.function_events if e.name.startswith(_ATEN)]
    return [(_short(e.name), _short(e.cpu_parent.name) if e.cpu_parent else "") for e in events]


def names(call: Callable[[], object]) -> list[str]:
    """Make ``call``; returns the operators that ran, each at its first place, :data:`MOST` at most."""
    return list(dict.fromkeys(name for name, _ in ran(call)))[:MOST]


def _short(name: str) -> str:
    return str(name).removeprefix(_ATEN)
