"""Frozen records of the observation of a cell and of its failing cases. All of them convert to JSON.

Only explain/describe.py renders them as text, with the help of explain/mismatch_text.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from conformance.vocabulary import CaseId, CellId, Check, Status, Word

NO_ANSWER = "no answer"  # stands for a signal's name if the CPU reference did not return
FAILURES_KEPT = 5  # an observation holds the first failing cases of its cell only


@dataclass(frozen=True, slots=True)
class PlacedArgument:
    """One argument of a case: a tensor and its position in its storage, in elements; or the text of a plain value."""

    name: str  # as the schema has it, with an index inside a list: "self", "tensors[1]"
    dtype: str = ""  # "" if it is not a tensor
    layout: str = ""
    size: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    offset: int = 0
    storage: int = 0
    bit: str = ""  # "conj" or "neg"
    shared_with: str = ""  # an earlier argument with the same storage
    same_as: str = ""  # an earlier argument that is the same tensor
    text: str = ""  # the value as Python, if it is not a tensor

    @property
    def is_tensor(self) -> bool:
        return bool(self.dtype)

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> PlacedArgument:
        return PlacedArgument(**{**d, "size": tuple(d.get("size", ())), "stride": tuple(d.get("stride", ()))})


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One finding. ``facts`` is JSON: ``kind``, which is a :class:`Fact`, and the facts of that kind."""

    check: Check
    subject: str  # the result or argument, e.g. "result[0]", "self"; "" for the call
    facts: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The value of a :class:`Fact`."""
        return str(self.facts.get("kind", ""))

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> Mismatch:
        return Mismatch(Check(d["check"]), d["subject"], d["facts"])


@dataclass(frozen=True, slots=True)
class SanitizerReport:
    """One error that a sanitizer found. ``access`` is "READ", "WRITE" or ""; ``size`` in bytes, 0 if unknown.

    Stacks are lists of frames, the innermost first, without those of torch: ``kernels/fill.cpp:42 fill``.
    """

    sanitizer: str  # e.g. "AddressSanitizer"
    kind: str  # e.g. "heap-buffer-overflow", or a name of -fsanitize, e.g. "signed-integer-overflow"
    detail: str = ""  # the rest of the report's first line
    access: str = ""
    size: int = 0
    where: str = ""  # e.g. "0 bytes past the end of a block of 40 bytes"
    line: str = ""  # the innermost source line of the code under test
    function: str = ""
    stack: tuple[str, ...] = ()
    other: tuple[str, ...] = ()  # the other access of a data race
    allocated: tuple[str, ...] = ()
    freed: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return a few lines: the error, its place, and the frames of each stack."""
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


class LeftOut(Word):
    """The reason why a crash or a failing case was repeated in too few fresh processes to explain it."""

    NOTHING = "", "it was not"
    TIME = "time", "the time budget was spent"
    ORDER = "order", "the time budget did not suffice to repeat the cases that ran before the crash"
    REPEATED = "repeated", "crashes of the same overload, signal and side had been repeated before"


@dataclass(frozen=True, slots=True)
class DeathFinding:
    """The result of repeating a crash in fresh processes. The pairs are (crashes, tries)."""

    kind: str  # "steady", "flaky", "ordered" (only after another case), or "" if too few processes were tried
    alone: tuple[int, int] = (0, 0)  # the case alone
    again: tuple[int, int] = (0, 0)  # the case after the last cells that the dead process had run, in the same order
    before: int = 0  # number of these cells
    after: str = ""  # the id of the case or cell after which the case crashes
    confirmed: tuple[int, int] = (0, 0)  # the case after ``after`` alone
    left_out: LeftOut = LeftOut.NOTHING
    like: str = ""  # if left_out is REPEATED: the kind of the earlier crashes

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> DeathFinding:
        pairs = {name: (d[name][0], d[name][1]) for name in ("alone", "again", "confirmed") if name in d}
        return DeathFinding(**{**d, **pairs, "left_out": LeftOut(d.get("left_out", ""))})


@dataclass(frozen=True, slots=True)
class Death:
    """The end of the process of a case: by a signal, by an exit, or by the runner after the timeout."""

    signal: str = ""  # "SIGSEGV", or "exit code 3"; "" after a timeout
    seconds: float = 0.0  # the timeout
    phase: str = ""  # the side that ran: "cpu" or "device"; "" between cases
    finding: DeathFinding | None = None
    report: SanitizerReport | None = None
    log: str = ""  # the process' stderr without stacks, if there is no sanitizer report
    stack: tuple[str, ...] = ()  # frames of the dead thread, the backend's frames first
    operators: tuple[str, ...] = ()  # the operators that ran in the dead thread when it died, the innermost first
    python: tuple[str, ...] = ()  # Python frames outside the suite, the innermost first
    lines: tuple[str, ...] = ()  # the lines of a walk's script up to the line that ran, or all lines if it is unknown

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> Death:
        finding, report = d.get("finding"), d.get("report")
        return Death(**{
            **d,
            "finding": DeathFinding.from_json(finding) if finding else None,
            "report": SanitizerReport.from_json(report) if report else None,
            **{name: tuple(d.get(name, ())) for name in ("stack", "operators", "python", "lines")},
        })  # fmt: skip


