"""Commands on programs: `repro` writes a program; `hazard`, `huge`, `record` and `replay` run programs or calls."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from conformance.commands.edge import Mistake, backend_option, mistakes, need_directory, seed_option, timeout_option
from conformance.support.exit_codes import Exit
from conformance.vocabulary import DEFAULT_SEED


@click.command("repro")
@click.argument("case")
@backend_option
@seed_option("Seed of the random overloads, as in the run.", DEFAULT_SEED)
@click.option("--after", multiple=True, metavar="ID", help="A case or cell whose calls come first; may be repeated.")
@click.option(
    "--runs", type=click.IntRange(1), default=1, show_default=True,
    help="Processes that make the calls, until one differs.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; default: standard output."
)
def repro_(case: str, backend: str, seed: int, after: tuple[str, ...], runs: int, output: Path | None) -> None:
    """Write a script that repeats CASE with torch and the backend, without the suite."""
    from conformance import backends
    from conformance.commands.case_script import case_script
    from conformance.corpus.reader import CorpusError
    from conformance.plan.plan import Plan
    from conformance.plan.selection import Selection
    from conformance.records import Setting

    if output is not None:
        need_directory("--output", output)
    with mistakes(backends.BackendNotFound, CorpusError, LookupError, OSError):
        plan = Plan(backends.find(backend or backends.default()), Selection(), seed)
        text = case_script(plan, case, Setting(after, runs))
        if output is None:
            click.echo(text, nl=False)
        else:
            output.write_text(text, encoding="utf-8")


@click.command("hazard")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@backend_option
@click.option(
    "--rounds", type=click.IntRange(1), default=10, show_default=True, help="Schedules of each hazard: equal delays, "
    "then delays drawn from seeds. If the backend does not delay work: repetitions."
)  # fmt: skip
@seed_option("The first of the seeds.", 0, least=0)
@timeout_option(300.0, "a hazard")
@click.option("--list", "listed", is_flag=True, help="List the programs, and the dependency that each needs.")
def hazard_(names: tuple[str, ...], backend: str, rounds: int, seed: int, timeout: float, listed: bool) -> None:
    """Run programs that need one dependency between two calls while work is queued; without NAME, all of them.

    The exit code is 1 if one fails; else 2 if a requested one could not run, or none could.
    """
    from conformance import backends
    from conformance.hazards import runner

    if listed:
        for name in runner.names():
            click.echo(runner.described(name))
        return
    results = []
    with mistakes(backends.BackendNotFound, LookupError):
        found = backends.find(backend or backends.default())
        schedules = runner.rounds_of(found, rounds, seed)
        for name in names or runner.names():
            results.append(runner.run(name, found, schedules, timeout))
            click.echo(results[-1].text(), err=bool(results[-1].lacking))
    ran = [r for r in results if not r.lacking]
    failed = sum(bool(r.failure) for r in ran)
    click.echo(f"hazards: {len(ran)} run, {failed} failed, {len(results) - len(ran)} not run")
    if ran:
        click.echo(runner.confidence(found, rounds))
    sys.exit(_exit("hazard", len(ran), failed, len(results) if names else 1))


@click.command("huge")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@backend_option
@timeout_option(1800.0, "a program")
@click.option("--list", "listed", is_flag=True, help="List the programs and the memory that each needs.")
def huge_(names: tuple[str, ...], backend: str, timeout: float, listed: bool) -> None:
    """Run ops on tensors of more than 2^31 elements or 2^32 bytes, one at a time; without NAME, all that fit.

    The exit code is 1 if one fails; else 2 if a requested one could not run, or none could.
    """
    from conformance import backends
    from conformance.huge import runner

    if listed:
        for name in runner.names():
            click.echo(runner.needs(name))
        return
    results = []
    with mistakes(backends.BackendNotFound, LookupError):
        found = backends.find(backend or backends.default())
        for name in names or runner.names():
            results.append(runner.run(name, found, timeout))
            click.echo(results[-1].text())
    ran = [r for r in results if r.ran]
    failed = sum(r.failed for r in ran)
    click.echo(f"huge: {len(ran)} run, {failed} failed, {len(results) - len(ran)} not run")
    sys.exit(_exit("program", len(ran), failed, len(results) if names else 1))


def _exit(what: str, ran: int, failed: int, needed: int) -> Exit:
    """Return the exit code of programs. Raises Mistake if none failed and fewer than ``needed`` ran."""
    if failed:
        return Exit.CELLS_FAILED
    if not ran:
        raise Mistake(f"no {what} could run, so nothing was tried; see above")
    if ran < needed:
        raise Mistake(f"a requested {what} could not run; see above")
    return Exit.OK


@click.command("record", context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- python SCRIPT.py ...")
@backend_option
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), default=Path("calls.safetensors"),
    show_default=True, help="The file that the calls are written to.",
)  # fmt: skip
@click.option(
    "--largest", type=click.IntRange(0), default=1 << 20, show_default=True,
    help="Largest storage in bytes whose values are stored; a seed replaces a larger storage of floats.",
)  # fmt: skip
def record_(command: tuple[str, ...], backend: str, output: Path, largest: int) -> None:
    """Run a program and store its ATen calls on the device, for `replay`, `next` and `perf show`.

    Ctrl-C ends the program, and the calls before it are stored.
    """
    from conformance import backends
    from conformance.triage import run

    with mistakes(backends.BackendNotFound, ValueError):
        name = backend or backends.default()
        backends.find(name)
        python, program = run.program_of(command)
    need_directory("--output", output)
    arguments = [name, str(output), str(largest), "--", *program]
    before = _written_at(output)
    code = _ended([python, "-m", "conformance.calls.recording", *arguments])
    written = _written_at(output) != before  # a file of an earlier recording may be there
    click.echo(f"written to {output}" if written else f"nothing was written to {output}", err=True)
    sys.exit(code)


def _ended(command: Sequence[str]) -> Exit:
    """Run a command. After Ctrl-C it ends by itself, because it stores its calls first. A second Ctrl-C kills it."""
    with subprocess.Popen(command) as child:
        try:
            return Exit.CELLS_FAILED if child.wait() else Exit.OK
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)  # a terminal has sent it already, other senders may not
            try:
                child.wait()
            except KeyboardInterrupt:
                child.kill()
            return Exit.INTERRUPTED


def _written_at(file: Path) -> tuple[int, int] | None:
    """Return the identity of a file and the time of its last change, None if there is no file."""
    if not file.is_file():
        return None
    found = file.stat()
    return found.st_ino, found.st_mtime_ns


@click.command("replay")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@backend_option
@timeout_option(60.0, "a call")
def replay_(file: Path, backend: str, timeout: float) -> None:
    """Repeat the calls of FILE, written by `record`, on CPU and on the device, and compare each.

    The exit code is 1 if a call differs, and 2 if none could be compared.
    """
    from conformance import backends
    from conformance.calls import file as file_
    from conformance.calls.replay import replay

    with mistakes(backends.BackendNotFound, file_.CallsError):
        calls = file_.load(file)
        results = []
        for result in replay(calls, backends.find(backend or backends.default()), timeout):
            results.append(result)
            if result.failure:
                click.echo(result.text())
    failed, skipped = sum(bool(r.failure) for r in results), sum(bool(r.skipped) for r in results)
    equal = len(results) - failed - skipped
    click.echo(f"{len(results)} calls = {equal} equal to CPU + {failed} fail + {skipped} not comparable")
    for reason in sorted({f"{r.call.overload}: {r.skipped}" for r in results if r.skipped}):
        click.echo(f"  not comparable: {reason}")
    if not failed and not equal:
        raise Mistake(f"{file}: no call could be compared, so nothing is known of the backend")
    sys.exit(Exit.CELLS_FAILED if failed else Exit.OK)
