"""CI jobs: each lane, split into shards of about a given duration. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from statistics import median
from typing import Any

from conformance.lanes.matrix import LISTED_BY, Lane, Matrix
from conformance.lanes.process import session_name
from conformance.support.suggestions import unknown

MOST = 256  # GitHub's limit of jobs in one matrix


class JobError(ValueError):
    """An invalid request for jobs. The message is one line."""


@dataclass(frozen=True, slots=True)
class Job:
    """One session on one machine."""

    lane: str
    session: str
    shard: str  # I/N
    torch: str
    environment: str
    build: str
    minutes: float | None  # expected duration without installation, None if unknown

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def choose(matrices: Sequence[Matrix], patterns: Sequence[str], torches: Sequence[str]) -> list[tuple[Lane, str]]:
    """Return the chosen lanes with their sessions; without patterns, all lanes except those on demand.

    ``patterns``: names of lanes, or shell patterns of them. Raises JobError for a pattern that matches nothing.
    """
    everything = [(lane, session_name(m, lane, alone=len(matrices) == 1)) for m in matrices for lane in m.lanes()]
    names = [lane.name for lane, _ in everything]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise JobError(f"--lanes: {unknown('lane', pattern, names, LISTED_BY)}")
    versions = {lane.torch.version for lane, _ in everything}
    for version in torches:
        if version not in versions:
            raise JobError(f"--torch: {unknown('torch version', version, versions)}")
    found = [(lane, session) for lane, session in everything if _asked(lane, patterns, torches)]
    if not found:
        raise JobError("no lane is selected; lanes on demand must be named with --lanes")
    return found


def plan(
    lanes: Sequence[tuple[Lane, str]], measured: Mapping[str, float], minutes: float, most: int | None = MOST
) -> list[Job]:
    """Return the jobs of these lanes. Each takes about ``minutes``. ``most``: the largest number of jobs.

    ``measured``: the duration of lanes in seconds, by name. A lane that was not measured counts with the median of the
    measured lanes of its environment and build, or else of all measured lanes. If no lane was measured, it is not
    split. Raises JobError.
    """
    if not minutes > 0:
        raise JobError(f"--minutes: expected a positive number of minutes, got {minutes:g}")
    jobs = [
        job for lane, session in lanes for job in _of_lane(lane, session, _expected(lane, lanes, measured), minutes)
    ]
    if most is not None and len(jobs) > most:
        raise JobError(f"{len(jobs)} jobs, but GitHub allows {most}; increase --minutes, or select fewer lanes")
    return jobs


def _asked(lane: Lane, patterns: Sequence[str], torches: Sequence[str]) -> bool:
    named = any(fnmatchcase(lane.name, p) for p in patterns) if patterns else not lane.on_demand
    return named and (not torches or lane.torch.version in torches)


def _expected(lane: Lane, lanes: Sequence[tuple[Lane, str]], measured: Mapping[str, float]) -> float | None:
    if lane.name in measured:
        return measured[lane.name]
    like = [measured[o.name] for o, _ in lanes if o.name in measured and _alike(o, lane)]
    known = like or [measured[other.name] for other, _ in lanes if other.name in measured]
    return median(known) if known else None


def _alike(one: Lane, other: Lane) -> bool:
    return (one.environment.name, one.build.name) == (other.environment.name, other.build.name)


def split(lanes: Sequence[tuple[Lane, str]], count: int) -> list[Job]:
    """Return the jobs of these lanes, ``count`` of each. Their durations are unknown."""
    return [job for lane, session in lanes for job in _shards(lane, session, count, None)]


def _of_lane(lane: Lane, session: str, seconds: float | None, minutes: float) -> list[Job]:
    count = max(1, math.ceil(seconds / (60 * minutes))) if seconds else 1
    return _shards(lane, session, count, None if seconds is None else round(seconds / 60 / count, 1))


def _shards(lane: Lane, session: str, count: int, each: float | None) -> list[Job]:
    return [
        Job(lane.name, session, f"{i}/{count}", lane.torch.version, lane.environment.name, lane.build.name, each)
        for i in range(1, count + 1)
    ]
