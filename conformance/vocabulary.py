"""The words of the suite: routes, statuses, checks, facts, and the ids of cells and cases.

Nothing here imports torch or pytest, so that results can be read and judged where neither is installed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

# The dtypes a cell can have, by torch's names.
DTYPES = (
    "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "float8_e8m0fnu", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex32", "complex64", "complex128",
)  # fmt: skip


class Word(str, Enum):
    """A string out of a closed set, and what it means."""

    _value_: str
    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Word:  # by value alone when looked up
        word = str.__new__(cls, value)
        word._value_ = value
        word.meaning = meaning
        return word

    def __str__(self) -> str:
        return self._value_


class Route(Word):
    """How a backend serves an overload."""

    NATIVE = "native", "a kernel that the backend registered for it"
    FALLBACK = "fallback", "the backend's boxed fallback, which runs CPU's kernel"
    COMPOSITE = "composite", "torch, from other overloads"
    UNSUPPORTED = "unsupported", "nobody: a call raises"


class Status(Word):
    """What came of a cell. Closed: every collected cell ends in exactly one of these."""

    PASS = "pass", "every case that was compared agrees with CPU"
    FAIL = "fail", "a case differs from CPU"
    ERROR = "error", "the suite itself broke, and judged nothing"
    CRASH = "crash", "the process died in a case"
    TIMEOUT = "timeout", "a case did not end in time"
    UNSUPPORTED = "unsupported", "there is nothing to compare: no kernel for it, or none for this dtype, on either side"
    NOT_REACHED = "not_reached", "the run ended, or was told to, before it was tried"

    @property
    def is_failure(self) -> bool:
        """The one place that says which statuses count as failures."""
        return self in (Status.FAIL, Status.ERROR, Status.CRASH, Status.TIMEOUT)


class Check(Word):
    """What was compared when a case failed."""

    VALUE = "value", "a result differs: by a bit on a fallback; by more than CPU is from float64, with a floor, else"
    DTYPE = "dtype", "a result has another dtype"
    SHAPE = "shape", "a result has another size"
    STRIDE = "stride", "a result has other strides"
    OFFSET = "offset", "a result lies elsewhere in its storage"
    ALIASING = "aliasing", "a result shares storage with another argument than on CPU, or with none"
    MUTATION = "mutation", "an argument changed that the schema does not mark, or one that it marks changed otherwise"
    UNTOUCHED = "untouched", "bytes of a storage changed that no view reaches"
    VERSION = "version", "a version counter moved otherwise"
    REDZONE = "redzone", "the allocator found damage around or in its blocks"
    LEAK = (
        "leak",
        "device memory is alive after the call that its results do not hold, or host memory is lost (LeakSanitizer)",
    )
    ROUTE = "route", "the call went another way than the dispatcher says: a native op that fell back, or the reverse"
    ERROR_PARITY = "error_parity", "one side raised and the other did not, or another type"
    DETERMINISM = "determinism", "the same call gave other bits the second time"
    UNINITIALIZED = "uninitialized", "a result depends on what fresh device memory held: the op reads what nobody wrote"
    DISTRIBUTION = "distribution", "random values do not follow CPU's distribution"
    DEVICE = "device", "a result is on another device"


class Fact(Word):
    """What a mismatch found: the values of its fact ``kind``, each with the other facts that it has.

    ``device`` and ``cpu`` are the two sides. Numbers that JSON does not have (NaN, infinities, complex numbers) are
    strings.
    """

    ELEMENTS = (
        "elements",
        "wrong, of: counts; index, device, cpu, float64, absolute, ulp: of the first wrong one; dtype; bound; pattern",
    )
    METADATA = "metadata", "what: dtype, type, shape, stride, offset, layout, conj, neg or zero; device, cpu"
    PLAIN = "plain", "a result that is no tensor: device, cpu"
    BYTES = "bytes", "of a storage: bytes: how many changed; byte: the first, of: all; before, device: its values"
    COUNT = "count", "device, cpu: how many results"
    DEVICE = "device", "device: where the result is; wanted: where it belongs"
    ERRORS = "errors", "device, cpu: the type and the first line of what was raised; null where nothing was"
    ALIASING = "aliasing", "device, cpu: the argument whose storage the result shares; null for none"
    IDENTITY = "identity", "argument; device, cpu: whether the result is that argument, not a view of its storage"
    SHARED_RESULTS = "shared_results", "device, cpu: the earlier result whose storage it shares; null for none"
    GIVEN_TWICE = "given_twice", "tensor, call: what is alive in the memory that the result was given"
    VERSION = "version", "device, cpu: the argument's version counter"
    DAMAGE = "damage", "line: a damaged block, as the backend's allocator describes it"
    DEVICE_LEAK = "device_leak", "blocks, bytes: of device memory, more after the call than before it"
    HOST_LEAK = "host_leak", "cells: in the batch; guilty: the one that loses memory alone; lost: blocks by stack"
    SECOND_CALL_RAISED = "second_call_raised", "error: what the second call with the same arguments raised"
    UNSTABLE = "unstable", "two calls with the same arguments gave different bits"
    FRESH_MEMORY = "fresh_memory", "byte: what fresh device memory held in the call that gave other bits"
    SAME_DRAWS = "same_draws", "seeds: how many gave the same draws"
    NAN_DRAWS = "nan_draws", "some draws are NaN"
    DRAWS = "draws", "distance, allowed: of Kolmogorov and Smirnov; draws: how many"
    ROUTE = "route", "registered: the route in the dispatcher; native, fallback: calls counted by the backend"


@dataclass(frozen=True, slots=True)
class CellId:
    """Overload × dtype × layout, and the ops/ family that says where it is listed."""

    family: str
    overload: str
    dtype: str
    layout: str

    def __str__(self) -> str:
        return f"ops/{self.family}.py::{self.name}"

    @property
    def name(self) -> str:
        """The pytest item's name, e.g. ``masked_fill_.Scalar[float32-expanded]``."""
        return f"{self.overload}[{self.dtype}-{self.layout}]"

    @property
    def operator(self) -> str:
        """The overload's operator, e.g. ``masked_fill_`` of ``masked_fill_.Scalar``."""
        return self.overload.partition(".")[0]

    def fields(self) -> tuple[str, str, str, str]:
        """What it is made of, in the order of the constructor."""
        return self.family, self.overload, self.dtype, self.layout

    @staticmethod
    def parse(text: str) -> CellId | None:
        """Inverse of ``str``; None for a text that is no cell's id."""
        found = _CELL.fullmatch(text)
        return CellId(*found.groups()) if found else None


_CELL = re.compile(r"ops/(\w+)\.py::([\w.]+)\[(\w+)-(\w+)\]")


@dataclass(frozen=True, slots=True)
class CaseId:
    """A cell, the name of a sample, and what the layout is applied to."""

    cell: CellId
    sample: str
    variant: str = ""  # an argument, "all", two that share memory ("self=other"); "" where the layout is contiguous

    def __str__(self) -> str:
        return f"{self.cell}#{self.sample}" + (f"@{self.variant}" if self.variant else "")

    @staticmethod
    def parse(text: str) -> CaseId | None:
        """Inverse of ``str``; None for a text that is no case's id, as a cell's is none."""
        name, _, rest = text.partition("#")
        cell, (sample, _, variant) = CellId.parse(name), rest.partition("@")
        return CaseId(cell, sample, variant) if cell and sample else None


# How much of a lane a run takes, by name; conformance/plan/cases.py says what each leaves out.
TIERS = ("full", "smoke")

# The seed of the random overloads, unless --seed gives another.
DEFAULT_SEED = 20

# What a case's id looks like, for messages.
CASE_ID = "ops/masking.py::masked_fill_.Scalar[float32-expanded]#sample@self"
