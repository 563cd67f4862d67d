"""A list made of the failing cells of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from conformance.device_tests.mapping import NotMapped, OpInfoMap, places
from conformance.device_tests.model import Entry
from conformance.records import Observation
from conformance.vocabulary import Status

ReasonOf = Callable[[Observation], str]
_RAN = frozenset(s for s in Status if s.is_failure or s is Status.PASS)


def entries(
    failing: Iterable[Observation], ops: OpInfoMap, reason: ReasonOf
) -> tuple[tuple[Entry, ...], Mapping[str, tuple[str, ...]]]:
    """Return the entries of failing cells, and by reason the cells that are in no entry.

    An entry has the kinds of tests of an op that fail in the same dtypes, and the ``reason`` of its first cell.
    """
    dtypes: dict[tuple[str, str], set[str]] = defaultdict(set)
    reasons: dict[tuple[str, str], str] = {}
    unmapped: dict[str, list[str]] = defaultdict(list)
    for observation in failing:
        try:
            for place in places(observation, ops):
                dtypes[place].add(observation.cell.dtype)
                reasons.setdefault(place, reason(observation))
        except NotMapped as e:
            unmapped[str(e)].append(str(observation.cell))
    kinds: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (op, kind), of in dtypes.items():
        kinds[op, tuple(sorted(of))].append(kind)
    found = (Entry(op, tuple(sorted(ks)), ds, reasons[op, ks[0]]) for (op, ds), ks in sorted(kinds.items()))
    return tuple(found), {why: tuple(sorted(cells)) for why, cells in sorted(unmapped.items())}


def served(observations: Iterable[Observation], ops: OpInfoMap) -> tuple[str, ...]:
    """Return the OpInfos of the overloads that ran, whether they passed or failed."""
    overloads = {o.cell.overload for o in observations if o.status in _RAN and not o.cell.is_scenario}
    return tuple(sorted({op for overload in overloads for op, _ in ops.ops_of(overload)}))
