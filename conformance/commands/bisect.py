"""`bisect`: a search for the torch version or the backend's commit that first shows a failure, or that fixes it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import click

from conformance.bisect import record, report, slowness
from conformance.bisect.alone import alone
from conformance.bisect.perf_probe import PerfProbe
from conformance.bisect.places import Workshop
from conformance.bisect.points import PointError
from conformance.bisect.probes import CaseProbe, Probe, ScriptProbe
from conformance.bisect.processes import Processes
from conformance.bisect.record import Question, Record, RecordError
from conformance.bisect.search import Kind
from conformance.bisect.session import Session, found
from conformance.commands.bisect_question import Request, environment_of, matrix_of, question_of
from conformance.commands.edge import (
    Mistake,
    make_directory,
    mistakes,
    recorded_backend_option,
    seconds_option,
    seed_option,
    tell,
    timeout_option,
)
from conformance.perf.model import Size
from conformance.results import store
from conformance.support.exit_codes import Exit
from conformance.support.options import OptionError, one_of
from conformance.support.toml_table import TomlError
from conformance.vocabulary import CASE_ID, DEFAULT_SEED, DTYPES, CaseId

OUT = Path("bisect")


@click.command("bisect")
@click.argument("cases", nargs=-1, metavar="[CASE]...")
@click.option("--script", default="", metavar="CMD", help="Judge by a command's exit code: 0 passes, 125 skips.")
@click.option("--perf", is_flag=True, help="CASE is a case of `perf`, and fails where it is slower than at --good.")
@click.option(
    "--least", type=click.FloatRange(0), default=slowness.LEAST, show_default=True,
    help="With --perf: the least change that counts, as a fraction of the time.",
)  # fmt: skip
@seconds_option("--seconds-per-case", 1.0, "With --perf: the time that each process measures a case.")
@click.option(
    "--axis",
    type=click.Choice(["torch", "backend", "both"]),
    default="torch",
    show_default=True,
    help="The history to search: torch versions, commits of the backend, or both.",
)
@recorded_backend_option
@click.option("--matrix", type=click.Path(path_type=Path), help="Default: matrices/<backend>.toml, or the only one.")
@click.option("--environment", default="", metavar="NAME", help="The environment of the matrix to run in.")
@click.option("--good", default="", metavar="VERSION|DATE", help="A version that passes; for both axes: TORCH+COMMIT.")
@click.option(
    "--bad", default="", metavar="VERSION|DATE", help="A version that fails; default: from results, or the newest."
)
@click.option("--fixed", is_flag=True, help="Find the version that fixed it; --bad is older than --good.")
@click.option("--torch", default="", metavar="VERSION", help="With --axis backend: the torch to build against.")
@click.option("--commit", default="", metavar="REV", help="With --axis torch: the backend's commit.")
@click.option(
    "--repository",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    show_default=True,
    help="The git repository of the backend.",
)
@click.option("--build", default="", metavar="CMD", help="Run in each commit first; if it fails the commit is skipped.")
@click.option("--skip", multiple=True, metavar="VERSION", help="A version that cannot be tested; may be repeated.")
@click.option("--any-failure", is_flag=True, help="Any failure counts as the failure of the search.")
@click.option(
    "--rate",
    type=float,
    metavar="P",
    help="How often a bad version fails, if known: more than 0, at most 1. With 1, no run is repeated.",
)
@click.option(
    "--threshold",
    type=float,
    default=0.95,
    show_default=True,
    help="The confidence of the result: one version if it can be reached, else a range of versions.",
)
@click.option(
    "--tries",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Runs of the bad end until it fails, at most.",
)
@click.option("--most-runs", type=click.IntRange(1), default=200, show_default=True, help="Limit of runs for one case.")
@seed_option("Seed of the random overloads.", DEFAULT_SEED)
@timeout_option(600.0, "a run")
@click.option("--with", "extra", multiple=True, metavar="PACKAGE", help="Install this package too; may be repeated.")
@click.option(
    "--ahead", type=click.IntRange(0), default=1, show_default=True, help="Versions prepared in the background."
)
@click.option(
    "--keep", type=click.IntRange(0), default=3, show_default=True, help="Environments with torch to keep in the cache."
)
@click.option(
    "--cache", type=click.Path(file_okay=False, path_type=Path), help="Directory for environments and builds."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=OUT,
    show_default=True,
    help="The directory of the search and its report.",
)
@click.option("--resume", is_flag=True, help="Continue the search in --out.")
def bisect_(**options: Any) -> None:
    """Find the first version in which each CASE, or a script, fails. The search starts from stored results.

    With --perf, find the first version in which each CASE is slower than at --good, beyond the noise of both. CASE is
    then a case of `conformance perf`, e.g. 'mm[float32-medium]'.
    """
    request = Request(**options)
    with mistakes(PointError, RecordError, TomlError, OptionError, store.StoreError, ValueError, OSError):
        _check(request)
        kept = _carry_out(request, question_of(request))
        if request.axis == "both" and any(r.kind is Kind.RANGE and r.untested for r in found(kept).values()):
            click.echo("some versions cannot be tested; searching again, the backend's commits first", err=True)
            kept = _carry_out(request, question_of(request, torch_first=False), request.out / "backend-first")
    results = found(kept)
    click.echo(report.markdown(kept))
    named = all(results[case].kind in (Kind.CULPRIT, Kind.RANGE) for case in kept.question.cases)
    sys.exit(Exit.OK if named else Exit.CELLS_FAILED)


def _check(request: Request) -> None:
    """Raise Mistake or OptionError for options that do not belong together."""
    if bool(request.cases) == bool(request.script):
        raise Mistake("expected either CASEs or --script CMD")
    if request.perf:
        _check_perf(request)
    if request.rate is not None and not 0 < request.rate <= 1:
        raise Mistake(f"--rate: expected more than 0 and at most 1, got {request.rate:g}")
    if not 0.5 < request.threshold < 1:
        raise Mistake(f"--threshold: expected more than 0.5 and less than 1, got {request.threshold:g}")
    for case in request.cases:
        if not request.perf and CaseId.parse(case) is None:
            hint = "; with --perf it is a case of `conformance perf`" if slowness.parse(case) else ""
            raise Mistake(f"{case!r} is not a case's id; one looks like {CASE_ID}{hint}")
    if request.axis == "backend" and request.fixed and not request.bad:
        raise Mistake("--axis backend --fixed: expected --bad, a commit or date that still fails")
    if request.axis == "both" and not (request.good and request.bad):
        raise Mistake("--axis both: expected --good and --bad, each a torch and a commit, e.g. 2.8+v1.0")


def _check_perf(request: Request) -> None:
    """Raise Mistake or OptionError for a search with --perf that cannot be made."""
    if request.script:
        raise Mistake("--perf: expected CASEs of `conformance perf`, not --script")
    if not request.good:
        raise Mistake("--perf: expected --good, the version whose times the others are compared with")
    known = _overloads()
    for case in request.cases:
        parts = slowness.parse(case)
        if parts is None:
            raise Mistake(f"{case!r} is not a case of `conformance perf`; one looks like mm[float32-medium]")
        one_of("--perf", "overload", parts[0], known, "conformance inventory")
        one_of("--perf", "dtype", parts[1], DTYPES)
        one_of("--perf", "size", parts[2], [s.value for s in Size])


def _overloads() -> Sequence[str]:
    """Return the overloads that have samples."""
    from conformance.corpus import reader

    return reader.load(generated=False).overloads


def _carry_out(request: Request, question: Question, out: Path | None = None) -> Record:
    """Run the search and return its record. If it is interrupted, print the command that continues it."""
    out = out or request.out
    make_directory("--out", out)
    kept = _kept(request, question, out / record.STATE)
    processes = Processes()
    workshop = _workshop(request, question, processes)
    probe = _probe(request, question, processes, workshop)
    ahead = 0 if request.perf else request.ahead  # a build would disturb the times
    session = Session(kept, probe, workshop, out / record.STATE, tell, ahead)
    # CI stops a job with SIGTERM. As after Ctrl-C, compilers and worktrees must not be left behind.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    prepares = any(point.torch for point in question.points)  # else only worktrees are made, which searches share
    try:
        with alone(workshop.cache) if prepares else nullcontext():
            session.run()
    except KeyboardInterrupt:
        click.echo(f"interrupted after {len(kept.runs)} runs; to continue: {_resume(kept)}", err=True)
        sys.exit(Exit.INTERRUPTED)
    finally:
        signal.signal(signal.SIGTERM, before)
    (out / "report.md").write_text(report.markdown(kept), encoding="utf-8")
    (out / "result.json").write_text(report.as_json(kept), encoding="utf-8")
    return kept


def _kept(request: Request, question: Question, file: Path) -> Record:
    """Return the record to continue, or a new record.

    Raises RecordError if the stored record cannot be read. Raises Mistake if it belongs to another search, or if it is
    unfinished and --resume is not given.
    """
    if not request.resume:
        if file.is_file() and (old := record.load(file)).runs and len(found(old)) < len(old.question.cases):
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
    """Return the command that continues a search."""
    command = kept.question.command
    return command if "--resume" in shlex.split(command) else f"{command} --resume"


def _probe(request: Request, question: Question, processes: Processes, workshop: Workshop) -> Probe:
    """Return the probe that decides whether a version is good."""
    variables = environment_of(request, matrix_of(request))
    if question.perf:
        assert question.good is not None  # _check_perf
        good_end = partial(workshop.make, question.points[question.good])
        return PerfProbe(
            processes, question.backend, good_end, request.timeout, variables, request.least, request.seconds_per_case
        )
    if question.script:
        return ScriptProbe(processes, request.timeout, variables)
    return CaseProbe(processes, question.backend, request.seed, request.timeout, variables, question.corpus)


def _workshop(request: Request, question: Question, processes: Processes) -> Workshop:
    """Return the workshop that makes the environments and builds of the versions."""
    lanes, cache = matrix_of(request), (request.cache or _cache()).resolve()
    make_directory("--cache", cache)
    own = lanes is not None and question.backend == lanes.backend
    return Workshop(
        cache=cache, processes=processes, repository=request.repository.resolve(),
        project=lanes.project if lanes and own else "", suite=not question.script, build=request.build,
        extra=request.extra, keep=max(request.keep, request.ahead + 2 + request.perf),  # the good end, too
    )  # fmt: skip


def _cache() -> Path:
    """Return the default of --cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "op-conformance" / "bisect"
