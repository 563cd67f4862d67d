"""The adapters that ship with the suite, by the name that ``--backend`` takes. Importing them uses no device."""

from __future__ import annotations

from importlib import import_module

from conformance.adapters.model import NotHere, ShippedAdapter

__all__ = ["NAMES", "NotHere", "ShippedAdapter", "class_of", "usable"]

#: Each name is a module of this package with a class ``Adapter``.
NAMES = ("cpu", "cuda", "mps", "torch_npu", "torch_openreg", "torch_xla", "xpu")


def class_of(name: str) -> type[ShippedAdapter]:
    """Return the class of an adapter, whose call loads the backend. Raises KeyError for an unknown name."""
    if name not in NAMES:
        raise KeyError(name)
    found: type[ShippedAdapter] = import_module(f"{__name__}.{name}").Adapter
    return found


def usable() -> tuple[str, ...]:
    """Return the names of the adapters whose package is installed, and whose device torch finds."""
    return tuple(name for name in NAMES if not class_of(name).missing())
