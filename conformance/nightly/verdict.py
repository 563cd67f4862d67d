"""The verdict on a failed night for PyTorch's CI relay: the input ``triage-verdict`` of its callback action. Pure.

Schema version 1 of ``.github/actions/cross-repo-ci-relay-callback`` in github.com/pytorch/test-infra. The verdict is
derived from the night's bisections, from repetitions in fresh processes, and from the runs of the night before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.explain import describe
from conformance.nightly.families import Failing, by_family
from conformance.records import Repeats
from conformance.vocabulary import Status, Word

SCHEMA = 1
MOST_EVIDENCE = 10
SUMMARY = 1024  # bytes
EXCERPT = 512  # bytes; the whole object may have 16 KB


class Category(Word):
    """The origin of a failure, in the relay's words. A night has the first category that one of its cells has."""

    UPSTREAM = "upstream", "torch changed, and the backend did not"
    BACKEND = "backend", "the backend changed, or the cell failed with the torch of the night before"
    UNKNOWN = "unknown", "both or neither changed, and no search found which commit it was"
    INFRA = "infra", "the suite itself failed, or cells were not reached"
    FLAKE = "flake", "the cell fails in some runs only"


@dataclass(frozen=True, slots=True)
class Culprit:
    """The result of a search for one case: the axis, ``torch`` or ``backend``, and the step in words."""

    axis: str
    text: str


@dataclass(frozen=True, slots=True)
class Ends:
    """The versions and commits of torch in two runs of a lane; empty if there is no earlier run."""

    torch: str
    torch_commit: str
    before: str = ""
    before_commit: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The unexpected failures of one lane."""

    lane: str
    failing: tuple[Failing, ...]
    new: frozenset[str]  # the cells that did not fail the night before
    compared: bool  # whether there is a run of the night before
    not_reached: int
    ends: Ends


def verdict(lanes: Sequence[Evidence], culprits: Mapping[str, Culprit], version: str) -> dict[str, Any] | None:
    """Return the verdict on a night, None if nothing failed. ``culprits``: by case; ``version``: the suite's."""
    failing = [(category(f, lane, culprits), f) for lane in lanes for f in lane.failing]
    unreached = [lane for lane in lanes if lane.not_reached]
    if not failing and not unreached:
        return None
    counted = Counter(found for found, _ in failing)
    night = next((c for c in Category if counted[c]), Category.INFRA)
    of_night = [f for found, f in failing if found is night]
    made: dict[str, Any] = {
        "schema_version": SCHEMA,
        "category": night.value,
        "confidence": _confidence(night, of_night, culprits),
        "summary": cut(_summary(night, of_night, len(failing), unreached), SUMMARY),
        "evidence": _evidence(of_night),
        "reproduced_on_retry": any(_is_steady(f) for f in of_night),
        "analyzer": {"name": "op-conformance", "version": version},
    }
    changed = next((lane.ends for lane in lanes if lane.failing and lane.ends.before), None)
    if night is Category.UPSTREAM and changed:
        made["suspected_upstream"] = {"reason": cut(_range(changed), SUMMARY)}
    return made


def category(failing: Failing, lane: Evidence, culprits: Mapping[str, Culprit]) -> Category:
    """Return the category of one failing cell."""
    found = culprit_of(failing, lane.failing, culprits)
    if failing.seen.status is Status.ERROR:
        return Category.INFRA
    if failing.flaky or any(failure.setting.runs > 1 for failure in failing.seen.failures):
        return Category.FLAKE
    if found:
        return Category.UPSTREAM if found.axis == "torch" else Category.BACKEND
    known = lane.compared and failing.cell not in lane.new
    return Category.BACKEND if known else Category.UNKNOWN


def culprit_of(failing: Failing, others: Sequence[Failing], culprits: Mapping[str, Culprit]) -> Culprit | None:
    """Return the culprit of a cell, else of another cell of its family, since a search runs one case of each family."""
    cases = [failing.case, *(f.case for f in others if f.family == failing.family)]
    return next((culprits[case] for case in cases if case in culprits), None)


def _is_steady(failing: Failing) -> bool:
    return any(f.repetition is not None and f.repetition.kind is Repeats.STEADY for f in failing.seen.failures)


def _confidence(night: Category, failing: Sequence[Failing], culprits: Mapping[str, Culprit]) -> str:
    if night is Category.UNKNOWN:
        return "low"
    searched = night in (Category.UPSTREAM, Category.BACKEND)
    return "high" if not searched or all(culprit_of(f, failing, culprits) for f in failing) else "medium"


def _summary(night: Category, failing: Sequence[Failing], total: int, unreached: Sequence[Evidence]) -> str:
    parts = [f"{night.value}: {night.meaning}"]
    if failing:
        first = "; ".join(list(by_family(failing))[:3])
        parts.append(f"{len(failing)} of {total} unexpected failures: {first}")
    parts += [f"{lane.not_reached} cells of {lane.lane} were not reached" for lane in unreached]
    return ". ".join(parts)


def _evidence(failing: Sequence[Failing]) -> list[dict[str, str]]:
    """Return one cell of each family."""
    first = [(name, cells[0]) for name, cells in by_family(failing).items()][:MOST_EVIDENCE]
    return [
        {"job": f.lane, "test": name, "excerpt": cut(f"{f.case or f.cell}: {describe.excerpt(f.seen)}", EXCERPT)}
        for name, f in first
    ]


def _range(ends: Ends) -> str:
    commits = f" (commits {ends.before_commit or 'unknown'} to {ends.torch_commit or 'unknown'})"
    return f"torch changed from {ends.before} to {ends.torch}{commits}, and the backend did not change"


def cut(text: str, size: int) -> str:
    """Return at most this many bytes of UTF-8, cut at a character. Invalid characters are replaced."""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")
