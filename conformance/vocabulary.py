"""The closed sets of words (routes, statuses, checks, facts), and the ids of cells and cases.

Imports neither torch nor pytest, so that results can be read and judged without them.
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
    """A string of a closed set, with its meaning."""

    _value_: str
    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Word:  # a lookup has no meaning
        word = str.__new__(cls, value)
        word._value_ = value
        word.meaning = meaning
        return word

    def __str__(self) -> str:
        return self._value_


class Route(Word):
    """How a backend serves an overload."""

    NATIVE = "native", "a kernel that the backend registered for the overload"
    FALLBACK = "fallback", "the backend's boxed fallback, which runs the CPU kernel"
    COMPOSITE = "composite", "a composite kernel of torch, which calls other overloads"
    UNSUPPORTED = "unsupported", "no kernel: a call raises"


class Status(Word):
    """The outcome of a cell. Every collected cell has exactly one of these."""

    PASS = "pass", "all compared cases agree with CPU"
    FAIL = "fail", "a case differs from CPU"
    ERROR = "error", "the suite itself failed and did not judge the cell"
    CRASH = "crash", "the process died in a case"
    TIMEOUT = "timeout", "a case did not end in time"
    UNSUPPORTED = "unsupported", "nothing to compare: one side has no kernel for the overload or the dtype"
    NOT_REACHED = "not_reached", "the run ended before the cell ran"

    @property
    def is_failure(self) -> bool:
        """Whether a cell with this status counts as a failure."""
        return self in (Status.FAIL, Status.ERROR, Status.CRASH, Status.TIMEOUT)


class Check(Word):
    """A property that is compared with CPU."""

    VALUE = "value", "an element differs: in any bit if the route is `fallback`, else by more than the tolerance"
    DTYPE = "dtype", "a result has another dtype"
    SHAPE = "shape", "a result has another size"
    STRIDE = "stride", "a result has other strides"
    OFFSET = "offset", "a result has another storage offset"
    STORAGE = "storage", "a new result lies in a storage that is far larger than CPU's"
    ALIASING = "aliasing", "a result shares storage with other arguments than on CPU; or what is written has a new one"
    MUTATION = "mutation", "an argument changed that the schema does not mark, or changed differently from CPU"
    UNTOUCHED = "untouched", "bytes of a storage changed that no view covers"
    VERSION = "version", "the version counter of an argument differs from CPU's"
    REDZONE = "redzone", "the allocator found damage in or around its blocks"
    LEAK = (
        "leak",
        "device memory stays allocated after the results are freed, or LeakSanitizer found a leak of host memory",
    )
    ROUTE = "route", "the call did not take the registered route: a native op fell back, or the reverse"
    ERROR_PARITY = "error_parity", "only one side raised, or the sides raised errors of different types"
    DETERMINISM = "determinism", "the same call gave different bits the second time"
    UNINITIALIZED = "uninitialized", "a result depends on uninitialized device memory"
    DISTRIBUTION = "distribution", "random values do not follow CPU's distribution"
    DEVICE = "device", "a result is on another device"
    CONTEXT = "context", "the call did what its context forbids, e.g. left another device the current one"
    STATE = "state", "the call changed what is no memory: the current device or stream, a mode of torch, a generator"


class Fact(Word):
    """The kinds of a mismatch. The meaning lists the facts of each kind.

    ``device`` and ``cpu`` are the values of the two sides. Numbers that JSON does not have (NaN, infinities, complex
    numbers) are strings.
    """

    ELEMENTS = (
        "elements",
        "wrong, of: counts; index, device, cpu, float64, absolute, ulp: of the first wrong one; dtype; bound; pattern",
    )
    ROUNDING = (
        "rounding",
        "direction; of: number of elements; mean, cpu: how far they are off in it, on each side, in units of the dtype",
    )
    PHASES = "phases", "other: result of the other singular vectors; index: of the batch and of the pair that differs"
    TURNED = "turned", "index: of the batch and of the vector that differs; distance, allowed: over its length"
    METADATA = (
        "metadata",
        ("what: dtype, type, shape, stride, offset, layout, conj, neg, zero, sparse_dim, dense_dim or coalesced; "
         "device, cpu"),
    )  # fmt: skip
    PLAIN = "plain", "device, cpu: a result that is not a tensor"
    BYTES = "bytes", "bytes: number of changed bytes; byte: the first; of: size of the storage; before, device: values"
    COUNT = "count", "device, cpu: number of results"
    DEVICE = "device", "device: the result's device; wanted: the expected device"
    MEMORY_DEVICE = "memory_device", "device: the device of the result's memory; wanted: the result's device"
    ERRORS = "errors", "device, cpu: type and first line of the error; null if the side did not raise"
    LATE_ERROR = "late_error", "device: type and first line of the error that it raised when it was synchronized later"
    DEVICE_LOST = (
        "device_lost",
        "device: type and first line of the error that it raises ever since the call raised",
    )
    UNREADABLE = "unreadable", "device: type and first line of the error that it raised when a tensor was read back"
    STORAGE = "storage", "device, cpu: bytes of the storage of a new result"
    ALIASING = "aliasing", "device, cpu: the argument whose storage the result shares; null for none"
    IDENTITY = "identity", "argument; device, cpu: whether the result is that argument, not a view of its storage"
    SHARED_RESULTS = "shared_results", "device, cpu: the earlier result whose storage this one shares; null for none"
    NEW_STORAGE = "new_storage", "device, cpu: whether the argument lies in another storage than before the call"
    GIVEN_TWICE = "given_twice", "tensor, call: the live tensor whose memory the allocator gave to the result"
    VERSION = "version", "device, cpu: the argument's version counter"
    DAMAGE = "damage", "line: a damaged block, as the backend's allocator describes it"
    DEVICE_LEAK = "device_leak", "blocks, bytes: device memory allocated after the call minus that before it"
    HOST_LEAK = "host_leak", "cells: in the batch; guilty: the cell that leaks when run alone; lost: blocks by stack"
    SECOND_CALL_RAISED = "second_call_raised", "error: raised by the second call with the same arguments"
    UNSTABLE = "unstable", "none: two calls with the same arguments gave different bits"
    FRESH_MEMORY = (
        "fresh_memory",
        "byte: the fill of fresh device memory in the call that gave different bits; difference: facts of wrong values",
    )
    SAME_DRAWS = "same_draws", "seeds: number of seeds that gave the same draws"
    NAN_DRAWS = "nan_draws", "none: some draws are NaN"
    DRAWS = "draws", "distance, allowed: Kolmogorov-Smirnov distances; draws: their number"
    DRAWS_AT = "draws_at", "position: the flat index of the draws that are compared; the others as those of draws"
    REPEATED_DRAWS = "repeated_draws", "rows: number of rows in which a number is drawn twice; of: number of rows"
    STUCK_DRAWS = (
        "stuck_draws",
        "position, value: flat index and what it always holds; draws; others: CPU's, of other values; positions",
    )
    TIED_DRAWS = (
        "tied_draws",
        "first, second: flat indices where length draws are equal; unequal: CPU's calls, of calls",
    )
    REPEATED_BLOCK = "repeated_block", "length: draws from flat index first on recur at second, calls_apart calls later"
    FOREIGN_DRAWS = (
        "foreign_draws",
        "calls, of: how many have a number that no first call of CPU has in the row; cpu_calls, cpu_of: its later ones",
    )
    UNRELATED_DRAWS = (
        "unrelated_draws",
        "other: a drawn result, on CPU multiple x factor (null: 1) x this; wrong, of; index, device, device_other",
    )
    SAME_STREAM = "same_stream", "calls: number of calls that gave the same draws, with no seed between them"
    CONTEXT = "context", "context; broken: what the call did, as the context says it"
    ROUTE = "route", "registered: the route in the dispatcher; native, fallback: calls that the backend counted"
    PROGRAM = (
        "program",
        "lines: of a program; at: index of the line that fails; error: type and first line, null of an assertion",
    )
    STATE = "state", "what: what the call changed; before, after: its values, which generators do not have"


@dataclass(frozen=True, slots=True)
class CellId:
    """The id of a cell: overload × dtype × layout, and the op family that lists the overload.

    A scenario is a cell too. Its ``family`` is :data:`SCENARIOS`, its ``overload`` is ``module:function``, and it has
    neither dtype nor layout.
    """

    family: str
    overload: str
    dtype: str
    layout: str

    def __str__(self) -> str:
        if self.is_scenario:
            return f"{SCENARIOS}/{self.overload.replace(':', '.py::')}"
        return f"ops/{self.family}.py::{self.name}"

    @staticmethod
    def of_scenario(name: str) -> CellId:
        """Return the cell of the scenario ``module:function``."""
        return CellId(SCENARIOS, name, "", "")

    @property
    def is_scenario(self) -> bool:
        """Whether the cell is a scenario."""
        return self.family == SCENARIOS

    @property
    def name(self) -> str:
        """The pytest item's name, e.g. ``masked_fill_.Scalar[float32-expanded]``; for a scenario, its function."""
        if self.is_scenario:
            return self.overload.rpartition(":")[2]
        return f"{self.overload}[{self.dtype}-{self.layout}]"

    @property
    def operator(self) -> str:
        """The overload's operator, e.g. ``masked_fill_`` of ``masked_fill_.Scalar``."""
        return self.overload.partition(".")[0]

    def fields(self) -> tuple[str, str, str, str]:
        """Return the fields in the order of the constructor."""
        return self.family, self.overload, self.dtype, self.layout

    @staticmethod
    def parse(text: str) -> CellId | None:
        """Inverse of ``str``. Return None if the text is not the id of a cell."""
        if found := _CELL.fullmatch(text):
            return CellId(*found.groups())
        found = _SCENARIO.fullmatch(text)
        return CellId.of_scenario(":".join(found.groups())) if found else None


