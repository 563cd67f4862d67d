"""Statistics of a device's memory: they count tensors while they live, and the peak until it is reset."""

from __future__ import annotations

import torch

from conformance.scenarios.asking import Property, module_of, named
from conformance.scenarios.model import NotOffered, first_line, unless_first

SIZE = 1 << 20  # bytes of a tensor that statistics must count
LARGE = 64 << 20  # bytes of a tensor that must lower the free memory
MANY = 5  # tensors of one GiB each: their bytes together exceed 32 bits
GIB = 1 << 30


class CountedMemory:
    """Properties of a device's memory statistics. Each calls the functions of the device's module that it needs."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._of = unless_first(device)

    @property
    def properties(self) -> dict[str, Property]:
        """The properties by name. Each raises NotOffered if the module lacks a function that it needs."""
        return {
            "counted": self._counted, "views_are_free": self._views_are_free, "peak": self._peak,
            "peak_while_it_lives": self._peak_while_it_lives, "given_back": self._given_back,
            "pinned_is_on_the_host": self._pinned_is_on_the_host, "resized": self._resized,
            "emptied": self._emptied, "free": self._free, "beyond_4_gib": self._beyond_4_gib,
        }  # fmt: skip

    def _asked(self, name: str) -> int:
        found = named(module_of(self._device), name)(*self._of)
        assert isinstance(found, int)
        return found

    def _allocated(self) -> int:
        return self._asked("memory_allocated")

    def _of_bytes(self, size: int) -> torch.Tensor:
        return torch.empty(size, dtype=torch.uint8, device=self._device)

    def _counted(self) -> bool:
        before = self._allocated()
        tensor = self._of_bytes(SIZE)
        grown = self._allocated() - before
        del tensor
        return SIZE <= grown < 2 * SIZE and self._allocated() == before

    def _views_are_free(self) -> bool:
        tensor = self._of_bytes(SIZE)
        before = self._allocated()
        return len(tensor.split(1024)) == 1024 and self._allocated() == before

    def _peak(self) -> bool:
        reset = named(module_of(self._device), "reset_peak_memory_stats")
        kept = self._of_bytes(SIZE)
        reset(*self._of)
        before = self._allocated()
        self._of_bytes(2 * kept.nbytes)
        stays = self._asked("max_memory_allocated")
        reset(*self._of)
        return stays >= before + 2 * SIZE and self._asked("max_memory_allocated") == self._allocated() == before

    def _peak_while_it_lives(self) -> bool:
        named(module_of(self._device), "reset_peak_memory_stats")(*self._of)
        kept = self._of_bytes(2 * SIZE)
        return bool(self._asked("max_memory_allocated") == self._allocated() >= kept.nbytes)

    def _beyond_4_gib(self) -> bool:
        """Return whether more than 4 GiB are counted. Nothing is written. Raises NotOffered without the memory."""
        if self._free_bytes() < 2 * MANY * GIB:
            raise NotOffered(f"a device with {2 * MANY} GiB of free memory")
        before = self._allocated()
        try:
            kept = [self._of_bytes(GIB) for _ in range(MANY)]
        except RuntimeError as e:  # for example, a device that shares its memory with the host
            raise NotOffered(f"{MANY} GiB of memory: {first_line(e)}") from e
        counted, peak = self._allocated(), self._asked("max_memory_allocated")
        return len(kept) == MANY and MANY * GIB <= counted - before < (MANY + 1) * GIB and peak >= counted

    def _free_bytes(self) -> int:
        return int(named(module_of(self._device), "mem_get_info")(*self._of)[0])  # type: ignore[index]

    def _pinned_is_on_the_host(self) -> bool:
        before = self._allocated()
        pinned = torch.ones(SIZE, dtype=torch.uint8).pin_memory()
        return pinned.is_pinned() and self._allocated() == before

    def _given_back(self) -> bool:
        empty, wait = (named(module_of(self._device), f) for f in ("empty_cache", "synchronize"))
        empty()
        before = self._asked("memory_reserved")
        kept = [self._of_bytes(size) for size in (64 * SIZE, *(1000,) * 7)]
        for number in (0, 1, 3, 2, 7, 5, 6, 4):  # some are freed between two free ones
            kept[number] = torch.empty(0)
        wait(*self._of)
        empty()
        return self._asked("memory_reserved") <= before

    def _resized(self) -> bool:
        tensor = self._of_bytes(SIZE)
        before = self._allocated()
        tensor.untyped_storage().resize_(3 * SIZE)
        return 2 * SIZE <= self._allocated() - before < 3 * SIZE

    def _emptied(self) -> bool:
        tensor = self._of_bytes(SIZE)
        before = self._allocated()
        tensor.untyped_storage().resize_(0)
        return before - self._allocated() >= SIZE

    def _free(self) -> bool:
        """Return whether ``mem_get_info`` reports less free memory while a large tensor lives, and more afterwards."""
        empty, wait = (named(module_of(self._device), f) for f in ("empty_cache", "synchronize"))

        def left() -> int:
            wait(*self._of)
            empty()
            return self._free_bytes()

        def shown() -> bool:
            before = left()
            tensor = torch.ones(LARGE, dtype=torch.uint8, device=self._device)
            during = left()
            del tensor
            return before - during >= LARGE // 2 and left() - during >= LARGE // 2

        return any(shown() for _ in range(3))  # other programs may use the device, too
