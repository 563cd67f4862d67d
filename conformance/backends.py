"""The adapter that a backend offers, and how it is found."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Backend(Protocol):
    """What the suite needs of a backend. Offered through the entry point group ``conformance.backends``.

    Only ``name`` and ``device`` are required; what a backend lacks is not checked, and the run says so. Importing the
    module that offers it must load the backend without touching the device: cells run in forked children.
    """

    name: str
    device: str  # e.g. "mydev:0"

    def route_counters(self) -> tuple[int, int]:
        """(native calls, fallback calls) since the process started; cheap, read around every call."""

    def memory_stats(self) -> dict[str, int]:
        """At least ``live_bytes`` and ``live_blocks`` of the device's memory."""

    def synchronize(self) -> None:
        """Return when all submitted work is done."""

    def verify_memory(self) -> list[str]:
        """Damage found in the allocator's own bookkeeping (redzones, canaries), in words; empty when sound."""

    def build_info(self) -> dict[str, Any]:
        """Facts of the build: ``torch``, ``compiler``, ``commit``, ``build_type``."""

    def environment(self) -> str:
        """The name of the environment the process runs in, e.g. the allocator mode."""
