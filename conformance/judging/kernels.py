"""The operators that run inside a call, as torch's profiler records them, each with its caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from conformance.torch_versions import WatchingMode

MOST = 64  # operators kept for each call

_ATEN = "aten::"


def ran(call: Callable[[], object]) -> list[tuple[str, str]]:
    """Make ``call``. Return (operator, the operator that called it or "") for each that ran, in order of starts.

    Overload names are not recorded. A dispatch mode would see the outermost calls only, because calls by a kernel run
    below it.
    """
    with torch.autograd.profiler.profile() as seen:
        call()
    events = [e for e in seen.function_events if e.name.startswith(_ATEN)]
    return [(_short(e.name), _short(e.cpu_parent.name) if e.cpu_parent else "") for e in events]


def names(call: Callable[[], object]) -> list[str]:
    """Make ``call``. Return the operators that ran, in order of their first starts, :data:`MOST` at most."""
    return list(dict.fromkeys(name for name, _ in ran(call)))[:MOST]


def names_inside(op: Callable[..., Any], call: Callable[[Callable[..., Any]], object]) -> list[str]:
    """Return :func:`names` of the calls of ``op`` that ``call`` makes, in any thread. ``call`` gets the op to call."""
    found: list[str] = []

    def recorded(*args: Any, **kwargs: Any) -> Any:
        results: list[Any] = []
        errors: list[Exception] = []

        def run() -> None:
            try:
                results.append(op(*args, **kwargs))
            except Exception as e:  # noqa: BLE001 - raised again, once the profiler has stopped
                errors.append(e.with_traceback(None))

        found.extend(names(run))
        if errors:
            raise errors.pop()
        return results.pop()

    call(recorded)
    return list(dict.fromkeys(found))[:MOST]


class _Dtypes(WatchingMode):
    """A mode that collects the dtypes of the results of all dispatched calls."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[torch.dtype] = set()

    def called(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        result = func(*args, **kwargs)
        leaves = result if isinstance(result, (list, tuple)) else [result]
        self.seen.update(leaf.dtype for leaf in leaves if isinstance(leaf, torch.Tensor))
        return result


def dtypes(call: Callable[[], object]) -> set[torch.dtype]:
    """Make ``call``. Return the dtypes of the results of all overloads that it dispatches, also inside composites."""
    mode = _Dtypes()
    with mode:
        call()
    return mode.seen


def _short(name: str) -> str:
    return str(name).removeprefix(_ATEN)