@dataclass(frozen=True, slots=True)
class Boundary:
    """The sizes at which a case fails, in elements of the varied dimension. Found by running it at other sizes."""

    smallest: int  # the smallest failing size that was found
    passes: int  # the largest smaller size that was tried; it passes. 0 if none does
    largest: int  # the size of the failing case itself
    modulus: int = 0  # the sizes fail by their remainder; 0: all sizes tried from the smallest on fail, or no rule fits
    multiples: bool = False  # with a modulus: its multiples fail; else all others do
    passing: tuple[int, ...] = ()  # without a modulus: larger sizes that pass, at most three

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> Boundary:
        return Boundary(**{**d, "passing": tuple(d.get("passing", ()))})


class Repeats(Word):
    """The kind of a failing case, as its repetition in fresh processes shows it."""

    STEADY = "steady", "the case alone failed in each"
    FLAKY = "flaky", "the case alone failed in some, or in none, and no earlier case explains that"
    ORDERED = "ordered", "the case alone failed in none, and after other cases in each"
    UNKNOWN = "", "the case was not repeated, or not often enough"


@dataclass(frozen=True, slots=True)
class Repetition:
    """The result of repeating a failing case in fresh processes. The pairs are (failures, tries)."""

    kind: Repeats
    alone: tuple[int, int] = (0, 0)
    after: tuple[str, ...] = ()  # the cases or cells after which the case fails, in order
    confirmed: tuple[int, int] = (0, 0)  # the case after ``after`` alone
    left_out: LeftOut = LeftOut.NOTHING
    like: str = ""  # if left_out is REPEATED: the kind of the earlier failure

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> Repetition:
        pairs = {name: (d[name][0], d[name][1]) for name in ("alone", "confirmed") if name in d}
        words = {"kind": Repeats(d["kind"]), "left_out": LeftOut(d.get("left_out", ""))}
        return Repetition(**{**d, **pairs, **words, "after": tuple(d.get("after", ()))})


# The probability that all runs of a flaky case pass, from which the number of runs follows.
_MISSED = 0.01
_FEWEST_RUNS, _MOST_RUNS = 5, 100


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting in which a case fails again: the cases or cells that run first, and the number of fresh processes."""

    after: tuple[str, ...] = ()
    runs: int = 1


ALONE = Setting()  # the setting of a case that fails each time that it runs


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """One failing case, as facts. explain/describe.py renders it as text."""

    case: str  # the case's id; the cell's id if the failure cannot be attributed to one case
    mismatches: tuple[Mismatch, ...] = ()
    arguments: tuple[PlacedArgument, ...] = ()
    death: Death | None = None
    calls: tuple[str, ...] = ()  # the operators that ran on the device, in the order of their first call
    trouble: str = ""  # the traceback if the suite itself failed
    older: str = ""  # the message of a failure in an older format, which has no facts
    older_check: str = ""
    boundary: Boundary | None = None  # for a case of a generated size
    repetition: Repetition | None = None  # for a case that differs; a death has a finding instead

    @property
    def setting(self) -> Setting:
        """The setting in which the case fails again, as far as its repetition shows."""
        death = self.death.finding if self.death else None
        if death and death.kind == "ordered":
            return Setting((death.after,) if death.after else ())
        if self.repetition and self.repetition.kind is Repeats.ORDERED:
            return Setting(self.repetition.after)
        if self.repetition and self.repetition.kind is Repeats.FLAKY:
            return Setting(runs=_runs(*self.repetition.alone))
        if self.repetition and self.repetition.like == Repeats.FLAKY:
            return Setting(runs=_MOST_RUNS)
        return Setting(runs=_runs(*death.alone)) if death and death.kind == "flaky" else Setting()

    @property
    def id(self) -> CaseId | None:
        """The case's id, None if the failure cannot be attributed to one case."""
        return CaseId.parse(self.case)

    @property
    def check(self) -> str:
        """The check of the first mismatch, "" for a death and for an error of the suite."""
        return self.mismatches[0].check.value if self.mismatches else self.older_check

    def to_json(self) -> dict[str, Any]:
        """Return a dict for JSON. It repeats ``check`` so that queries find it easily."""
        return {
            "case": self.case, "check": self.check,
            "mismatches": [{"check": m.check.value, "subject": m.subject, "facts": m.facts} for m in self.mismatches],
            "arguments": [asdict(a, dict_factory=_compact) for a in self.arguments],
            "death": asdict(self.death, dict_factory=_compact) if self.death else None,
            "calls": list(self.calls), "trouble": self.trouble, "older": self.older,
            **({"boundary": asdict(self.boundary)} if self.boundary else {}),
            **({"repetition": asdict(self.repetition, dict_factory=_compact)} if self.repetition else {}),
        }  # fmt: skip

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> CaseFailure:
        """Inverse of :meth:`to_json`. Also reads failures of format version 2, which have text instead of facts."""
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
            Boundary.from_json(d["boundary"]) if d.get("boundary") else None,
            Repetition.from_json(d["repetition"]) if d.get("repetition") else None,
        )


