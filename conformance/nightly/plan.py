"""The issues that a night opens, updates, reopens and closes. Pure.

An issue stands for one culprit: all families whose search names the same step, or one family without a known culprit.
A hidden comment in its body (:mod:`conformance.nightly.mark`) names its families, by which a later night finds it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from conformance.explain import describe
from conformance.nightly.families import Failing, by_family
from conformance.nightly.mark import Mark, digest
from conformance.support.markup import block, code, plain

MOST_NEW = 10  # issues of one night; more families than these become one issue
_SHOWN = 10
_LONGEST = 4000  # characters of a failure


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue of the tracker."""

    number: int
    title: str
    body: str
    open: bool

    @property
    def mark(self) -> Mark:
        return Mark.of(self.body)


@dataclass(frozen=True, slots=True)
class Action:
    """One change of the tracker."""

    kind: str  # open, update, reopen or close
    number: int | None
    title: str
    body: str = ""  # the complete new body; "" leaves it unchanged
    comment: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def plan(
    failing: Iterable[Failing], whole: Collection[str], culprits: Mapping[str, str], issues: Sequence[Issue], night: str
) -> list[Action]:
    """Return the changes of the tracker.

    ``failing``: every unexpected failure of tonight. ``whole``: the lanes with a complete run tonight. ``culprits``:
    the results of bisections by case. ``issues``: all issues of the suite, also closed ones. ``night``: the date.
    """
    families = by_family(failing)
    known: dict[str, Issue] = {}
    # If a family has several issues, its open issue counts, or else the newest.
    for issue in sorted(issues, key=lambda i: (i.open, i.number)):
        known |= dict.fromkeys(issue.mark.families, issue)
    mine: dict[Issue, set[str]] = defaultdict(set)
    new: dict[str, set[str]] = defaultdict(set)
    for name, cells in families.items():
        if spoken := known.get(name):
            mine[spoken].add(name)
        else:
            new[_culprit(cells, culprits) or name].add(name)
    for culprit in list(new):  # the culprit has an issue already
        has = (i for i in list(mine) if any(_culprit(families[f], culprits) == culprit for f in mine[i]))
        if spoken := next(has, None):
            mine[spoken] |= new.pop(culprit)
    groups = list(new.values()) if len(new) <= MOST_NEW else [set().union(*new.values())]
    actions = [_open(group, families, culprits, night) for group in groups]
    for issue in sorted(issues, key=lambda i: i.number):
        action = _of_known(issue, mine.get(issue, set()), families, culprits, whole, night)
        actions += [action] if action else []
    return actions


def _of_known(
    issue: Issue, failing: Collection[str], families: Mapping[str, Sequence[Failing]], culprits: Mapping[str, str],
    whole: Collection[str], night: str,
) -> Action | None:  # fmt: skip
    if failing:
        seen = {f.lane for name in failing for f in families[name]}
        lanes = seen | {lane for lane in issue.mark.lanes if lane not in whole}  # unknown tonight
        body = _body(failing, families, culprits, night, lanes)
        if not issue.open:
            return Action("reopen", issue.number, issue.title, body, f"Fails again, {plain(night)}.")
        same = Mark.of(body) == issue.mark
        return None if same else Action("update", issue.number, issue.title, body)
    fails = issue.mark.families & set(families)  # these families belong to another issue too
    if not issue.open or not issue.mark.families or fails or not issue.mark.lanes <= set(whole):
        return None
    return Action("close", issue.number, issue.title, comment=f"All of its cells pass, {plain(night)}.")


def _open(
    group: Collection[str], families: Mapping[str, Sequence[Failing]], culprits: Mapping[str, str], night: str
) -> Action:
    first = max(sorted(group), key=lambda name: len(families[name]))
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    lanes = {f.lane for name in group for f in families[name]}
    return Action("open", None, f"Conformance: {first}{more}", _body(group, families, culprits, night, lanes))


def _body(
    group: Collection[str], families: Mapping[str, Sequence[Failing]], culprits: Mapping[str, str], night: str,
    lanes: Collection[str],
) -> str:  # fmt: skip
    cells = [f for name in sorted(group) for f in families[name]]
    found = sorted({c for name in group if (c := _culprit(families[name], culprits))})
    lines = [""]
    lines += [f"Culprit: {plain(c)}" for c in found] + ([""] if found else [])
    lines += ["| family | cells | lanes |", "| --- | ---: | --- |"]
    for name in sorted(group)[: 10 * _SHOWN]:
        of = families[name]
        lines.append(f"| {code(name)} | {len(of)} | {plain(', '.join(sorted({f.lane for f in of})))} |")
    first = next((f for f in cells if f.case), cells[0])
    lines += ["", f"The first, in {plain(first.lane)}:", "", *describe.markdown(first.seen, first.backend, _LONGEST)]
    if flaky := sorted({f.flaky for f in cells if f.flaky}):
        lines += ["", f"Flaky: {plain('; '.join(flaky[:_SHOWN]))}."]
    if first.case:
        repeat = f"conformance lane {first.lane} -- python -m pytest --pyargs conformance --case '{first.case}'"
        lines += ["", "Repeat:", "", *block(repeat, "sh")]
    mark = Mark(frozenset(group), frozenset(lanes), digest(lines))
    return "\n".join([f"{len(cells)} cells fail, {plain(night)}.", *lines, "", mark.comment(), ""])


def _culprit(cells: Iterable[Failing], culprits: Mapping[str, str]) -> str:
    return next((culprits[f.case] for f in cells if f.case in culprits), "")
