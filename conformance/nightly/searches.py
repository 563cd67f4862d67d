"""The bisections of a night: one case of each family of new failures, between the two commits. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from conformance.lanes.matrix import torch_of
from conformance.nightly.families import Failing, by_family, kernel
from conformance.results.store import Manifest


@dataclass(frozen=True, slots=True)
class Search:
    """The arguments of ``conformance bisect`` for one lane. ``why_not``: why there is nothing to bisect."""

    lane: str
    environment: str
    torch: str
    good: str
    bad: str
    cases: tuple[str, ...]
    why_not: str = ""
    culprit: str = ""  # known without a search

    def arguments(self) -> list[str]:
        # The matrix' name of the version: a nightly torch is another version each night.
        torch = torch_of(self.lane) or self.torch.partition("+")[0]
        ends = ["--axis", "backend", "--good", self.good, "--bad", self.bad, "--torch", torch]
        return [*self.cases, *ends, "--environment", self.environment]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def search(old: Manifest, new: Manifest, failing: Iterable[Failing], most: int) -> Search | None:
    """Return the search for new failures between two runs of a lane, None if there are none.

    ``most``: the largest number of families in the search. If both runs have the same commit of the backend, there is
    nothing to bisect: torch or the machine changed.
    """
    why_not = _why_not(old, new)
    cases = _cases(failing)[: None if why_not else most]
    if not cases:
        return None
    ends = old.backend_commit, new.backend_commit
    culprit = why_not if old.torch != new.torch and ends[0] == ends[1] else ""
    return Search(new.lane, new.environment, new.torch, *ends, cases, why_not, culprit)


def _cases(failing: Iterable[Failing]) -> tuple[str, ...]:
    """Return a case of each family that is not flaky: one of each cause, then a second of each cause, and so on.

    So the first cases are about many causes.
    """
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
        return f"torch changed from {old.torch} to {new.torch}, the backend did not change"
    if not all(commits):
        return "the backend does not report its commit"
    if any(c.endswith("-dirty") for c in commits):
        return "the backend was built with uncommitted changes"
    if commits[0] == commits[1]:
        return "neither torch nor the backend changed, so the cause is elsewhere"
    return ""
