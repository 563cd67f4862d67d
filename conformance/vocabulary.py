"""The words of the suite as frozen records: routes, statuses, checks, cells and what was observed of them.

Nothing here imports torch or pytest, so that results can be read and judged where neither is installed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

# The dtypes a cell can have, by torch's names.
DTYPES = (
    "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "float8_e8m0fnu", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex32", "complex64", "complex128",
)  # fmt: skip


class _Word(str, Enum):
    """A string out of a closed set, and what it means."""

    _value_: str
    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> _Word:  # by value alone when looked up
        word = str.__new__(cls, value)
        word._value_ = value
        word.meaning = meaning
        return word

    def __str__(self) -> str:
        return self._value_


class Route(_Word):
    """How a backend serves an overload."""

    NATIVE = "native", "a kernel that the backend registered for it"
    FALLBACK = "fallback", "the backend's boxed fallback, which runs CPU's kernel"
    COMPOSITE = "composite", "torch, from other overloads"
    UNSUPPORTED = "unsupported", "nobody: a call raises"


class Status(_Word):
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


class Check(_Word):
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

    def fields(self) -> tuple[str, str, str, str]:
        """What it is made of, in the order of the constructor."""
        return self.family, self.overload, self.dtype, self.layout

    @staticmethod
    def parse(text: str) -> CellId | None:
        """Inverse of ``str``; None for a text that is no cell's id."""
        found = _CELL.fullmatch(text)
        return CellId(*found.groups()) if found else None


_CELL = re.compile(r"ops/(\w+)\.py::([\w.]+)\[(\w+)-(\w+)\]")


FAILURES_KEPT = 5  # of a cell's failing cases, the first: an observation holds no more


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """One case that went wrong: which check, and the text a person reads."""

    case: str  # e.g. "masked_fill_.Scalar[float32-expanded]#opinfo.masked_fill.3@mask"
    check: str  # a Check's value, or "" for a crash, a timeout or an error of the suite
    message: str
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observation:
    """Recorded facts of one cell. Whether that was expected is computed on reading, never stored."""

    cell: CellId
    route: str
    status: Status
    cases: int  # cases run, the failing ones included
    failures: tuple[CaseFailure, ...] = ()
    reason: str = ""  # for unsupported and not_reached: why
    signal: str = ""  # for a crash: the signal's name
    wall_ns: int = 0
    cpu_ns: int = 0
    raw_ns: int = 0  # of wall_ns, time inside the op calls of both sides
    compared: int = 0  # cases in which results, or the errors of both sides, were compared
    script: str = ""  # of a failure: Python that shows its first case without the suite, where that is not too long

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict, the form that crosses processes and is stored."""
        return {
            "family": self.cell.family, "overload": self.cell.overload, "dtype": self.cell.dtype,
            "layout": self.cell.layout, "route": self.route, "status": self.status.value, "cases": self.cases,
            "compared": self.compared, "reason": self.reason, "signal": self.signal, "wall_ns": self.wall_ns,
            "cpu_ns": self.cpu_ns, "raw_ns": self.raw_ns, "script": self.script,
            "failures": [
                {"case": f.case, "check": f.check, "message": f.message, "figures": f.figures} for f in self.failures
            ],
        }  # fmt: skip

    @staticmethod
    def from_json(d: dict[str, Any]) -> Observation:
        """Inverse of :meth:`to_json`. Raises KeyError or ValueError on a record this version cannot read."""
        return Observation(
            cell=CellId(d["family"], d["overload"], d["dtype"], d["layout"]),
            route=d["route"],
            status=Status(d["status"]),
            cases=d["cases"],
            compared=d["compared"],
            failures=tuple(CaseFailure(f["case"], f["check"], f["message"], f["figures"]) for f in d["failures"]),
            reason=d["reason"],
            signal=d["signal"],
            wall_ns=d["wall_ns"],
            cpu_ns=d["cpu_ns"],
            raw_ns=d["raw_ns"],
            script=d["script"],
        )
