"""Which searches a night asks for: of what newly fails, a case of each cause, between the two commits; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from conformance.nightly.families import Failing, by_family, kernel
from conformance.results.store import Manifest

_VERSION = re.compile(r"-torch([^-]+)-")


@dataclass(frozen=True, slots=True)
class Search:
    """What ``conformance bisect`` is given for one lane; with ``why_not``, no search, and the reason."""

    lane: str
    environment: str
    torch: str
    good: str
    bad: str
    cases: tuple[str, ...]
    why_not: str = ""
    culprit: str = ""  # known without a search

    def arguments(self) -> list[str]:
        named = _VERSION.search(self.lane)  # as the matrix calls it: a nightly torch is another one each night
        torch = named[1] if named else self.torch.partition("+")[0]
        ends = ["--axis", "backend", "--good", self.good, "--bad", self.bad, "--torch", torch]
        return [*self.cases, *ends, "--environment", self.environment]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def search(old: Manifest, new: Manifest, failing: Iterable[Failing], most: int) -> Search | None:
    """The search for what newly fails between two runs of a lane; None where nothing does.

    ``most``: how many families share the search. A backend of the same commit is not searched: then torch's change, or
    the machine's, is the answer.
    """
    why_not = _why_not(old, new)
    cases = _cases(failing)[: None if why_not else most]
    if not cases:
        return None
    ends = old.backend_commit, new.backend_commit
    culprit = why_not if old.torch != new.torch and ends[0] == ends[1] else ""
    return Search(new.lane, new.environment, new.torch, *ends, cases, why_not, culprit)


def _cases(failing: Iterable[Failing]) -> tuple[str, ...]:
    """A case of each family: one of each cause, then a second of each, so that a few searches ask about many causes."""
    taken: Counter[str] = Counter()
    ranked: list[tuple[int, str]] = []
    for name, cells in by_family(failing).items():
        if case := next((f.case for f in cells if f.case and not f.flaky), ""):
            cause = kernel(cells) or name
            ranked.append((taken[cause], case))
            taken[cause] += 1
    return tuple(case for _, case in sorted(ranked, key=lambda one: one[0]))


def _why_not(old: Manifest, new: Manifest) -> str:
    commits: Sequence[str] = (old.backend_commit, new.backend_commit)
    if old.torch != new.torch and commits[0] == commits[1]:
        return f"torch {old.torch} became {new.torch}, the backend stayed"
    if not all(commits):
        return "the backend does not say of which commit it is"
    if any(c.endswith("-dirty") for c in commits):
        return "the backend was built from changes that no commit holds"
    if commits[0] == commits[1]:
        return "torch and the backend stayed the same: the cause is not in them"
    return ""
