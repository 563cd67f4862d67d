"""The words of the suite as frozen records: routes, statuses, checks, cells and what was observed of them.

Nothing here imports torch or pytest, so that results can be read and judged where neither is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
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


class Fact(_Word):
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


FAILURES_KEPT = 5  # of a cell's failing cases, the first: an observation holds no more


@dataclass(frozen=True, slots=True)
class PlacedArgument:
    """One argument of a case: a tensor and its position in its storage, in elements; or the text of a plain value."""

    name: str  # as the schema has it, with an index inside a list: "self", "tensors[1]"
    dtype: str = ""  # "" for what is no tensor
    layout: str = ""
    size: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    offset: int = 0
    storage: int = 0
    bit: str = ""  # "conj" or "neg"
    shared_with: str = ""  # the earlier argument whose storage this one is a view of
    same_as: str = ""  # the earlier argument that is the same tensor
    text: str = ""  # of what is no tensor: as one would type it

    @property
    def is_tensor(self) -> bool:
        return bool(self.dtype)

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> PlacedArgument:
        return PlacedArgument(**{**d, "size": tuple(d.get("size", ())), "stride": tuple(d.get("stride", ()))})


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One finding. ``facts`` has a ``kind``, a :class:`Fact`, and what that kind says it has; all of it is JSON."""

    check: Check
    subject: str  # the result or argument, e.g. "result[0]", "self"; "" for the call
    facts: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """A :class:`Fact`'s value."""
        return str(self.facts.get("kind", ""))

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> Mismatch:
        return Mismatch(Check(d["check"]), d["subject"], d["facts"])


@dataclass(frozen=True, slots=True)
class SanitizerReport:
    """One error that a sanitizer found. ``access`` is "READ", "WRITE" or ""; ``size`` in bytes, 0 where unknown.

    Stacks are the frames worth showing, the innermost first: ``kernels/fill.cpp:42 fill``.
    """

    sanitizer: str  # e.g. "AddressSanitizer"
    kind: str  # e.g. "heap-buffer-overflow", or as -fsanitize names it, e.g. "signed-integer-overflow"
    detail: str = ""  # what else its first line says
    access: str = ""
    size: int = 0
    where: str = ""  # e.g. "0 bytes past the end of a block of 40 bytes"
    line: str = ""  # the innermost source line of the code under test
    function: str = ""
    stack: tuple[str, ...] = ()
    other: tuple[str, ...] = ()  # of a data race: the other access
    allocated: tuple[str, ...] = ()
    freed: tuple[str, ...] = ()

    def __str__(self) -> str:
        """A few lines: what, where, and the frames of each stack."""
        access = f"{self.access} of {self.size} bytes" if self.size else self.access
        what = ", ".join(filter(None, (access, self.where)))
        detail = f" ({self.detail})" if self.detail else ""
        stacks = {
            "at": self.stack, "racing with": self.other, "block allocated at": self.allocated,
            "block freed at": self.freed,
        }  # fmt: skip
        first = f"{self.sanitizer}: {self.kind}" + (f": {what}" if what else "") + detail
        return "\n".join([first, *(f"  {name}: {' < '.join(frames)}" for name, frames in stacks.items() if frames)])

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> SanitizerReport:
        return SanitizerReport(**{**d, **{name: tuple(d.get(name, ())) for name in _STACKS}})


_STACKS = ("stack", "other", "allocated", "freed")


class LeftOut(_Word):
    """Why fewer fresh processes were tried after a death than would be needed to explain it."""

    NOTHING = "", "nothing was left out"
    TIME = "time", "the time for such questions was spent"
    ORDER = "order", "the time did not suffice to run again what ran before"
    REPEATED = "repeated", "deaths of the same overload, signal and side were tried before"


@dataclass(frozen=True, slots=True)
class DeathFinding:
    """What fresh processes say about a death. The pairs count (deaths, tries)."""

    kind: str  # "steady", "flaky", "ordered" (only after something else), or "" where too little was tried
    alone: tuple[int, int] = (0, 0)
    again: tuple[int, int] = (0, 0)  # after all that the dead process had run, in the same order
    before: int = 0  # how many cells that were
    after: str = ""  # the id of the case or cell after which it dies
    confirmed: tuple[int, int] = (0, 0)  # after that alone
    left_out: LeftOut = LeftOut.NOTHING
    like: str = ""  # where it was left out as repeated: the kind of the deaths like it

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> DeathFinding:
        pairs = {name: (d[name][0], d[name][1]) for name in ("alone", "again", "confirmed") if name in d}
        return DeathFinding(**{**d, **pairs, "left_out": LeftOut(d.get("left_out", ""))})


