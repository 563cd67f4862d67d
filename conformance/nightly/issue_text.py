"""The title and the body of an issue of a night."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformance.explain import describe
from conformance.nightly.families import Failing, kernel, largest
from conformance.nightly.mark import Mark, digest
from conformance.results import causes_text
from conformance.results.causes import Cause
from conformance.support import command_lines
from conformance.support.markup import block, code, plain
from conformance.support.wording import some

_SHOWN = 10
_LONGEST = 4000  # characters of a failure


@dataclass(frozen=True, slots=True)
class Night:
    """The failing cells of a night by family, and the culprits that searches found by case."""

    name: str
    families: Mapping[str, Sequence[Failing]]
    culprits: Mapping[str, str]

    def cells(self, group: Iterable[str]) -> list[Failing]:
        """Return the failing cells of these families."""
        return [f for name in sorted(group) for f in self.families[name]]

    def lanes(self, group: Iterable[str]) -> set[str]:
        """Return the lanes in which these families fail."""
        return {f.lane for f in self.cells(group)}


def title(group: Collection[str], night: Night) -> str:
    """Return the title: the kernel, if one kernel explains several families, else the family with most cells."""
    first = max(sorted(group), key=lambda name: len(night.families[name]))
    kernels = {kernel(night.families[name]) for name in group}
    (only,) = kernels if len(kernels) == 1 else {""}
    if only and len(group) > 1:
        return f"{only} explains {len(group)} families of failures"
    return first + (f" and {len(group) - 1} more" if len(group) > 1 else "")


def body(group: Collection[str], night: Night, lanes: Collection[str]) -> str:
    """Return the body of an issue of some families; ``lanes``: the lanes to store in its mark."""
    cells = night.cells(group)
    culprits = sorted({c for name in group if (c := culprit_of(night.families[name], night.culprits))})
    causes = largest(cells)
    lines = [""]
    lines += [f"Culprit: {plain(c)}" for c in culprits] + ([""] if culprits else [])
    for at, cause in list(causes.values())[:_SHOWN]:
        lines += [*_cause(cause, at.lane), ""]
    lines += [*_families(group, night), "", *_example(cells, next(iter(causes.values()), None))]
    mark = Mark(frozenset(group), frozenset(lanes), digest(lines))
    return "\n".join([f"{len(cells)} cells fail, {plain(night.name)}.", *lines, "", mark.comment(), ""])


def culprit_of(cells: Iterable[Failing], culprits: Mapping[str, str]) -> str:
    """Return the culprit that a search found for one of the cells, "" if there is none."""
    return next((culprits[f.case] for f in cells if f.case in culprits), "")


def _cause(cause: Cause, lane: str) -> Iterator[str]:
    """Yield the lines about a cause in ``lane``, the lane where its kernel explains most cells."""
    overloads = plain(some(cause.overloads))
    yield f"Cause: {code(cause.kernel)} explains {causes_text.explained(cause)} in {plain(lane)}: {overloads}."
    for contrast in cause.contrasts:
        yield f"- {plain(causes_text.contrast(contrast))}"


def _families(group: Collection[str], night: Night) -> Iterator[str]:
    yield from ("| family | cells | lanes |", "| --- | ---: | --- |")
    for name in sorted(group)[: 10 * _SHOWN]:
        of = night.families[name]
        yield f"| {code(name)} | {len(of)} | {plain(', '.join(sorted({f.lane for f in of})))} |"


def _example(cells: Sequence[Failing], largest: tuple[Failing, Cause] | None) -> Iterator[str]:
    """Yield the failure of the largest cause's example, else the first failure, and its commands."""
    first = next((f for f in cells if f.case), cells[0])
    if largest:
        at, cause = largest
        first = next((f for f in cells if (f.lane, f.seen.cell) == (at.lane, cause.example_cell)), first)
    yield from (f"An example, in {plain(first.lane)}:", "")
    yield from describe.markdown(first.seen, first.backend, _LONGEST)
    if flaky := sorted({f.flaky for f in cells if f.flaky}):
        yield from ("", f"Flaky: {plain('; '.join(flaky[:_SHOWN]))}.")
    if first.case:
        yield from ("", "Repeat:", "", *block(command_lines.in_lane(first.case, first.lane), "sh"))
        yield from ("", "Triage:", "", *block(command_lines.triage(first.case, first.backend), "sh"))