def _runs(failed: int, tries: int) -> int:
    """Return the number of runs of which at least one fails, except with a probability of :data:`_MISSED`."""
    if not failed or failed == tries:
        return 1 if failed else _MOST_RUNS
    wanted = math.ceil(math.log(_MISSED) / math.log(1 - failed / tries))
    return min(max(wanted, _FEWEST_RUNS), _MOST_RUNS)


_ALWAYS = ("name", "sanitizer", "kind")  # fields without a default


def _compact(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a record's fields as JSON, without empty fields. Most fields of an argument are empty."""
    plain = ((name, value.value if isinstance(value, Enum) else value) for name, value in fields)
    return {name: value for name, value in plain if name in _ALWAYS or value not in ("", (), None, 0)}


@dataclass(frozen=True, slots=True)
class GateFailure:
    """A broken primitive of the bring-up gate."""

    headline: str  # one line: the primitive and what is wrong with it
    details: str = ""  # what the process wrote to stderr, if it died or hung

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.headline, self.details)))


@dataclass(frozen=True, slots=True)
class Gate:
    """The result of the bring-up gate."""

    failure: GateFailure | None = None  # the failure of a primitive that all cells need
    limits: Mapping[str, GateFailure] = field(default_factory=dict)  # other broken primitives, by name
    subnormals: tuple[str, ...] = ()  # the dtypes for which the device said that it keeps subnormal numbers

    def __bool__(self) -> bool:
        """Whether a primitive is broken."""
        return bool(self.failure or self.limits)

    def __str__(self) -> str:
        found = [self.failure] if self.failure else list(self.limits.values())
        return "\n".join(map(str, found))

    def to_json(self) -> dict[str, Any]:
        limits = {name: asdict(found) for name, found in self.limits.items()}
        failure = asdict(self.failure) if self.failure else None
        return {"failure": failure, "limits": limits, "subnormals": list(self.subnormals)}

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> Gate:
        limits = {name: GateFailure(**found) for name, found in d["limits"].items()}
        return Gate(GateFailure(**d["failure"]) if d["failure"] else None, limits, tuple(d["subnormals"]))


def kind_of(status: Status, checks: Iterable[str], signal: str) -> str:
    """Return the kind of a cell's outcome, by which outcomes are grouped: ``fail (stride, value)``.

    The signal of a cell that does not fail is left out, because it killed the CPU reference, and which signal that is
    depends on chance.
    """
    why = ", ".join([*sorted({c for c in checks if c}), *([signal] if signal and status.is_failure else [])])
    return f"{status} ({why})" if why else str(status)


@dataclass(frozen=True, slots=True)
class Lacking:
    """An overload without a kernel, and the number of a cell's cases in which a native kernel failed by calling it."""

    overload: str
    cases: int


@dataclass(frozen=True, slots=True)
class Observation:
    """Recorded facts of one cell. Whether a failure was expected is computed when the record is read."""

    cell: CellId
    route: str
    status: Status
    cases: int  # cases that ran, including failing cases
    failures: tuple[CaseFailure, ...] = ()
    reason: str = ""  # why unsupported or not_reached; else the part of a scenario that the backend does not offer
    signal: str = ""  # of the first process that died in the cell, also in the CPU reference; see NO_ANSWER
    wall_ns: int = 0
    cpu_ns: int = 0
    raw_ns: int = 0  # the part of wall_ns inside the op calls of both sides
    compared: int = 0  # cases whose results, or whose errors on both sides, were compared
    script: str = ""  # a Python script that shows the first failing case without the suite, if it is short enough
    lacking: tuple[Lacking, ...] = ()  # why cases of a native kernel were not compared
    partial: bool = False  # whether the cell passed, but only some of its cases ran, e.g. because of ``--case``

    @property
    def kind(self) -> str:
        """The kind of the outcome, see :func:`kind_of`."""
        return kind_of(self.status, (f.check for f in self.failures), self.signal)

    def to_json(self) -> dict[str, Any]:
        """Return a dict for JSON, the form for other processes and for the store."""
        return {
            "family": self.cell.family, "overload": self.cell.overload, "dtype": self.cell.dtype,
            "layout": self.cell.layout, "route": self.route, "status": self.status.value, "cases": self.cases,
            "compared": self.compared, "reason": self.reason, "signal": self.signal, "wall_ns": self.wall_ns,
            "cpu_ns": self.cpu_ns, "raw_ns": self.raw_ns, "script": self.script, "partial": self.partial,
            "lacking": [asdict(one) for one in self.lacking],
            "failures": [failure.to_json() for failure in self.failures],
        }  # fmt: skip

    @staticmethod
    def from_json(d: dict[str, Any]) -> Observation:
        """Inverse of :meth:`to_json`. Raises KeyError or ValueError for a record of another format."""
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
            partial=bool(d.get("partial")),  # runs of older versions lack it
            lacking=tuple(Lacking(**one) for one in d.get("lacking") or ()),
        )
