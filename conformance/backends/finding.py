"""The search for a backend by its name: an installed backend, an adapter of the suite, or ``module:device``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from conformance import adapters
from conformance.backends.capabilities import Capabilities
from conformance.bare_device import BareDevice
from conformance.support.suggestions import near

GROUP = "conformance.backends"


class BackendNotFound(LookupError):
    """A backend that does not exist or cannot be loaded. The message names the known backends and what to do."""


def offered() -> tuple[str, ...]:
    """Return the names of the installed backends, without the adapters that ship with the suite."""
    return tuple(sorted(e.name for e in entry_points(group=GROUP)))


def find(name: str) -> Capabilities:
    """Return the backend called ``name``, or given as ``module:device``. Raises BackendNotFound.

    An installed backend has priority over a shipped adapter of the same name.
    """
    if ":" in name:
        return _bare(name)
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            return _loaded(name, entry.value, entry.load, entry.module.partition(".")[0])
    if name in adapters.NAMES:
        return _shipped(name)
    similar = near(name, (*offered(), *adapters.NAMES))
    also = f"; near: {', '.join(similar)}" if similar else ""
    todo = f"install one that offers the entry point group {GROUP!r}, or give module:device"
    raise BackendNotFound(f"unknown backend {name!r}{also}; {_there_are()}; {todo}")


def default() -> str:
    """Return the name of the only installed backend, for a run that names none. Raises BackendNotFound otherwise."""
    known = offered()
    if len(known) == 1:
        return known[0]
    what = "several are installed" if known else "none is installed"
    raise BackendNotFound(
        f"no --backend given, and {what} ({_there_are()}); give --backend NAME or --backend module:device."
    )


def _there_are() -> str:
    """Return the installed backends and the shipped adapters that can be used here, as text."""
    usable = [name for name in adapters.usable() if name not in offered()]
    parts = (("installed", offered()), ("usable here", usable))
    return ", ".join(f"{what}: {' '.join(names)}" for what, names in parts if names)


def _loaded(name: str, what: str, load: Callable[[], Any], module: str) -> Capabilities:
    try:
        return Capabilities(load(), module, name)
    except Exception as e:  # whatever a broken installation raises
        raise BackendNotFound(f"backend {name!r} ({what}) cannot be loaded: {type(e).__name__}: {e}") from e


def _shipped(name: str) -> Capabilities:
    kind = adapters.class_of(name)
    try:
        return _loaded(name, "an adapter of the suite", kind, kind.MODULE)
    except BackendNotFound as e:
        if isinstance(e.__cause__, adapters.NotHere):
            raise BackendNotFound(f"backend {name!r}: {e.__cause__}") from e.__cause__
        raise


def _bare(name: str) -> Capabilities:
    module, _, device = name.partition(":")
    if not module or not device:
        raise BackendNotFound(f"--backend {name}: expected module:device, both named, e.g. my_backend:mydev")
    try:
        importlib.import_module(module)
    except Exception as e:  # whatever a broken installation raises
        raise BackendNotFound(f"--backend {name}: module {module!r} cannot be imported: {type(e).__name__}: {e}") from e
    import torch

    try:
        torch.device(device)
    except RuntimeError as e:
        raise BackendNotFound(
            f"--backend {name}: torch knows no device {device!r} after importing {module!r}: {e}"
        ) from e
    return Capabilities(BareDevice(module, device), module, name)
