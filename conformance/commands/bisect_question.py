"""The question that the options of `bisect` ask: the versions to search, and the ends of the search."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TypeVar

import click

from conformance.bisect import ends, points
from conformance.bisect.points import Point
from conformance.bisect.record import Question
from conformance.commands.edge import RESULTS, Mistake
from conformance.lanes import matrix as matrix_
from conformance.support.options import one_of

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """The options of the command."""

    cases: tuple[str, ...]
    script: str
    perf: bool
    least: float
    seconds_per_case: float
    axis: str
    backend: str
    matrix: Path | None
    environment: str
    good: str
    bad: str
    fixed: bool
    torch: str
    commit: str
    repository: Path
    build: str
    skip: tuple[str, ...]
    any_failure: bool
    rate: float | None
    threshold: float
    tries: int
    most_runs: int
    seed: int
    timeout: float
    extra: tuple[str, ...]
    ahead: int
    keep: int
    cache: Path | None
    out: Path
    resume: bool


def question_of(request: Request, torch_first: bool = True) -> Question:
    """Return the question of a request. If no option gives an end, it comes from stored results.

    ``torch_first``: with ``--axis both``, whether the search goes through the torch versions before the commits. Raises
    Mistake, PointError, TomlError or StoreError if the options do not say what to search.
    """
    lanes = matrix_of(request)
    found_ = _line(request, lanes, torch_first)
    line, good, bad = found_.points, found_.good, found_.bad
    if good is None and request.cases and not request.fixed:
        good, bad = _from_results(request, _backend(request, lanes), line, bad)
    if bad is None:
        bad = 0 if request.fixed else len(line) - 1
    older, newer = (bad, good) if request.fixed else (good, bad)
    if older is not None and newer is not None and older >= newer:
        hint = "" if request.fixed else "; to find the version that fixed a failure, give --fixed"
        raise Mistake(f"{line[older].name} is not older than {line[newer].name}{hint}")
    return Question(
        axis=request.axis, cases=request.cases or (request.script,), script=bool(request.script), points=tuple(line),
        good=good, bad=bad, fixed=request.fixed, any_failure=request.any_failure,
        rate=1.0 if request.perf and request.rate is None else request.rate, perf=request.perf,
        least=request.least if request.perf else 0.0,
        threshold=request.threshold, tries=request.tries, most_runs=request.most_runs, backend=_backend(request, lanes),
        corpus="" if request.script else _corpus(), skip=_skipped(request, line),
        command=shlex.join(["conformance", *sys.argv[1:]]),
    )  # fmt: skip


def _skipped(request: Request, line: Sequence[Point]) -> tuple[int, ...]:
    """Return the indices of the versions that --skip names."""
    return tuple(sorted(points.index_of(line, name) for name in request.skip))


@dataclass(frozen=True)
class _Line:
    """The points to search, the oldest first, and the indices of the ends, None for an end that no option gives."""

    points: list[Point]
    good: int | None
    bad: int | None


def _line(request: Request, lanes: matrix_.Matrix | None, torch_first: bool) -> _Line:
    """Return the points on the axis of the search."""
    torches = points.of_torches(lanes.torches) if lanes else []
    project = "" if request.script or lanes is None else lanes.project
    if request.axis == "torch":
        return _torch_line(request, torches)
    if request.axis == "backend":
        return _commit_line(request, torches, project)
    return _crossed_line(request, torches, project, torch_first)


def _torch_line(request: Request, torches: list[Point]) -> _Line:
    if not torches:
        raise Mistake("--axis torch: no matrix lists torch versions; expected --matrix FILE")
    if request.commit:
        commit = points.commit(request.repository, request.commit)
        torches = [replace(p, commit=commit) for p in torches]
    good, bad = (points.index_of(torches, name) if name else None for name in (request.good, request.bad))
    return _Line(torches, good, bad)


def _commit_line(request: Request, torches: Sequence[Point], project: str) -> _Line:
    older, newer = _by_age(request, request.good, request.bad)
    commits = points.of_commits(request.repository, older, newer or "HEAD", project)
    line = [_with_torch(p, request.torch, torches, project) for p in commits]
    return _Line(line, *_by_age(request, 0 if older else None, len(line) - 1 if newer else None))


def _crossed_line(request: Request, torches: list[Point], project: str, torch_first: bool) -> _Line:
    good, bad = _crossed_end("--good", request.good, torches), _crossed_end("--bad", request.bad, torches)
    (older, start), (newer, stop) = _by_age(request, good, bad)
    commits = points.of_commits(request.repository, older, newer, project)
    way = torches[start : stop + 1] if start <= stop else torches[stop : start + 1][::-1]
    line = points.crossed(way, commits, torch_first)
    return _Line(line, *_by_age(request, 0, len(line) - 1))


def _by_age(request: Request, one: T, other: T) -> tuple[T, T]:
    """Return (good, bad) as (older, newer), or (older, newer) as (good, bad). With --fixed, the good end is newer."""
    return (other, one) if request.fixed else (one, other)


def _from_results(
    request: Request, backend: str, line: Sequence[Point], bad: int | None
) -> tuple[int | None, int | None]:  # fmt: skip
    """Return the ends from stored results, and print them. ``bad``: the bad end, if an option gives it."""
    found, left_out = ends.recorded(RESULTS, request.cases, backend, request.environment)
    for what in left_out:
        click.echo(f"left out: {what}", err=True)
    good, bad = ends.from_runs(found, request.cases, line).bounds(bad)
    named = [f"{word} {line[i].name}" for word, i in (("passes at", good), ("fails at", bad)) if i is not None]
    if named and not request.bad:
        click.echo(f"results in {RESULTS}/: {', '.join(named)}", err=True)
    return good, bad


def _crossed_end(option: str, given: str, torches: Sequence[Point]) -> tuple[str, int]:
    """Return the commit and the index of the torch version of an end on both axes."""
    torch, plus, commit = given.partition("+")
    if not plus or not torches:
        raise Mistake(f"{option} {given}: with --axis both an end is a torch and a commit, e.g. 2.8+v1.0")
    return commit, points.index_of(torches, torch)


def _with_torch(point: Point, torch: str, torches: Sequence[Point], project: str) -> Point:
    """Return a commit with the torch that it is built against, by default the installed version.

    Without ``torch`` and ``project``, as for a script, return ``point`` itself. Raises Mistake or PointError.
    """
    if not torch and not project:
        return point
    if not torch:
        return replace(point, torch=f"torch=={_torch_here()}")
    found = torches[points.index_of(torches, torch)]
    return replace(point, torch=found.torch, index=found.index)


def _torch_here() -> str:
    """Return the version of the installed torch, e.g. ``2.8.0``."""
    try:
        return metadata.version("torch").partition("+")[0]
    except metadata.PackageNotFoundError:
        raise Mistake("--axis backend: torch is not installed here; expected --torch VERSION") from None


def matrix_of(request: Request) -> matrix_.Matrix | None:
    """Return the matrix of --matrix, else of the backend, else the only matrix, else None. Raises TomlError."""
    if request.matrix:
        return matrix_.load(request.matrix)
    known = {m.backend: m for m in matrix_.load_all(Path("matrices"))}
    if request.backend in known:
        return known[request.backend]
    return next(iter(known.values())) if len(known) == 1 else None


def _backend(request: Request, lanes: matrix_.Matrix | None) -> str:
    """Return the backend as ``--backend`` takes it, "" for a script without a backend. Raises Mistake."""
    if request.backend or request.script:
        return request.backend
    if lanes is None:
        raise Mistake("expected --backend NAME, or a matrix that names one")
    return lanes.backend


def environment_of(request: Request, lanes: matrix_.Matrix | None) -> tuple[tuple[str, str], ...]:
    """Return the variables of the environment that --environment names. Raises OptionError for an unknown name."""
    if not request.environment:
        return ()
    known = {e.name: e.variables for e in lanes.environments} if lanes else {}
    return known[one_of("--environment", "environment", request.environment, known)]


def _corpus() -> str:
    """Return the hash of the installed corpus."""
    from conformance.corpus import reader

    return reader.load().hash
