"""The ranking of measured cases by the seconds that their calls take beyond the attainable time. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from conformance.perf.model import Key, Limits, Machine, Record
from conformance.vocabulary import Word


class Bound(Word):
    """The limit of the time of a call on a machine."""

    LAUNCH = "launch", "no call is done in less than the copy of one element"
    BANDWIDTH = "bandwidth", "its bytes at the speed of a large copy"
    FLOPS = "flops", "its operations at the speed of a large matrix product"


@dataclass(frozen=True, slots=True)
class Floor:
    """The least seconds that a call takes on a machine, and the limit that they come from."""

    seconds: float
    bound: Bound


@dataclass(frozen=True, slots=True)
class Rank:
    """A measured case. ``lost``: seconds beyond the attainable ones, of all its ``calls``."""

    record: Record
    attainable: float  # seconds a call
    bound: Bound
    calls: float
    lost: float


Calls = Mapping[tuple[str, int], int]  # (overload, elements of the largest argument) -> number of calls


def best(machine: Machine) -> Limits:
    """Return the device's limits, with a bandwidth and operations per second that are at least CPU's.

    Otherwise, a device with a slow matrix product would seem to compute as fast as it can.
    """
    device, cpu = machine.device, machine.cpu
    fastest = (max((x for x in pair if x), default=None) for pair in _pairs(device, cpu))
    bandwidth, flops = fastest
    return Limits(bandwidth, flops, device.launch or cpu.launch)


def _pairs(device: Limits, cpu: Limits) -> tuple[tuple[float | None, float | None], ...]:
    return (device.bandwidth, cpu.bandwidth), (device.flops, cpu.flops)


def floor(record: Record, limits: Limits) -> Floor:
    """Return the least time of a case within these limits: the largest of the three bounds."""
    work = record.work
    found = [Floor(limits.launch or 0.0, Bound.LAUNCH)]
    if work and limits.bandwidth:
        found.append(Floor(work.bytes / limits.bandwidth, Bound.BANDWIDTH))
    if work and work.flops and limits.flops:
        found.append(Floor(work.flops / limits.flops, Bound.FLOPS))
    return max(found, key=lambda f: f.seconds)


def attainable(record: Record, machine: Machine) -> Floor:
    """Return the seconds that a device takes if it comes as close to its floor as CPU does to CPU's floor.

    A floor may leave out work: the floor of exp counts only its bytes. The factor by which CPU exceeds its own floor
    stands for the work that is left out.
    """
    own, host = floor(record, best(machine)), floor(record, machine.cpu).seconds
    slowness = max(1.0, record.cpu.median / host) if host else 1.0
    return Floor(own.seconds * slowness, own.bound)


def rank(records: Iterable[Record], machine: Machine, calls: Calls | None = None) -> list[Rank]:
    """Return the measured cases, those with the most lost seconds first.

    ``calls``: the calls of recorded programs. Each call counts for the measured case of its overload with the nearest
    size, and cases without calls are left out. Without ``calls``, each case counts as one call.
    """
    measured = [r for r in records if r.is_measured]
    weights = None if calls is None else _weights(measured, calls)
    found = [_rank(r, machine, 1.0 if weights is None else weights.get(r.key, 0.0)) for r in measured]
    return sorted((r for r in found if r.calls), key=lambda r: (-r.lost, str(r.record.key)))


def unmeasured(records: Iterable[Record], calls: Calls) -> dict[str, int]:
    """Return the recorded overloads without a measured case, with their calls, the most called first."""
    known = {r.key.overload for r in records if r.is_measured}
    found: dict[str, int] = defaultdict(int)
    for (overload, _), count in calls.items():
        if overload not in known:
            found[overload] += count
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _rank(record: Record, machine: Machine, calls: float) -> Rank:
    could = attainable(record, machine)
    return Rank(record, could.seconds, could.bound, calls, calls * max(0.0, record.device.median - could.seconds))


def _weights(measured: Iterable[Record], calls: Calls) -> dict[Key, float]:
    by_overload: dict[str, list[Record]] = defaultdict(list)
    for record in measured:
        by_overload[record.key.overload].append(record)
    found: dict[Key, float] = defaultdict(float)
    for (overload, elements), count in calls.items():
        if of := by_overload.get(overload):
            found[min(of, key=lambda r: _distance(r, elements)).key] += count
    return found


def _distance(record: Record, elements: int) -> float:
    """Return how far the size of a case is from a number of elements: the logarithm of their ratio."""
    own = record.work.elements if record.work else 0
    return abs(math.log((own or 1) / (elements or 1)))
