"""The record of a search: the question, every run, and the result, as JSON that a later session can continue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance.bisect.points import Point
from conformance.bisect.search import Answer
from conformance.bisect.signature import ProbeOutcome, Signature, answer
from conformance.support.whole_file import write_text

STATE = "state.json"
_FORMAT = "op-conformance bisect"
_VERSION = 2
_LONGEST_OUTPUT = 6000


class RecordError(ValueError):
    """A record that cannot be continued. The message is one line and names the file."""


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a search. With the answers, it determines the next step."""

    axis: str  # torch, backend or both
    cases: tuple[str, ...]  # case ids, or one script
    script: bool
    points: tuple[Point, ...]  # the oldest first
    good: int | None  # index of the good end, None if it must be found; with ``fixed``, the newer end
    bad: int
    fixed: bool = False  # find the fix of a failure: the older end fails, the newer passes
    any_failure: bool = False  # all failures count as the same
    rate: float | None = None
    threshold: float = 0.95
    tries: int = 10
    most_runs: int = 200
    backend: str = ""
    corpus: str = ""
    skip: tuple[int, ...] = ()
    command: str = ""  # the user's command
    perf: bool = False  # the cases are those of `conformance perf`, and a point fails if they are slower there
    least: float = 0.0  # with ``perf``: the least change that counts, as a fraction of the time


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of one case at one point."""

    point: int
    case: str
    stage: str
    passed: bool
    judged: bool
    signature: Signature | None
    output: str
    seconds: float
    at: str = ""  # time in UTC

    def outcome(self) -> ProbeOutcome:
        return ProbeOutcome(self.passed, self.signature, self.judged, self.output, self.seconds)


@dataclass(frozen=True, slots=True)
class PointRecord:
    """The preparation of a point."""

    build: str = ""
    made_by: tuple[str, ...] = ()
    seconds: float = 0.0
    unusable: str = ""  # the reason why it cannot be tested, with the tool's errors
    why: str = ""  # the reason on one line


@dataclass
class Record:
    """The state of a search."""

    question: Question
    runs: list[RunRecord] = field(default_factory=list)
    places: dict[int, PointRecord] = field(default_factory=dict)
    minimal: dict[str, str] = field(default_factory=dict)  # case -> a script
    seconds: float = 0.0  # of all sessions

    def signature(self, case: str) -> Signature | None:
        """Return the signature of the first failure at the bad end, None if there is none yet."""
        found = (r for r in self.runs if r.case == case and r.point == self.question.bad)
        return next((r.signature for r in found if not r.passed and r.judged), None)

    def answers(self, case: str) -> list[tuple[int, Answer]]:
        """Return point and answer of every run of a case, in order."""
        wanted, any_failure = self.signature(case), self.question.any_failure
        return [(r.point, answer(r.outcome(), wanted, any_failure)) for r in self.runs if r.case == case]

    def save(self, file: Path) -> None:
        """Write the file atomically."""
        file.parent.mkdir(parents=True, exist_ok=True)
        kept = {"format": _FORMAT, "version": _VERSION, **asdict(self)}
        write_text(file, json.dumps(kept, indent=1) + "\n")


def shortened(output: str) -> str:
    """Return the beginning and the end of a long output."""
    half = _LONGEST_OUTPUT // 2
    return output if len(output) <= 2 * half else f"{output[:half]}\n[…]\n{output[-half:]}"


def load(file: Path) -> Record:
    """Return the record that :meth:`Record.save` wrote. Raises RecordError."""
    kept = _read(file)
    if kept.pop("format", None) != _FORMAT:
        raise RecordError(f"{file}: is not the record of a search")
    if (version := kept.pop("version", None)) != _VERSION:
        raise RecordError(
            f"{file}: format version {version!r}, expected {_VERSION}; continue with the version of the suite that "
            "wrote it, or begin a new search in another directory"
        )
    try:
        return _record(kept)
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise RecordError(f"{file}: cannot be read: {type(e).__name__}: {e}") from e


def _read(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file. Raises RecordError."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecordError(f"{file}: no such file; there is no search to resume") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as e:
        raise RecordError(f"{file}: is not the record of a search: {e}") from e
    if not isinstance(kept, dict):
        raise RecordError(f"{file}: is not the record of a search")
    return kept


def same(one: Question, other: Question) -> bool:
    """Return whether two questions have the same answers. The command does not matter."""
    return replace(one, command="") == replace(other, command="")


def _record(kept: dict[str, Any]) -> Record:
    asked = kept["question"]
    question = Question(**{
        **asked, "cases": tuple(asked["cases"]), "skip": tuple(asked["skip"]),
        "points": tuple(Point(**p) for p in asked["points"]),
    })  # fmt: skip
    runs = [RunRecord(**{**r, "signature": _signature(r["signature"])}) for r in kept["runs"]]
    places = {int(i): PointRecord(**{**p, "made_by": _texts(p["made_by"])}) for i, p in kept["places"].items()}
    return Record(question, runs, places, kept["minimal"], kept["seconds"])


def _signature(kept: dict[str, Any] | None) -> Signature | None:
    return Signature(**{**kept, "findings": tuple(map(_texts, kept["findings"]))}) if kept else None


def _texts(kept: Sequence[str]) -> tuple[str, ...]:
    return tuple(kept)