@dataclass(frozen=True, slots=True)
class Death:
    """How the process of a case ended: killed, exited, or killed by the runner because it did not return."""

    signal: str = ""  # "SIGSEGV", or "exit code 3"; "" where it did not return
    seconds: float = 0.0  # that the runner waited where it did not return
    phase: str = ""  # the side that ran: "cpu" or "device"; "" between cases
    finding: DeathFinding | None = None
    report: SanitizerReport | None = None
    log: str = ""  # what the process wrote to stderr, where no sanitizer reported

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> Death:
        finding, report = d.get("finding"), d.get("report")
        return Death(**{
            **d,
            "finding": DeathFinding.from_json(finding) if finding else None,
            "report": SanitizerReport.from_json(report) if report else None,
        })  # fmt: skip


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """One case that went wrong, as facts; explain/describe.py makes text of them."""

    case: str  # e.g. "masked_fill_.Scalar[float32-expanded]#opinfo.masked_fill.3@mask"
    mismatches: tuple[Mismatch, ...] = ()
    arguments: tuple[PlacedArgument, ...] = ()
    death: Death | None = None
    calls: tuple[str, ...] = ()  # the operators that ran on the device, in the order of their first call
    trouble: str = ""  # the traceback where the suite itself broke
    older: str = ""  # the whole message, and nothing else, where a run in an older format is read
    older_check: str = ""

    @property
    def check(self) -> str:
        """The first mismatch's check; "" for a death and for an error of the suite."""
        return self.mismatches[0].check.value if self.mismatches else self.older_check

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict. ``check`` is among it for those who look for it without reading the rest."""
        return {
            "case": self.case, "check": self.check,
            "mismatches": [{"check": m.check.value, "subject": m.subject, "facts": m.facts} for m in self.mismatches],
            "arguments": [asdict(a, dict_factory=_compact) for a in self.arguments],
            "death": asdict(self.death, dict_factory=_compact) if self.death else None,
            "calls": list(self.calls), "trouble": self.trouble, "older": self.older,
        }  # fmt: skip

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> CaseFailure:
        """Inverse of :meth:`to_json`; also reads a failure of format version 2, whose facts were text."""
        if "mismatches" not in d:
            return CaseFailure(d["case"], older=d["message"], older_check=d["check"])
        death = d["death"]
        return CaseFailure(
            d["case"],
            tuple(map(Mismatch.from_json, d["mismatches"])),
            tuple(map(PlacedArgument.from_json, d["arguments"])),
            None if death is None else Death.from_json(death),
            tuple(d["calls"]),
            d["trouble"],
            d["older"],
            d["check"] if d["older"] else "",
        )


_ALWAYS = ("name", "sanitizer", "kind")  # fields without a default


def _compact(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A record's fields as plain JSON, without those that are empty, which are most of an argument's."""
    plain = ((name, value.value if isinstance(value, Enum) else value) for name, value in fields)
    return {name: value for name, value in plain if name in _ALWAYS or value not in ("", (), None, 0)}


def kind_of(status: str, checks: Iterable[str], signal: str) -> str:
    """How a cell ended, in words by which alike endings are grouped: ``fail (stride, value)``, ``crash (SIGSEGV)``."""
    why = ", ".join([*sorted({c for c in checks if c}), *([signal] if signal else [])])
    return f"{status} ({why})" if why else str(status)


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

    @property
    def kind(self) -> str:
        """How the cell ended: equal for cells that ended alike."""
        return kind_of(self.status, (f.check for f in self.failures), self.signal)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict, the form that crosses processes and is stored."""
        return {
            "family": self.cell.family, "overload": self.cell.overload, "dtype": self.cell.dtype,
            "layout": self.cell.layout, "route": self.route, "status": self.status.value, "cases": self.cases,
            "compared": self.compared, "reason": self.reason, "signal": self.signal, "wall_ns": self.wall_ns,
            "cpu_ns": self.cpu_ns, "raw_ns": self.raw_ns, "script": self.script,
            "failures": [failure.to_json() for failure in self.failures],
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
            failures=tuple(map(CaseFailure.from_json, d["failures"])),
            reason=d["reason"],
            signal=d["signal"],
            wall_ns=d["wall_ns"],
            cpu_ns=d["cpu_ns"],
            raw_ns=d["raw_ns"],
            script=d["script"],
        )
