"""`bisect`: finds the torch version or the backend's commit that first shows a failure, or that fixed it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from conformance.bisect import ends, points, record, report, slowness
from conformance.bisect.environments import NoRoom
from conformance.bisect.perf_probe import PerfProbe
from conformance.bisect.places import Workshop
from conformance.bisect.points import Point, PointError
from conformance.bisect.probes import CaseProbe, Probe, ScriptProbe
from conformance.bisect.processes import Processes
from conformance.bisect.record import Question, Record, RecordError
from conformance.bisect.search import Kind
from conformance.bisect.session import Session, found
from conformance.commands.edge import RESULTS, Mistake, backend_option, mistakes
from conformance.lanes import matrix as matrix_
from conformance.perf.model import Size
from conformance.results import store
from conformance.support.exit_codes import Exit
from conformance.support.options import OptionError, names, one_of, seconds
from conformance.support.toml_table import TomlError
from conformance.vocabulary import CASE_ID, DEFAULT_SEED, DTYPES, CaseId

OUT = Path("bisect")
T = TypeVar("T")


@dataclass(frozen=True)
class Asked:
    """The command's options."""

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


@click.command("bisect")
@click.argument("cases", nargs=-1, metavar="[CASE]...")
@click.option("--script", default="", metavar="CMD", help="Judge by a command's exit code: 0 passes, 125 skips.")
@click.option("--perf", is_flag=True, help="CASE is a case of `perf`, and fails where it is slower than at --good.")
@click.option(
    "--least", type=click.FloatRange(0), default=slowness.LEAST, show_default=True,
    help="With --perf: the least change, as a part of the time.",
)  # fmt: skip
@click.option("--seconds-per-case", type=float, default=1.0, show_default=True, help="With --perf: of each process.")
@click.option("--axis", type=click.Choice(["torch", "backend", "both"]), default="torch", show_default=True)
@backend_option
@click.option("--matrix", type=click.Path(path_type=Path), help="Default: matrices/<backend>.toml, or the only one.")
@click.option("--environment", default="", metavar="NAME", help="The environment of the matrix to run in.")
@click.option("--good", default="", metavar="VERSION|DATE", help="A version that passes; for both axes: TORCH+COMMIT.")
@click.option(
    "--bad", default="", metavar="VERSION|DATE", help="A version that fails; default: from results, or the newest."
)
@click.option("--fixed", is_flag=True, help="Find the version that fixed it; --bad is older than --good.")
@click.option("--torch", default="", metavar="VERSION", help="With --axis backend: the torch to build against.")
@click.option("--commit", default="", metavar="REV", help="With --axis torch: the backend's commit.")
@click.option("--repository", type=click.Path(file_okay=False, path_type=Path), default=Path(), show_default=True)
@click.option("--build", default="", metavar="CMD", help="Run in each commit first; if it fails the commit is skipped.")
@click.option("--skip", multiple=True, metavar="VERSION", help="A version that cannot be tested; may be repeated.")
@click.option("--any-failure", is_flag=True, help="Any failure counts as the failure of the search.")
@click.option("--rate", type=float, metavar="P", help="Known rate of the failure; 1 avoids repetitions.")
@click.option("--threshold", type=float, default=0.95, show_default=True, help="Lower confidence gives a range.")
@click.option("--tries", type=int, default=10, show_default=True, help="Most runs of a bad end that passes.")
@click.option("--most-runs", type=int, default=200, show_default=True, help="Limit of runs for one case.")
@click.option("--seed", type=int, default=DEFAULT_SEED, show_default=True, help="Seed of the random overloads.")
@click.option("--timeout", type=float, default=600.0, show_default=True, help="Seconds a run may take.")
@click.option("--with", "extra", multiple=True, metavar="PACKAGE", help="Install this package too; may be repeated.")
@click.option("--ahead", type=int, default=1, show_default=True, help="Versions prepared in the background.")
@click.option("--keep", type=int, default=3, show_default=True, help="Environments with torch to keep in the cache.")
@click.option(
    "--cache", type=click.Path(file_okay=False, path_type=Path), help="Directory for environments and builds."
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=OUT, show_default=True)
@click.option("--resume", is_flag=True, help="Continue the search in --out.")
def bisect_(**options: Any) -> None:
    """Find the first version in which each CASE, or a script, fails. The search starts from stored results.

    With --perf, find the first version in which each CASE is slower than at --good, beyond the noise of both. CASE is
    then a case of `conformance perf`, e.g. 'mm[float32-medium]'.
    """
    asked = Asked(**options)
    with mistakes(PointError, RecordError, TomlError, OptionError, store.StoreError, NoRoom, ValueError):
        _check(asked)
        kept = _carry_out(asked, _question(asked))
        if asked.axis == "both" and any(r.kind is Kind.RANGE and r.untested for r in found(kept).values()):
            click.echo("some versions cannot be tested; searching again, the backend's commits first", err=True)
            kept = _carry_out(asked, _question(asked, torch_first=False), asked.out / "backend-first")
    results = found(kept)
    click.echo(report.markdown(kept))
    named = all(results[case].kind in (Kind.CULPRIT, Kind.RANGE) for case in kept.question.cases)
    sys.exit(Exit.OK if named else Exit.CELLS_FAILED)


