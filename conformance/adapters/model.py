"""The base class of the adapters that ship with the suite."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

from conformance.bare_device import BareDevice
from conformance.support.forking import asked_in_fork


class NotHere(LookupError):
    """The package or the device of a shipped adapter is missing. The message says which, and how to install it."""


class ShippedAdapter(BareDevice):
    """An adapter for the first device of a backend, which uses torch's own modules.

    Creating an instance imports the backend's package. Raises NotHere if the package or the device is missing.
    """

    NAME: ClassVar[str]
    DEVICE: ClassVar[str]
    MODULE: ClassVar[str] = "torch"  # the package that registers the device
    INSTALL: ClassVar[str]  # how to get the package, or the device
    isolation: ClassVar[str] = "fork"

    def __init__(self) -> None:
        if lacking := self.missing():
            raise NotHere(f"{lacking}; {self.INSTALL}")
        import_module(self.MODULE)
        super().__init__(self.NAME, self.DEVICE)
        if not self.is_present():
            raise NotHere(f"{self.MODULE} finds no device of type {self._kind!r}; {self.INSTALL}")

    @classmethod
    def missing(cls) -> str:
        """Return what is missing, "" if nothing is. Imports no package but torch."""
        if find_spec(cls.MODULE) is None:
            return f"the package {cls.MODULE} is not installed"
        if cls.MODULE == "torch" and not cls.is_present():
            import torch

            return f"torch {torch.__version__} finds no device of type {cls.DEVICE.partition(':')[0]!r}"
        return ""

    @classmethod
    def is_present(cls) -> bool:
        """Return whether ``torch.<device>.device_count`` finds a device; True for CPU, and without this function."""
        import torch

        module: Any = getattr(torch, cls.DEVICE.partition(":")[0], None)
        count = getattr(module, "device_count", None)
        if not callable(count) or cls.DEVICE == "cpu":
            return True
        return (asked_in_fork(count) if cls.isolation == "fork" else int(count())) > 0

    def environments(self) -> dict[str, dict[str, str]]:
        """Return environments that help to find a failure: a name -> the environment variables."""
        return {}
