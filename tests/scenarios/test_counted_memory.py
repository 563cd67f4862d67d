"""The statistics of a device's memory: 32-bit counters are found, and a small device offers nothing to count."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import counted_memory
from conformance.scenarios.counted_memory import GIB, CountedMemory
from conformance.scenarios.model import NotOffered

KEPT = 1 << 32  # bytes that a 32-bit counter loses


class Module:
    """A device module that counts the bytes of tensors without allocating them; its ``empty`` replaces torch's."""

    def __init__(self, modulus: int = 1 << 64, free: int = 16 * GIB) -> None:
        self.bytes, self.modulus, self.free = 1000, modulus, free

    def empty(self, size: int, **_: Any) -> torch.Tensor:
        """Return a small tensor, and count ``size`` bytes. Raises OutOfMemoryError if they are not free."""
        if size + self.bytes > self.free:
            raise torch.OutOfMemoryError("no memory")
        self.bytes += size
        return torch.ones(1)

    def memory_allocated(self) -> int:
        """Return the number of bytes modulo ``modulus``."""
        return self.bytes % self.modulus

    max_memory_allocated = memory_allocated

    def mem_get_info(self) -> tuple[int, int]:
        """Return 16 GiB of free and of total memory."""
        return 16 * GIB, 16 * GIB


def counts(monkeypatch: pytest.MonkeyPatch, module: Module) -> bool:
    monkeypatch.setattr(torch, "empty", module.empty)
    monkeypatch.setattr(counted_memory, "module_of", lambda _: module)
    return CountedMemory("cuda:0").properties["beyond_4_gib"]()


@pytest.mark.parametrize(("modulus", "right"), [(1 << 64, True), (KEPT, False)])
def test_more_bytes_are_counted_than_32_bits_hold(monkeypatch: pytest.MonkeyPatch, modulus: int, right: bool) -> None:
    assert counts(monkeypatch, Module(modulus)) is right


def test_a_device_that_says_what_it_does_not_have_offers_nothing_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotOffered, match="5 GiB of memory: no memory"):
        counts(monkeypatch, Module(free=2 * GIB))


def test_a_small_device_offers_nothing_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Module()
    monkeypatch.setattr(module, "mem_get_info", lambda: (9 * GIB, 16 * GIB))
    with pytest.raises(NotOffered, match="10 GiB of free memory"):
        counts(monkeypatch, module)
    assert module.bytes == 1000
