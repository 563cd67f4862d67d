"""The issues that a night opens, updates, reopens and closes. Pure.

An issue stands for one culprit: all families whose search names the same step. If no search does, it stands for one
cause: all families that one kernel explains. A hidden comment in its body (:mod:`conformance.nightly.mark`) names its
families. A later night finds the issue by these families, even if their culprit or cause is another then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from conformance.nightly import issue_text
from conformance.nightly.families import Failing, by_family, kernel
from conformance.nightly.issue_text import Night, culprit_of
from conformance.nightly.mark import Mark
from conformance.support.markup import plain

MOST_NEW = 10  # new issues of one night; if there were more, all new families become one issue


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
    new: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, cells in families.items():
        if spoken := known.get(name):
            mine[spoken].add(name)
        else:
            new[_stands_for(name, cells, culprits)].add(name)
    for what in list(new):  # the culprit or the cause has an issue already
        has = (i for i in list(mine) if any(_stands_for(f, families[f], culprits) == what for f in mine[i]))
        if spoken := next(has, None):
            mine[spoken] |= new.pop(what)
    groups = list(new.values()) if len(new) <= MOST_NEW else [set().union(*new.values())]
    tonight = Night(night, families, culprits)
    actions = [_open(group, tonight) for group in groups]
    for issue in sorted(issues, key=lambda i: i.number):
        action = _of_known(issue, mine.get(issue, set()), tonight, whole)
        actions += [action] if action else []
    return actions


def _stands_for(family: str, cells: Sequence[Failing], culprits: Mapping[str, str]) -> tuple[str, str]:
    """Return the subject of a family's issue: its culprit, else its cause, else the family itself."""
    if culprit := culprit_of(cells, culprits):
        return "culprit", culprit
    cause = kernel(cells)
    return ("cause", cause) if cause else ("family", family)


def _of_known(issue: Issue, failing: Collection[str], tonight: Night, whole: Collection[str]) -> Action | None:
    if failing:
        lanes = tonight.lanes(failing) | {lane for lane in issue.mark.lanes if lane not in whole}  # unknown tonight
        body = issue_text.body(failing, tonight, lanes)
        if not issue.open:
            return Action("reopen", issue.number, issue.title, body, f"Fails again, {plain(tonight.name)}.")
        same = Mark.of(body) == issue.mark
        return None if same else Action("update", issue.number, issue.title, body)
    fails = issue.mark.families & set(tonight.families)  # these families belong to another issue too
    if not issue.open or not issue.mark.families or fails or not issue.mark.lanes <= set(whole):
        return None
    return Action("close", issue.number, issue.title, comment=f"All of its cells pass, {plain(tonight.name)}.")


def _open(group: Collection[str], tonight: Night) -> Action:
    body = issue_text.body(group, tonight, tonight.lanes(group))
    return Action("open", None, f"Conformance: {issue_text.title(group, tonight)}", body)
