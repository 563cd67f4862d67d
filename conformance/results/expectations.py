"""Known failures as rules, the verdict on an observation, and the rules that no longer match a cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

import tomlkit

from conformance.records import Observation
from conformance.support.suggestions import unknown
from conformance.support.toml_table import Table, TomlError
from conformance.support.whole_file import write_text
from conformance.vocabulary import CellId, Check, Route, Status

EXPECTABLE = tuple(s.value for s in Status if s.is_failure)

_ANY = ("*",)
_AXES = ("op", "dtype", "layout", "route", "lane", "check")
_MAY_RUN = frozenset(Status) - {Status.UNSUPPORTED}  # a cell that was not reached may fail or pass
_WILD = frozenset("*?[")
_LONGEST_REASON = 200  # characters

ReasonOf = Callable[[Observation], str]  # the outcome of a failing cell, on one line


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """Cells that are known to fail, as shell patterns. A field with several patterns matches if one of them does."""

    op: tuple[str, ...]  # overloads
    dtype: tuple[str, ...] = _ANY
    layout: tuple[str, ...] = _ANY
    route: tuple[str, ...] = _ANY
    lane: tuple[str, ...] = _ANY
    check: tuple[str, ...] = _ANY  # all failures of the cell must have one of these checks; a crash has no check
    status: Status = Status.FAIL
    reason: str = ""
    link: str = ""

    def covers(self, cell: CellId, route: str) -> bool:
        """Return whether the rule covers this cell, whatever its outcome.

        ``route``: "" if it is not known, for example because the cell was not reached. Then the rule's route is
        ignored, unless the cell is a scenario.
        """
        pairs = [(self.op, cell.overload), (self.dtype, cell.dtype), (self.layout, cell.layout)]
        pairs += [(self.route, route)] if route or cell.is_scenario else []
        return all(_matches(patterns, value) for patterns, value in pairs)

    def holds(self, observation: Observation) -> bool:
        """Return whether a covered cell failed as the rule says."""
        if observation.status is not self.status:
            return False
        return self.check == _ANY or all(_matches(self.check, f.check) for f in observation.failures)

    def in_lane(self, lane: str) -> bool:
        return _matches(self.lane, lane)

    def __str__(self) -> str:
        shown = [f"{axis}={'|'.join(getattr(self, axis))}" for axis in _AXES if getattr(self, axis) != _ANY]
        return f"rule {' '.join(shown)} -> {self.status}"


class Verdict(str, Enum):
    """The comparison of an observation with the rules."""

    AS_EXPECTED = "as expected"
    EXPECTED_FAILURE = "expected failure"
    UNEXPECTED_FAILURE = "unexpected failure"
    UNEXPECTED_PASS = "unexpected pass"

    @property
    def is_failure(self) -> bool:
        return self in (Verdict.UNEXPECTED_FAILURE, Verdict.UNEXPECTED_PASS)


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """A verdict, and the rule that covers the cell, if there is one."""

    verdict: Verdict
    rule: KnownFailure | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """The names that rules may use."""

    overloads: Collection[str]
    dtypes: Collection[str]
    layouts: Collection[str]


def load(file: Path) -> tuple[KnownFailure, ...]:
    """Return the rules of a file, none if there is no file. Raises TomlError."""
    if not file.exists():
        return ()
    top = Table.load(file)
    known = tuple(_rule(table) for table in top.tables("rule"))
    top.done()
    return known


def load_checked(file: Path, names: Names, lane: str) -> tuple[KnownFailure, ...]:
    """Return the rules of a file after a check of their names. Raises TomlError or OSError."""
    known = load(file)
    wrong = mistakes(known, names, lane)
    if wrong:
        raise TomlError(f"{file}: " + "; ".join(wrong))
    return known


def mistakes(known: Iterable[KnownFailure], names: Names, lane: str) -> list[str]:
    """Return a line for each unknown name in the rules of this lane, with similar names."""
    axes: dict[str, tuple[str, Collection[str]]] = {
        "op": ("overload", names.overloads),
        "dtype": ("dtype", names.dtypes),
        "layout": ("layout", names.layouts),
        "route": ("route", [r.value for r in Route]),
        "check": ("check", [c.value for c in Check]),
    }
    return [
        f"{rule}: {unknown(what, pattern, possible)}"
        for rule in known
        if rule.in_lane(lane)
        for axis, (what, possible) in axes.items()
        for pattern in getattr(rule, axis)
        if not any(fnmatchcase(name, pattern) for name in possible)
    ]


def judge(observation: Observation, known: Iterable[KnownFailure], lane: str) -> CellVerdict:
    """Return the verdict on one cell.

    A covered cell that passes is an unexpected pass, even if other cells fail. It is as expected if the run left out
    cases of the cell, because one of these cases may be the known failure.
    """
    covering = [r for r in known if r.in_lane(lane) and r.covers(observation.cell, observation.route)]
    if observation.status.is_failure:
        for rule in covering:
            if rule.holds(observation):
                return CellVerdict(Verdict.EXPECTED_FAILURE, rule)
        return CellVerdict(Verdict.UNEXPECTED_FAILURE, covering[0] if covering else None)
    if covering and _passes_whole(observation):
        return CellVerdict(Verdict.UNEXPECTED_PASS, covering[0])
    return CellVerdict(Verdict.AS_EXPECTED)


def stale(known: Iterable[KnownFailure], cells: Collection[tuple[CellId, str]], lane: str) -> list[KnownFailure]:
    """Return the rules of this lane that cover none of ``cells``, which are all (cell, route) pairs of the lane."""
    return [r for r in known if r.in_lane(lane) and not any(r.covers(cell, route) for cell, route in cells)]


def update(
    known: Sequence[KnownFailure], observations: Sequence[Observation], lane: str, complete: bool, reason: ReasonOf
) -> tuple[KnownFailure, ...]:
    """Return the rules after this run: the old rules that still hold, then new rules, each for alike failures.

    Rules of other lanes and rules about cells that the run did not reach stay. After a run that is not ``complete``,
    rules that cover none of its cells also stay. A new rule takes reason and link from an old rule of the same overload
    and status, else the ``reason`` of its first cell. Errors of the suite itself never become known failures.
    """
    kept = [r for r in known if not r.in_lane(lane) or _still_holds(r, observations, complete)]
    return (*kept, *(_worded(rule, known) for rule in _fresh(kept, observations, lane, complete, reason)))


def add(
    known: Sequence[KnownFailure], observations: Sequence[Observation], lane: str, complete: bool, reason: ReasonOf
) -> tuple[KnownFailure, ...]:
    """Return the rules, and new rules for the failing cells of a run. A cell whose ``reason`` is "" is left out."""
    return (*known, *_fresh(known, observations, lane, complete, reason))


def _fresh(
    known: Sequence[KnownFailure], observations: Sequence[Observation], lane: str, complete: bool, reason: ReasonOf
) -> list[KnownFailure]:
    """Return new rules of this lane, each for alike failures that no rule expects and that have a ``reason``."""
    failing = [o for o in observations if o.status.is_failure and o.status is not Status.ERROR]
    left = [o for o in failing if judge(o, known, lane).verdict is not Verdict.EXPECTED_FAILURE and reason(o)]
    groups: dict[tuple[str, Status, tuple[str, ...]], list[Observation]] = defaultdict(list)
    for o in left:
        groups[o.cell.overload, o.status, tuple(sorted({f.check for f in o.failures if f.check}))].append(o)
    fresh = [rule for key in sorted(groups) for rule in _widest(groups[key], observations, complete, reason)]
    return [replace(rule, lane=(lane,)) for rule in fresh]


def dump(known: Iterable[KnownFailure], comment: str = "") -> str:
    """Return the rules as TOML. Fields that match anything are omitted."""
    document = tomlkit.document()
    if comment:
        document.add(tomlkit.comment(comment))
    tables = tomlkit.aot()
    for rule in known:
        table = tomlkit.table()
        for axis in _AXES:
            patterns = getattr(rule, axis)
            if axis == "op" or patterns != _ANY:
                table.add(axis, patterns[0] if len(patterns) == 1 else list(patterns))
        table.add("status", rule.status.value)
        table.add("reason", rule.reason)
        if rule.link:
            table.add("link", rule.link)
        tables.append(table)
    if tables:
        document.add("rule", tables)
    return tomlkit.dumps(document)


def save(file: Path, known: Iterable[KnownFailure], backend: str) -> None:
    """Write the rules of a backend to a file. After an OSError, the file and the reasons in it are unchanged."""
    file.resolve().parent.mkdir(parents=True, exist_ok=True)
    write_text(file, dump(known, f"Known failures of {backend}."))


def _rule(table: Table) -> KnownFailure:
    rule = KnownFailure(
        op=table.strings("op"),
        dtype=table.strings("dtype", _ANY),
        layout=table.strings("layout", _ANY),
        route=table.strings("route", _ANY),
        lane=table.strings("lane", _ANY),
        check=table.strings("check", _ANY),
        status=Status(table.one_of("status", EXPECTABLE)),
        reason=table.take("reason", str),
        link=table.take("link", str, ""),
    )
    table.done()
    for axis in _AXES:
        if not getattr(rule, axis):
            raise table.error(axis, "is empty and matches nothing; expected at least one pattern")
    if not rule.reason.strip():
        raise table.error("reason", "is empty; say why these cells are known to fail")
    return rule


@lru_cache(maxsize=1 << 14)  # a run asks the same few rules about each of its cells
def _matches(patterns: tuple[str, ...], value: str) -> bool:
    return any(p in ("*", value) or (not _WILD.isdisjoint(p) and fnmatchcase(value, p)) for p in patterns)


def _still_holds(rule: KnownFailure, observations: Iterable[Observation], complete: bool) -> bool:
    covered = [o for o in observations if rule.covers(o.cell, o.route)]
    if any(map(_passes_whole, covered)):
        return False
    if any(rule.holds(o) for o in covered):
        return True
    unknown = any(o.partial or o.status is Status.NOT_REACHED for o in covered)
    return unknown or (not covered and not complete)


def _passes_whole(observation: Observation) -> bool:
    return observation.status is Status.PASS and not observation.partial


def _widest(
    alike: Sequence[Observation], observations: Iterable[Observation], complete: bool, reason: ReasonOf
) -> list[KnownFailure]:
    """Return one rule for alike failures of an overload if they are all its cells in a complete run.

    Otherwise, return one rule for each set of failing layouts, with the dtypes that have this set.
    """
    first = alike[0]
    checks = tuple(sorted({f.check for f in first.failures if f.check})) or _ANY
    base = KnownFailure(
        op=(first.cell.overload,), check=checks, status=first.status, reason=reason(first)[:_LONGEST_REASON]
    )
    may_run = sum(o.cell.overload == first.cell.overload and o.status in _MAY_RUN for o in observations)
    if complete and may_run == len(alike):
        return [base]
    layouts: dict[str, list[str]] = defaultdict(list)
    for o in alike:
        layouts[o.cell.dtype].append(o.cell.layout)
    dtypes: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for dtype, failing in layouts.items():
        dtypes[tuple(sorted(failing))].append(dtype)
    return [replace(base, dtype=tuple(sorted(ds)), layout=ls) for ls, ds in sorted(dtypes.items())]


def _worded(rule: KnownFailure, old: Iterable[KnownFailure]) -> KnownFailure:
    """Return a new rule with the reason and link of an old rule of the same overload and status, if there is one."""
    for r in old:
        if r.status is rule.status and _matches(r.op, rule.op[0]):
            return replace(rule, reason=r.reason, link=r.link)
    return rule