def _check(asked: Asked) -> None:
    if bool(asked.cases) == bool(asked.script):
        raise Mistake("expected either CASEs or --script CMD")
    if asked.perf:
        _check_perf(asked)
    for case in asked.cases:
        if not asked.perf and CaseId.parse(case) is None:
            hint = "; with --perf it is a case of `conformance perf`" if slowness.parse(case) else ""
            raise Mistake(f"{case!r} is not a case's id; one looks like {CASE_ID}{hint}")
    if asked.axis == "backend" and asked.fixed and not asked.bad:
        raise Mistake("--axis backend --fixed: expected --bad, a commit or date that still fails")
    if asked.axis == "both" and not (asked.good and asked.bad):
        raise Mistake("--axis both: expected --good and --bad, each a torch and a commit, e.g. 2.8+v1.0")
    if not asked.timeout > 0:
        raise Mistake(f"--timeout: expected a positive number of seconds, got {asked.timeout:g}")


def _check_perf(asked: Asked) -> None:
    """Raise Mistake or OptionError for a search with --perf that cannot be made."""
    if asked.script:
        raise Mistake("--perf: expected CASEs of `conformance perf`, not --script")
    if not asked.good:
        raise Mistake("--perf: expected --good, the version whose times the others are compared with")
    seconds("--seconds-per-case", asked.seconds_per_case)
    known = _overloads()
    for case in asked.cases:
        parts = slowness.parse(case)
        if parts is None:
            raise Mistake(f"{case!r} is not a case of `conformance perf`; one looks like mm[float32-medium]")
        one_of("--perf", "overload", parts[0], known)
        one_of("--perf", "dtype", parts[1], DTYPES)
        one_of("--perf", "size", parts[2], [s.value for s in Size])


def _overloads() -> Sequence[str]:
    """Return the overloads that have samples."""
    from conformance.corpus import reader

    return reader.load(generated=False).overloads


# What is asked ------------------------------------------------------------------------------------------------------


def _question(asked: Asked, torch_first: bool = True) -> Question:
    lanes = _matrix(asked)
    found_ = _line(asked, lanes, torch_first)
    line, good, bad = found_.points, found_.good, found_.bad
    if good is None and asked.cases and not asked.fixed:
        good, bad = _from_results(asked, _backend(asked, lanes), line, bad)
    if bad is None:
        bad = 0 if asked.fixed else len(line) - 1
    older, newer = (bad, good) if asked.fixed else (good, bad)
    if older is not None and newer is not None and older >= newer:
        raise Mistake(f"{line[older].name} is not older than {line[newer].name}" + _hint(asked))
    return Question(
        axis=asked.axis, cases=asked.cases or (asked.script,), script=bool(asked.script), points=tuple(line),
        good=good, bad=bad, fixed=asked.fixed, any_failure=asked.any_failure,
        rate=1.0 if asked.perf and asked.rate is None else asked.rate, perf=asked.perf,
        least=asked.least if asked.perf else 0.0,
        threshold=asked.threshold, tries=asked.tries, most_runs=asked.most_runs, backend=_backend(asked, lanes),
        corpus="" if asked.script else _corpus(), skip=_skipped(asked, line),
        command=shlex.join(["conformance", *sys.argv[1:]]),
    )  # fmt: skip


