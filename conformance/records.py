"""What was observed, as frozen records: of a cell, and of each of its cases that went wrong. All of it is JSON.

explain/describe.py alone makes text of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from conformance.vocabulary import CaseId, CellId, Check, Status, Word

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


class LeftOut(Word):
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

    case: str  # a CaseId's text; a cell's where no one case is to blame
    mismatches: tuple[Mismatch, ...] = ()
    arguments: tuple[PlacedArgument, ...] = ()
    death: Death | None = None
    calls: tuple[str, ...] = ()  # the operators that ran on the device, in the order of their first call
    trouble: str = ""  # the traceback where the suite itself broke
    older: str = ""  # the whole message, and nothing else, where a run in an older format is read
    older_check: str = ""

    @property
    def id(self) -> CaseId | None:
        """The case's id in its parts; None where no one case is to blame."""
        return CaseId.parse(self.case)

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


@dataclass(frozen=True, slots=True)
class GateFailure:
    """The bring-up gate's first broken primitive."""

    headline: str  # one line: the primitive and what is wrong with it
    details: str = ""  # what the process wrote to stderr, if it died or hung

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.headline, self.details)))


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
