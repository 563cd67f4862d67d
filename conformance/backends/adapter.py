"""The adapter that a backend offers: the members that the suite knows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch


@runtime_checkable
class Backend(Protocol):
    """What the suite can use of a backend. Offered through the entry point group ``conformance.backends``.

    Only ``name`` and ``device`` are required; what a backend lacks is not checked, and the run says so. Importing the
    module that offers it should load the backend without touching the device: cells run in forked children. A backend
    that cannot live past a fork has the attribute ``isolation = "spawn"`` (without it: ``"fork"``), and its cells run
    in new interpreters, which cost seconds where a fork costs milliseconds.
    """

    name: str
    device: str  # e.g. "mydev:0"
    # Optional: whether kernels keep subnormal numbers of all dtypes, in arguments and results, or may flush them to 0.
    # Without it the device is asked, once for each dtype.
    keeps_subnormals: bool
    # Optional: whether a process cannot use the device any more once a kernel has failed, as with CUDA. Bad arguments
    # may then end so. Without it, a device that is lost by an error is at fault.
    sticky_errors: bool
    # Optional: variables of the environment that hide all devices from a process, as on a machine without them.
    hidden_by: Mapping[str, str]
    # Optional: CPU threads of the processes that run cells. Without it: 1. With more, ``isolation`` must be "spawn".
    threads: int
    # Optional: whether the environment fills fresh memory. If so, the suite leaves the first call of a case to it.
    fills_fresh: bool

    def route_counters(self) -> tuple[int, int]:
        """(native calls, fallback calls) since the process started; cheap, read around every call."""

    def memory_stats(self) -> dict[str, int]:
        """At least ``live_bytes`` and ``live_blocks``: device memory that is given out, not what is kept for reuse."""

    def synchronize(self) -> None:
        """Return when all submitted work is done."""

    def verify_memory(self) -> list[str]:
        """Damage found in the allocator's own bookkeeping (redzones, canaries); empty when sound.

        One line for each damaged block, which begins with the block's address in hexadecimal. A call reports the damage
        since the previous call.
        """

    def fill_fresh(self, byte: int | None) -> None:
        """Fill blocks of memory that are given out from now on with a byte; None: as when the process started."""

    def delay_work(self, us: int | None, seed: int | None = None) -> None:
        """Let work that is submitted from now on start ``us`` microseconds after its turn; None: as at the start.

        With a seed the delays differ from one piece of work to the next, and are the same in every run of a program.
        """

    def mark_step(self) -> None:
        """End the step of a backend that records work: start all of it, and take the memory that was donated."""

    def donate(self, tensor: torch.Tensor) -> None:
        """Let the end of the step take the memory of a tensor. A use of the tensor after the step must raise."""

    def save(self, value: Any, file: IO[bytes]) -> None:
        """Write a value to a file in the backend's own way, which ``torch.load`` reads. Without it: ``torch.save``."""

    def build_info(self) -> dict[str, Any]:
        """Facts of the build: ``torch``, ``compiler``, ``commit``, ``build_type``."""

    def environment(self) -> str:
        """The name of the environment the process runs in, e.g. the allocator mode."""

    def environments(self) -> dict[str, dict[str, str]]:
        """Environments worth trying when something goes wrong: a name, and the variables that make it."""

    def expected(self) -> str | os.PathLike[str]:
        """Return the absolute path of the known failures: a file, or a directory with ``<name>.toml``.

        May also be an attribute.
        """