def _skipped(asked: Asked, line: Sequence[Point]) -> tuple[int, ...]:
    return tuple(sorted(points.index_of(line, name) for name in asked.skip))


def _hint(asked: Asked) -> str:
    return "" if asked.fixed else "; to find the version that fixed a failure, give --fixed"


@dataclass(frozen=True)
class _Line:
    """The points to search, the oldest first, and the indices of the ends; an end that no option gives is None."""

    points: list[Point]
    good: int | None
    bad: int | None


def _line(asked: Asked, lanes: matrix_.Matrix | None, torch_first: bool) -> _Line:
    torches = points.of_torches(lanes.torches) if lanes else []
    project = "" if asked.script or lanes is None else lanes.project
    if asked.axis == "torch":
        return _torch_line(asked, torches)
    if asked.axis == "backend":
        return _commit_line(asked, torches, project)
    return _crossed_line(asked, torches, project, torch_first)


def _torch_line(asked: Asked, torches: list[Point]) -> _Line:
    if not torches:
        raise Mistake("--axis torch: no matrix lists torch versions; expected --matrix FILE")
    if asked.commit:
        commit = points.commit(asked.repository, asked.commit)
        torches = [replace(p, commit=commit) for p in torches]
    good, bad = (points.index_of(torches, name) if name else None for name in (asked.good, asked.bad))
    return _Line(torches, good, bad)


def _commit_line(asked: Asked, torches: Sequence[Point], project: str) -> _Line:
    older, newer = _by_age(asked, asked.good, asked.bad)
    commits = points.of_commits(asked.repository, older, newer or "HEAD", project)
    line = [_with_torch(p, asked.torch, torches, project) for p in commits]
    return _Line(line, *_by_age(asked, 0 if older else None, len(line) - 1 if newer else None))


def _crossed_line(asked: Asked, torches: list[Point], project: str, torch_first: bool) -> _Line:
    ends_ = _both("--good", asked.good, torches), _both("--bad", asked.bad, torches)
    (older, start), (newer, stop) = _by_age(asked, *ends_)
    commits = points.of_commits(asked.repository, older, newer, project)
    way = torches[start : stop + 1] if start <= stop else torches[stop : start + 1][::-1]
    line = points.crossed(way, commits, torch_first)
    return _Line(line, *_by_age(asked, 0, len(line) - 1))


def _by_age(asked: Asked, one: T, other: T) -> tuple[T, T]:
    """Return (good, bad) as (older, newer), or the inverse: with --fixed the good end is the newer one."""
    return (other, one) if asked.fixed else (one, other)


def _from_results(
    asked: Asked, backend: str, line: Sequence[Point], bad: int | None
) -> tuple[int | None, int | None]:  # fmt: skip
    """Return the ends from stored results, and print them. A given bad end stays."""
    found, left_out = ends.recorded(RESULTS, asked.cases, backend, asked.environment)
    for what in left_out:
        click.echo(f"left out: {what}", err=True)
    good, bad = ends.from_runs(found, asked.cases, line).bounds(bad)
    named = [f"{word} {line[i].name}" for word, i in (("passes at", good), ("fails at", bad)) if i is not None]
    if named and not asked.bad:
        click.echo(f"results in {RESULTS}/: {', '.join(named)}", err=True)
    return good, bad


def _both(option: str, given: str, torches: Sequence[Point]) -> tuple[str, int]:
    """Return the commit and the index of the torch version of an end on both axes."""
    torch, plus, commit = given.partition("+")
    if not plus or not torches:
        raise Mistake(f"{option} {given}: with --axis both an end is a torch and a commit, e.g. 2.8+v1.0")
    return commit, points.index_of(torches, torch)


def _with_torch(point: Point, torch: str, torches: Sequence[Point], project: str) -> Point:
    """Return a commit with the torch that it is built against. A script uses the installed torch."""
    if not torch and not project:
        return point
    if not torch:
        return replace(point, torch=f"torch=={_torch_here()}")
    found = torches[points.index_of(torches, torch)]
    return replace(point, torch=found.torch, index=found.index)


def _torch_here() -> str:
    from importlib import metadata

    try:
        return metadata.version("torch").partition("+")[0]
    except metadata.PackageNotFoundError:
        raise Mistake("--axis backend: torch is not installed here; expected --torch VERSION") from None