SCENARIOS = "scenarios"  # the family of the cells that are scenarios, and their directory
RUN = "run"  # the one case of a scenario, in place of a sample's name

_CELL = re.compile(r"ops/(\w+)\.py::([\w.]+)\[(\w+)-(\w+)\]")
_SCENARIO = re.compile(rf"{SCENARIOS}/(\w+)\.py::(\w+)")


@dataclass(frozen=True, slots=True)
class CaseId:
    """The id of a case: a cell, a sample, and the argument that the layout is applied to.

    The one case of a scenario has the sample :data:`RUN`.
    """

    cell: CellId
    sample: str
    variant: str = ""  # an argument, "all", or two that share memory ("self=other"); "" if the layout is contiguous

    def __str__(self) -> str:
        return f"{self.cell}#{self.sample}" + (f"@{self.variant}" if self.variant else "")

    @staticmethod
    def parse(text: str) -> CaseId | None:
        """Inverse of ``str``. Return None if the text is not the id of a case."""
        name, _, rest = text.partition("#")
        cell, (sample, _, variant) = CellId.parse(name), rest.partition("@")
        return CaseId(cell, sample, variant) if cell and sample else None


# The tiers, each of which takes a part of a lane; conformance/plan/tiers.py says what each tier leaves out.
TIERS = ("wide", "full", "smoke")

# The seed of the random overloads, unless --seed gives another.
DEFAULT_SEED = 20

# An example of a case's id, for messages.
CASE_ID = "ops/masking.py::masked_fill_.Scalar[float32-expanded]#sample@self"
