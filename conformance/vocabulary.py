"""The words of the suite as frozen records: routes, statuses, checks, cells and what was observed of them.

Nothing here imports torch or pytest, so that results can be read and judged where neither is installed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Route(str, Enum):
    """How a backend serves an overload."""

    NATIVE = "native"
    FALLBACK = "fallback"
    COMPOSITE = "composite"
    UNSUPPORTED = "unsupported"

    def __str__(self) -> str:
        return self.value


class Status(str, Enum):
    """What came of a cell. Closed: every collected cell ends in exactly one of these."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"
    NOT_REACHED = "not_reached"

    def __str__(self) -> str:
        return self.value

    @property
    def is_failure(self) -> bool:
        """The one place that says which statuses count as failures."""
        return self in (Status.FAIL, Status.ERROR, Status.CRASH, Status.TIMEOUT)


class Check(str, Enum):
    """What was compared when a case failed."""

    VALUE = "value"
    DTYPE = "dtype"
    SHAPE = "shape"
    STRIDE = "stride"
    OFFSET = "offset"
    ALIASING = "aliasing"
    MUTATION = "mutation"
    UNTOUCHED = "untouched"
    VERSION = "version"
    REDZONE = "redzone"
    LEAK = "leak"
    ROUTE = "route"
    ERROR_PARITY = "error_parity"
    DETERMINISM = "determinism"
    DISTRIBUTION = "distribution"
    DEVICE = "device"

    def __str__(self) -> str:
        return self.value


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

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict, the form that crosses processes and is stored."""
        return {
            "family": self.cell.family, "overload": self.cell.overload, "dtype": self.cell.dtype,
            "layout": self.cell.layout, "route": self.route, "status": self.status.value, "cases": self.cases,
            "compared": self.compared, "reason": self.reason, "signal": self.signal, "wall_ns": self.wall_ns,
            "cpu_ns": self.cpu_ns, "raw_ns": self.raw_ns,
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
        )