def _matrix(asked: Asked) -> matrix_.Matrix | None:
    if asked.matrix:
        return matrix_.load(asked.matrix)
    known = {m.backend: m for m in matrix_.load_all(Path("matrices"))}
    if asked.backend in known:
        return known[asked.backend]
    return next(iter(known.values())) if len(known) == 1 else None


def _backend(asked: Asked, lanes: matrix_.Matrix | None) -> str:
    """Return the backend as ``--backend`` takes it, "" for a script without one."""
    if asked.backend or asked.script:
        return asked.backend
    if lanes is None:
        raise Mistake("expected --backend NAME, or a matrix that names one")
    return lanes.backend


def _environment(asked: Asked, lanes: matrix_.Matrix | None) -> tuple[tuple[str, str], ...]:
    if not asked.environment:
        return ()
    known = {e.name: e.variables for e in lanes.environments} if lanes else {}
    chosen = names("--environment", "environment", asked.environment, known) or frozenset()
    return known[next(iter(chosen))]


def _corpus() -> str:
    from conformance.corpus import reader

    return reader.load().hash


# Carrying it out ----------------------------------------------------------------------------------------------------


def _carry_out(asked: Asked, question: Question, out: Path | None = None) -> Record:
    """Run the search and return its record. If it is interrupted, print the command that continues it."""
    out = out or asked.out
    kept = _kept(asked, question, out / record.STATE)
    processes = Processes()
    workshop = _workshop(asked, question, processes)
    session = Session(
        kept, _probe(asked, question, processes, workshop), workshop, out / record.STATE,
        lambda line: click.echo(line, err=True), 0 if asked.perf else asked.ahead,  # a build would disturb the times
    )  # fmt: skip
    # CI stops a job with SIGTERM. Compilers and worktrees must not be left behind then.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        session.run()
    except KeyboardInterrupt:
        click.echo(f"interrupted after {len(kept.runs)} runs; to continue: {_resume(kept)}", err=True)
        sys.exit(Exit.INTERRUPTED)
    finally:
        signal.signal(signal.SIGTERM, before)
    (out / "report.md").write_text(report.markdown(kept), encoding="utf-8")
    (out / "result.json").write_text(report.as_json(kept), encoding="utf-8")
    return kept


def _kept(asked: Asked, question: Question, file: Path) -> Record:
    """Return the record to continue, or a new one. Raises RecordError or Mistake if it is another search's."""
    if not asked.resume:
        if file.is_file() and len(found(old := record.load(file))) < len(old.question.cases):
            raise Mistake(f"{file}: holds an unfinished search; expected --resume, or another --out")
        return Record(question)
    kept = record.load(file)
    if not record.same(kept.question, question):
        raise Mistake(f"{file}: holds another search: {kept.question.command}")
    kept.question = question
    for point in [p for p, place in kept.places.items() if place.unusable]:
        del kept.places[point]  # it may be possible to build it now
    return kept


def _resume(kept: Record) -> str:
    command = kept.question.command
    return command if "--resume" in shlex.split(command) else f"{command} --resume"


def _probe(asked: Asked, question: Question, processes: Processes, workshop: Workshop) -> Probe:
    variables = _environment(asked, _matrix(asked))
    if question.perf:
        assert question.good is not None  # _check_perf
        good_end = partial(workshop.make, question.points[question.good])
        return PerfProbe(
            processes, question.backend, good_end, asked.timeout, variables, asked.least, asked.seconds_per_case
        )
    if question.script:
        return ScriptProbe(processes, asked.timeout, variables)
    return CaseProbe(processes, question.backend, asked.seed, asked.timeout, variables, question.corpus)


def _workshop(asked: Asked, question: Question, processes: Processes) -> Workshop:
    lanes = _matrix(asked)
    own = lanes is not None and question.backend == lanes.backend
    return Workshop(
        cache=(asked.cache or _cache()).resolve(), processes=processes, repository=asked.repository.resolve(),
        project=lanes.project if lanes and own else "", suite=not question.script, build=asked.build,
        extra=asked.extra, keep=max(asked.keep, asked.ahead + 2 + asked.perf),  # the good end stays, too
    )  # fmt: skip


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "op-conformance" / "bisect"
