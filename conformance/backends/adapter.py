"""The adapter that a backend offers: the members that the suite knows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch


@runtime_checkable
class Backend(Protocol):
    """The members of an adapter. A backend offers it through the entry point group ``conformance.backends``.

    Only ``name`` and ``device`` are required. If a method is missing, its property is not checked, and the run says so.
    Importing the module of the adapter should load the backend without touching the device, because cells run in forked
    children. A backend that does not work after a fork has the attribute ``isolation = "spawn"`` (default: ``"fork"``).
    Its cells run in new interpreters, which start in seconds, while a fork takes milliseconds.
    """

    name: str
    device: str  # e.g. "mydev:0"
    # Optional: whether kernels keep subnormal numbers of all dtypes, in arguments and results, or may flush them to 0.
    # Without this attribute, the device is asked once for each dtype.
    keeps_subnormals: bool
    # Optional: whether a process can no longer use the device after a kernel has failed, as with CUDA. Then a call with
    # bad arguments may lose the device. Without this attribute, a device that is lost after an error is a failure.
    sticky_errors: bool
    # Optional: variables of the environment that hide all devices from a process, as on a machine without them.
    hidden_by: Mapping[str, str]
    # Optional: CPU threads of the processes that run cells, by default 1. With more, ``isolation`` must be "spawn".
    threads: int
    # Optional: whether the environment fills fresh memory. If so, the suite leaves the first call of a case to it.
    fills_fresh: bool

    def route_counters(self) -> tuple[int, int]:
        """Return (native calls, fallback calls) since the process started. Must be cheap: read around every call."""

    def memory_stats(self) -> dict[str, int]:
        """Return at least ``live_bytes`` and ``live_blocks``: device memory in use, without blocks kept for reuse."""

    def synchronize(self) -> None:
        """Return when all submitted work is done."""

    def verify_memory(self) -> list[str]:
        """Return the damage in the allocator's own bookkeeping (redzones, canaries); an empty list if there is none.

        There is one line for each damaged block, which begins with the block's address in hexadecimal. A call reports
        the damage since the previous call.
        """

    def fill_fresh(self, byte: int | None) -> None:
        """From now on, fill each allocated block of memory with a byte; None: as when the process started."""

    def delay_work(self, us: int | None, seed: int | None = None) -> None:
        """From now on, start submitted work ``us`` microseconds after its turn; None: as when the process started.

        With a seed, the delays differ from one piece of work to the next, and are the same in every run of a program.
        """

    def mark_step(self) -> None:
        """End the step of a backend that records work: start all of it, and take the memory that was donated."""

    def donate(self, tensor: torch.Tensor) -> None:
        """Let the end of the step reuse the memory of a tensor. A use of the tensor after the step must raise."""

    def save(self, value: Any, file: IO[bytes]) -> None:
        """Write a value to a file in the backend's own format, which ``torch.load`` reads. Default: ``torch.save``."""

    def build_info(self) -> dict[str, Any]:
        """Return facts of the build: ``torch``, ``compiler``, ``commit``, ``build_type``."""

    def environment(self) -> str:
        """Return the name of the environment that the process runs in, e.g. the allocator mode."""

    def environments(self) -> dict[str, dict[str, str]]:
        """Return environments in which to look for the cause of a failure: the variables of each, by its name."""

    def expected(self) -> str | os.PathLike[str]:
        """Return the absolute path of the known failures: a file, or a directory with ``<name>.toml``.

        May also be an attribute.
        """
