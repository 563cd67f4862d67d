"""The backend's adapter for the conformance suite, offered through the entry point ``conformance.backends``."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any, ClassVar

import refnpu
from refnpu import _C, _build_info

if TYPE_CHECKING:
    import torch

_LATE, _LAZY = _C.is_late(), _C.is_lazy()
_DELAY = os.environ.get("REFNPU_DELAY_US") or "0"
_FILL = os.environ.get("REFNPU_FILL_FRESH") or "none"


class Adapter:
    """The adapter of the reference NPU's first device. Importing and creating it touches no device."""

    name = "refnpu"
    device = "npu:0"
    keeps_subnormals = True
    fills_fresh = bool(os.environ.get("REFNPU_FILL_FRESH"))
    hidden_by: ClassVar[dict[str, str]] = {"REFNPU_DEVICES": "0"}

    def route_counters(self) -> tuple[int, int]:
        """Return the number of (native, fallback) calls since the process started."""
        return _C.route_totals()

    def memory_stats(self) -> dict[str, int]:
        """Return ``live_bytes`` and ``live_blocks`` of the device, and other statistics."""
        return _C.memory_stats(0)

    def synchronize(self) -> None:
        """Return when all submitted work is done."""
        _C.synchronize(0)

    def verify_memory(self) -> list[str]:
        """Return the damage that the allocator mode can see, one line for each block."""
        return _C.verify_memory()

    def fill_fresh(self, byte: int | None) -> None:
        """Fill fresh blocks with ``byte``; None: with the fill that the process was started with."""
        _C.set_fill(_FILL if byte is None else f"0x{byte:02X}", "")

    def delay_work(self, us: int | None, seed: int | None = None) -> None:
        """Run work that is submitted from now on late, ``us`` microseconds after its turn; None: as at the start.

        With a seed, most work starts at once and some work after up to a millisecond, whatever ``us`` is. In every run
        of a program, it is the same work.
        """
        if us is None:
            _C.set_late(_LATE)
            _C.set_lazy(_LAZY)
            _C.set_delay(_DELAY)
            return
        _C.set_delay(str(us) if seed is None else f"random:{seed}")
        _C.set_late(True)

    def mark_step(self) -> None:
        """End the step: start the recorded work, and take donated memory."""
        refnpu.mark_step(0)

    def donate(self, tensor: torch.Tensor) -> None:
        """Give away the memory of a tensor at the end of the step."""
        refnpu.donate(tensor)

    def save(self, value: Any, file: IO[bytes]) -> None:
        """Run only the recorded work that a value needs, and write the value to a file."""
        refnpu.save(value, file)

    def build_info(self) -> dict[str, str]:
        """Return facts of the build, and the allocator mode of this process."""
        return {
            "torch": _build_info.TORCH,
            "compiler": _build_info.COMPILER,
            "commit": _build_info.COMMIT,
            "build_type": _build_info.BUILD,
            "allocator": _C.allocator_mode(),
        }

    def environment(self) -> str:
        """Return the allocator mode, and the protection, fill and schedule that this process was started with."""
        parts = (
            _C.allocator_mode(),
            "protect" if os.environ.get("REFNPU_PROTECT") == "1" else "",
            f"fill_{_FILL.replace(':', '')}" if _FILL != "none" else "",
            "lazy" if _LAZY else "late" if _LATE else "",
        )
        return "_".join(filter(None, parts))

    def environments(self) -> dict[str, dict[str, str]]:
        """Return the environments that triage tries outside of this repository: allocators, fills and schedules."""
        modes = ("malloc", "aligned_alloc", "redzone", "guard", "guard_left")
        exact = {"REFNPU_ALLOCATOR": "malloc"}
        little = {"REFNPU_CAPACITY": str(1 << 30)}
        late = {"REFNPU_LATE": "1", "REFNPU_DELAY_US": "random:1"}
        return {
            **{mode: {"REFNPU_ALLOCATOR": mode} for mode in modes},
            "pool": little | {"REFNPU_ALLOCATOR": "pool"},
            "protect": {"REFNPU_ALLOCATOR": "guard", "REFNPU_PROTECT": "1"},
            "late": exact | little | late,
            "pool_late": little | {"REFNPU_ALLOCATOR": "pool"} | late,
            "lazy": exact | {"REFNPU_LAZY": "1"},
            "fill_nan": exact | {"REFNPU_FILL_FRESH": "nan", "REFNPU_FILL_FREED": "0xAB"},
            "fill_random": exact | {"REFNPU_FILL_FRESH": "random:1", "REFNPU_FILL_FREED": "random:2"},
        }


adapter = Adapter()
