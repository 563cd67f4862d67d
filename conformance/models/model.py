"""A recorded model: its distinct calls, how often each program makes them, and how it was made. No torch.

A call is a sample without values: its slots name their storages by ``pool``, and each has a placement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from conformance.corpus.model import Arg, DtypeArg, Sample
from conformance.layouts import Placement


@dataclass(frozen=True)
class ModelCall:
    """Calls that differ only in the values of their tensors. ``counts``: their number, by program.

    ``made``: the bytes of the new storages on the device in the results.
    """

    sample: Sample
    placements: tuple[Placement, ...]
    shared: tuple[tuple[int, int, int], ...] = ()  # see `Case`
    made: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def overload(self) -> str:
        return self.sample.overload

    @property
    def count(self) -> int:
        """The number of calls in all programs."""
        return sum(self.counts.values())

    @property
    def elements(self) -> int:
        """The elements of the largest tensor argument."""
        return max((s.numel for s in self.sample.tensors), default=0)

    @property
    def is_contiguous(self) -> bool:
        """Whether each argument on the device fills a storage of its own."""
        placed = zip(self.sample.tensors, self.placements, strict=True)
        return not self.shared and all(s.on_host or p.layout == "contiguous" for s, p in placed)

    @property
    def dtypes(self) -> frozenset[str]:
        """The dtypes of the cells that try this call.

        These are the dtypes of its floating and complex arguments on the device; without such arguments, of all
        arguments on the device; without arguments on the device, the dtypes among its arguments.
        """
        held = {s.dtype for s in self.sample.tensors if s.dtype and not s.on_host}
        wide = {dtype for dtype in held if re.match(r"b?float|complex", dtype)}
        return frozenset(wide or held or _named((*self.sample.args, *(arg for _, arg in self.sample.kwargs))))

    @property
    def copied(self) -> int:
        """The bytes that a fallback copies: all arguments' storages to the host, the written and new storages back."""
        storages: dict[str, int] = {}
        written: set[str] = set()
        for slot, placement in zip(self.sample.tensors, self.placements, strict=True):
            if slot.on_host or slot.same_as:
                continue
            size = placement.storage * itemsize(slot.dtype or "float32")
            storages[slot.pool] = max(storages.get(slot.pool, 0), size)
            written |= {slot.pool} if slot.written else set()
        return sum(storages.values()) + sum(storages[pool] for pool in written) + self.made


@dataclass(frozen=True)
class Recording:
    """The calls of one model's programs."""

    name: str  # e.g. "qwen2"
    title: str  # one line for people
    calls: tuple[ModelCall, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)  # how it was made: versions, configuration, programs

    @property
    def count(self) -> int:
        """The number of calls of all its programs."""
        return sum(call.count for call in self.calls)


Below = Mapping[str, tuple[str, ...]]  # overload -> the overloads that torch's own kernel for all devices calls


@cache
def itemsize(dtype: str) -> int:
    """Return the bytes of an element of a dtype by torch's name, e.g. 2 for ``bfloat16``."""
    bits = re.search(r"\d+", dtype)
    return int(bits[0]) // 8 if bits else 1


def _named(args: tuple[Arg, ...]) -> set[str]:
    return {arg.name for arg in args if isinstance(arg, DtypeArg) and arg.name}
