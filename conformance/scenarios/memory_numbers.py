"""The numbers of ``memory_stats``, under the keys that torch documents for all accelerators.

CPU has no counterpart. Its results are the expected ones: each property holds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import torch

from conformance.scenarios.asking import Property, accelerator, another, held, module_of, named
from conformance.scenarios.model import NotOffered, Results, scenario

BYTES = 1 << 16  # bytes of a tensor
TENSORS = 70  # more tensors than fit into a segment of 4 MiB
LARGE = 64 << 20  # bytes of a tensor that has memory of its own
#: The counted quantities, and whether each is in bytes.
COUNTED = {
    "allocation": False, "active": False, "segment": False,
    "allocated_bytes": True, "active_bytes": True, "requested_bytes": True, "reserved_bytes": True,
}  # fmt: skip
#: Quantities that live as long as a tensor and are not cached.
OF_TENSORS = ("allocation", "allocated_bytes", "requested_bytes")
#: The functions that return one of the numbers.
FUNCTIONS = {
    "memory_allocated": "allocated_bytes.all.current", "max_memory_allocated": "allocated_bytes.all.peak",
    "memory_reserved": "reserved_bytes.all.current", "max_memory_reserved": "reserved_bytes.all.peak",
}  # fmt: skip


class Numbers:
    """The memory numbers of a device, from ``torch.accelerator`` or the device's module. Methods raise NotOffered."""

    def __init__(self, device: str, module: Any) -> None:
        self.device, self.module = device, module
        self._index = torch.device(device).index or 0

    def ask(self, function: str) -> Any:
        """Return the result of a function of the module for the device."""
        return named(self.module, function)(self._index)

    def __call__(self, key: str) -> int:
        """Return the current number under a key of ``memory_stats``."""
        found = self.ask("memory_stats").get(key)
        if not isinstance(found, int):
            raise NotOffered(f"{self.module.__name__}.memory_stats()[{key!r}]")
        return found

    def of(self, counted: str, *metrics: str) -> list[int]:
        """Return metrics of a counted quantity. Raises NotOffered if the backend does not count it.

        A backend that does not count it reports 0, even while a tensor lives.
        """
        kept = torch.empty(BYTES, dtype=torch.uint8, device=self.device)
        if not self(f"{counted}.all.current"):
            raise NotOffered(f"{self.module.__name__}.memory_stats() that counts {counted}")
        del kept
        return [self(f"{counted}.all.{metric}") for metric in metrics]

    def begin(self) -> None:
        """Empty the cache and reset the peaks, as far as the module offers it."""
        with suppress(NotOffered, NotImplementedError):
            named(self.module, "empty_cache")()
        with suppress(NotOffered, NotImplementedError):
            self.ask("reset_peak_memory_stats")

    def elsewhere(self) -> torch.Tensor | None:
        """Return a large tensor on another device of the kind, which must count there alone. None if there is none."""
        with suppress(NotOffered):
            return torch.empty(LARGE, dtype=torch.uint8, device=another(self.device))
        return None

    def reset_elsewhere(self, function: str) -> None:
        """Reset the numbers of another device of the kind, if there is one and the module offers it.

        The numbers of this device must not change.
        """
        with suppress(NotOffered, NotImplementedError):
            named(self.module, function)(torch.device(another(self.device)).index)

    def tensors(self) -> list[torch.Tensor]:
        """Return new tensors."""
        return [torch.empty(BYTES, dtype=torch.uint8, device=self.device) for _ in range(TENSORS)]


def _while_they_live(counted: str, numbers: Numbers) -> bool:
    """Return whether tensors are counted while they live."""
    (before,) = numbers.of(counted, "current")
    tensors = numbers.tensors()
    (between,) = numbers.of(counted, "current")
    del tensors
    least = TENSORS * (BYTES if COUNTED[counted] else 1)
    return between - before >= least and numbers.of(counted, "current") == [before]


def _adds_up(counted: str, numbers: Numbers) -> bool:
    """Return whether the current number grows by the allocated minus the freed number.

    The current number is at most the peak, and neither sum ever falls.
    """
    numbers.begin()
    metrics = ("current", "allocated", "freed")
    before = numbers.of(counted, *metrics)
    for kept in (TENSORS, 1):
        tensors = numbers.tensors()[:kept]
        numbers.reset_elsewhere("reset_accumulated_memory_stats")
        *after, peak = numbers.of(counted, *metrics, "peak")
        del tensors
        held_more, allocated, freed = (b - a for a, b in zip(before, after))
        if allocated - freed != held_more or min(allocated, freed) < 0 or after[0] > peak:
            return False
        before = after
    return True


