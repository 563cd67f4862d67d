"""The memory statistics of a module that keeps sums since their last reset, and of modules with wrong sums."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import memory_numbers
from conformance.scenarios.memory_numbers import Numbers

COUNTED = "allocation"


class Module:
    """A device module that counts the CPU tensors of its ``empty``, which replaces torch's.

    ``resets``: whether a reset takes effect on the sums. ``gives_back``: whether ``empty_cache`` frees memory.
    """

    __name__ = "module"

    def __init__(self, *, resets: bool, gives_back: bool = True) -> None:
        self.resets, self.gives_back = resets, gives_back
        self.live = self.peak = self.freed = self.cleared = self.reserved = 0
        self._empty = torch.empty

    def empty(self, size: int, **_: Any) -> torch.Tensor:
        """Return a tensor that is counted until it is freed."""
        tensor = self._empty(1)
        self.live += 1
        self.peak = max(self.peak, self.live)
        self.reserved += size
        module = self

        class Counted:
            def __del__(self) -> None:
                module.live -= 1
                module.freed += 1

        tensor.counted = Counted()
        return tensor

    def synchronize(self, _: int) -> None:
        """Do nothing, since no work is queued."""

    def empty_cache(self) -> None:
        """Free all reserved memory if ``gives_back``."""
        self.reserved = 0 if self.gives_back else self.reserved

    def reset_accumulated_memory_stats(self, _: int) -> None:
        """Reset the sums if ``resets``."""
        self.cleared = self.live + self.freed if self.resets else 0

    def memory_stats(self, _: int) -> dict[str, int]:
        """Return the statistics."""
        sums = (0, 0) if self.cleared else (self.live + self.freed, self.freed)
        return {
            "allocation.all.current": self.live, "allocation.all.allocated": sums[0], "allocation.all.freed": sums[1],
            "allocation.all.peak": self.peak, "reserved_bytes.all.current": self.reserved,
        }  # fmt: skip


@pytest.mark.parametrize("right", [True, False])
def test_sums_begin_again_where_they_are_reset(monkeypatch: pytest.MonkeyPatch, right: bool) -> None:
    module = Module(resets=right)
    monkeypatch.setattr(torch, "empty", module.empty)
    assert memory_numbers._starts_sums_again(COUNTED, Numbers("cpu", module)) is right  # noqa: SLF001


@pytest.mark.parametrize("right", [True, False])
def test_memory_that_is_kept_is_given_back(monkeypatch: pytest.MonkeyPatch, right: bool) -> None:
    module = Module(resets=True, gives_back=right)
    monkeypatch.setattr(torch, "empty", module.empty)
    assert memory_numbers._gives_back(Numbers("cpu", module)) is right  # noqa: SLF001


@pytest.mark.forked
@pytest.mark.parametrize("right", [True, False])
def test_a_peak_that_counts_what_could_not_be_allocated_is_found(monkeypatch: pytest.MonkeyPatch, right: bool) -> None:
    pytest.importorskip("refnpu")
    module: Any = torch.get_device_module("npu")
    stats = module.memory_stats

    def raised(index: int) -> dict[str, int]:
        found: dict[str, int] = stats(index)
        return found | {"allocated_bytes.all.peak": found["allocated_bytes.all.peak"] + found["num_ooms"]}

    monkeypatch.setattr(module, "memory_stats", stats if right else raised)
    assert memory_numbers._failures(Numbers("npu:0", module)) is right  # noqa: SLF001


@pytest.mark.forked
@pytest.mark.parametrize("right", [True, False])
def test_a_reset_of_peaks_that_reaches_other_devices_is_found(monkeypatch: pytest.MonkeyPatch, right: bool) -> None:
    pytest.importorskip("refnpu")
    module: Any = torch.get_device_module("npu")
    reset = module.reset_peak_memory_stats

    def reset_all(_: int) -> None:
        for index in range(module.device_count()):
            reset(index)

    monkeypatch.setattr(module, "reset_peak_memory_stats", reset if right else reset_all)
    assert memory_numbers._peaks(COUNTED, Numbers("npu:0", module)) is right  # noqa: SLF001


@pytest.mark.parametrize("right", [True, False])
def test_a_reset_of_sums_that_reaches_other_devices_is_found(monkeypatch: pytest.MonkeyPatch, right: bool) -> None:
    module = Module(resets=not right)  # CPU is also the other device here
    monkeypatch.setattr(torch, "empty", module.empty)
    assert memory_numbers._adds_up(COUNTED, Numbers("cpu", module)) is right  # noqa: SLF001
