"""Which issues a night opens, brings up to date, opens again and closes; pure.

An issue stands for one culprit: all families whose search names the same step, or a family of which none is known. Its
body names its families on a line that people do not see, and by them it is found again.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from conformance.explain import describe
from conformance.nightly.families import Failing, by_family
from conformance.support.markup import block, code, plain

MOST_NEW = 10  # issues of one night; more families than these become one issue
_SHOWN = 10
_LONGEST = 4000  # characters of a failure
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
    new: dict[str, set[str]] = defaultdict(set)
    for name, cells in families.items():
        if spoken := known.get(_unmarked(name)):
            mine[spoken].add(name)
        else:
            new[_culprit(cells, culprits) or name].add(name)
    for culprit in list(new):  # another family of a culprit that has its issue already
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
        lanes = seen | {lane for lane in issue.lanes if lane not in whole}  # not known of these tonight
        body = _body(failing, families, culprits, night, lanes)
        if not issue.open:
            return Action("reopen", issue.number, issue.title, body, f"Fails again, {plain(night)}.")
        same = _timeless(body) == _timeless(issue.body)
        return None if same else Action("update", issue.number, issue.title, body)
    fails = issue.families & set(map(_unmarked, families))  # another issue, too, speaks for what fails
    if not issue.open or not issue.families or fails or not issue.lanes <= set(whole):
        return None
    return Action("close", issue.number, issue.title, comment=f"None of its cells fails any more, {plain(night)}.")


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
    lines = [f"{len(cells)} cells fail, {plain(night)}.", ""]
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
    marks = [f"<!-- op-conformance family: {_unmarked(name)} -->" for name in sorted(group)]
    return "\n".join([*lines, "", *marks, f"<!-- op-conformance lanes: {' '.join(sorted(lanes))} -->", ""])


def _culprit(cells: Iterable[Failing], culprits: Mapping[str, str]) -> str:
    return next((culprits[f.case] for f in cells if f.case in culprits), "")


def _unmarked(name: str) -> str:
    """A family's name such that it cannot end the comment it stands in; a name of the dispatcher's stays as it is."""
    return name.replace("--", "- -").replace("\n", " ")


def _timeless(body: str) -> str:
    """A body without what every night writes otherwise."""
    text = body.replace("\r\n", "\n").strip()
    return text.partition("\n")[2]