def _starts_sums_again(counted: str, numbers: Numbers) -> bool:
    """Return whether a reset sets the sums to 0 and keeps the current number."""
    tensors = numbers.tensors()
    (before,) = numbers.of(counted, "current")
    numbers.ask("reset_accumulated_memory_stats")
    sums = [numbers(f"{counted}.all.{metric}") for metric in ("allocated", "freed")]
    return sums == [0, 0] and numbers.of(counted, "current") == [before] and len(tensors) == TENSORS


def _peaks(counted: str, numbers: Numbers) -> bool:
    """Return whether the peak is the most that was in use at once on this device since the last reset."""
    there = numbers.elsewhere()
    tensors = numbers.tensors()
    numbers.ask("reset_peak_memory_stats")
    (at_once,) = numbers.of(counted, "current")
    tensors += numbers.tensors()
    (highest,) = numbers.of(counted, "current")
    del tensors
    numbers.reset_elsewhere("reset_peak_memory_stats")
    (stays,) = numbers.of(counted, "peak")
    numbers.ask("reset_peak_memory_stats")
    current, peak = (numbers(f"{counted}.all.{metric}") for metric in ("current", "peak"))
    grown = highest - at_once
    del there
    return grown > 0 and highest <= stays <= highest + grown and peak == current


def _gives_back(numbers: Numbers) -> bool:
    """Return whether ``empty_cache`` gives back the cached memory."""

    def emptied() -> int:
        numbers.ask("synchronize")
        named(numbers.module, "empty_cache")()
        (reserved,) = numbers.of("reserved_bytes", "current")
        named(numbers.module, "empty_cache")()
        return reserved

    before = emptied()
    tensors = [*numbers.tensors(), torch.empty(LARGE, dtype=torch.uint8, device=numbers.device)]
    (grown,) = numbers.of("reserved_bytes", "current")
    del tensors
    return grown - before >= LARGE and emptied() <= before


def _of_function(name: str, numbers: Numbers) -> bool:
    """Return whether a function and ``memory_stats`` give the same number."""
    kept = numbers.tensors()
    counted, _, metric = FUNCTIONS[name].split(".")
    return numbers.of(counted, metric) == [numbers.ask(name)] and len(kept) == TENSORS


def _failures(numbers: Numbers) -> bool:
    """Return whether a failed allocation counts once as out of memory, and not as an allocation or a peak."""
    keys = (
        "num_ooms", "allocation.all.current", "allocation.all.allocated", "allocated_bytes.all.allocated",
        "allocated_bytes.all.peak", "reserved_bytes.all.peak",
    )  # fmt: skip
    before = [numbers(key) for key in keys]
    try:
        torch.empty(1 << 60, dtype=torch.uint8, device=numbers.device)
    except torch.OutOfMemoryError:
        failed, *after = (numbers(key) for key in keys)
        return failed == before[0] + 1 and after == before[1:]
    except RuntimeError as e:
        raise NotOffered("torch.OutOfMemoryError") from e
    return False


def _properties(device: str, module_named: Callable[[str], Any]) -> dict[str, Property]:
    def holds(property_of: Callable[..., bool], *given: str) -> bool:
        return property_of(*given, Numbers(device, module_named(device)))

    return {
        **{f"{counted}_while_they_live": partial(holds, _while_they_live, counted) for counted in OF_TENSORS},
        **{f"{counted}_adds_up": partial(holds, _adds_up, counted) for counted in COUNTED},
        **{f"{counted}_peak": partial(holds, _peaks, counted) for counted in OF_TENSORS},
        **{f"{counted}_sums": partial(holds, _starts_sums_again, counted) for counted in OF_TENSORS},
        **{name: partial(holds, _of_function, name) for name in FUNCTIONS},
        "gives_back": partial(holds, _gives_back),
        "failures": partial(holds, _failures),
    }


def _accelerator(device: str) -> Any:
    accelerator(device)
    return torch.accelerator


@scenario(exact=True, area="memory", accelerators=True)
def numbers_of_the_device(device: str) -> Results:
    """``torch.<device>.memory_stats`` counts tensors, bytes, peaks and failures under torch's keys."""
    return held(device, _properties(device, module_of))


@scenario(exact=True, area="memory", accelerators=True)
def numbers_of_the_accelerator(device: str) -> Results:
    """``torch.accelerator.memory_stats`` counts tensors, bytes, peaks and failures."""
    return held(device, _properties(device, _accelerator))
