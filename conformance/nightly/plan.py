"""Which issues a night opens, brings up to date, opens again and closes; pure.

An issue stands for one culprit: all families whose search names the same step. Where no search does, it stands for one
cause: all families that one kernel explains. Its body names its families on lines that people do not see, and by them
it is found again, whatever explains them then.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from conformance.nightly import issue_text
from conformance.nightly.families import Failing, by_family, kernel
from conformance.nightly.issue_text import Night, culprit_of, unmarked
from conformance.support.markup import plain

MOST_NEW = 10  # issues of one night; more families than these become one issue
_MARK = re.compile(r"^<!-- op-conformance family: (.+) -->$", re.MULTILINE)
_LANES = re.compile(r"^<!-- op-conformance lanes: (.*) -->$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue as the tracker has it."""

    number: int
    title: str
    body: str
    open: bool

    @property
    def families(self) -> frozenset[str]:
        return frozenset(_MARK.findall(self._marks))

    @property
    def lanes(self) -> frozenset[str]:
        found = _LANES.search(self._marks)
        return frozenset(found[1].split()) if found else frozenset()

    @property
    def _marks(self) -> str:
        """The last paragraph: a failure above it may hold lines that look alike."""
        return self.body.replace("\r\n", "\n").rstrip().rpartition("\n\n")[2]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do to the tracker."""

    kind: str  # open, update, reopen or close
    number: int | None
    title: str
    body: str = ""  # the whole of it; "" leaves it as it is
    comment: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def plan(
    failing: Iterable[Failing], whole: Collection[str], culprits: Mapping[str, str], issues: Sequence[Issue], night: str
) -> list[Action]:
    """What to do.

    ``failing``: every cell that fails tonight and is not expected to. ``whole``: the lanes of which tonight's run says
    of every cell whether it fails. ``culprits``: what a search found, by case. ``issues``: the suite's, all of them.
    ``night``: how to call tonight.
    """
    families = by_family(failing)
    known: dict[str, Issue] = {}
    for issue in sorted(issues, key=lambda i: (i.open, i.number)):  # an open one, or else the newest, speaks for it
        known |= dict.fromkeys(issue.families, issue)
    mine: dict[Issue, set[str]] = defaultdict(set)
    new: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, cells in families.items():
        if spoken := known.get(unmarked(name)):
            mine[spoken].add(name)
        else:
            new[_stands_for(name, cells, culprits)].add(name)
    for what in list(new):  # another family of a culprit or a cause that has its issue already
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
    """What an issue of a family stands for: its culprit, or else its cause, or else the family itself."""
    if culprit := culprit_of(cells, culprits):
        return "culprit", culprit
    cause = kernel(cells)
    return ("cause", cause) if cause else ("family", family)


def _of_known(issue: Issue, failing: Collection[str], tonight: Night, whole: Collection[str]) -> Action | None:
    if failing:
        # Of the lanes that did not run whole, tonight's run does not say whether they still fail.
        lanes = tonight.lanes(failing) | {lane for lane in issue.lanes if lane not in whole}
        body = issue_text.body(failing, tonight, lanes)
        if not issue.open:
            return Action("reopen", issue.number, issue.title, body, f"Fails again, {plain(tonight.name)}.")
        same = _timeless(body) == _timeless(issue.body)
        return None if same else Action("update", issue.number, issue.title, body)
    fails = issue.families & set(map(unmarked, tonight.families))  # another issue, too, speaks for what fails
    if not issue.open or not issue.families or fails or not issue.lanes <= set(whole):
        return None
    return Action(
        "close", issue.number, issue.title, comment=f"None of its cells fails any more, {plain(tonight.name)}."
    )


def _open(group: Collection[str], tonight: Night) -> Action:
    body = issue_text.body(group, tonight, tonight.lanes(group))
    return Action("open", None, f"Conformance: {issue_text.title(group, tonight)}", body)


def _timeless(body: str) -> str:
    """A body without what every night writes otherwise."""
    text = body.replace("\r\n", "\n").strip()
    return text.partition("\n")[2]
