"""The command line: arguments in, text and exit codes out; what it prints, other modules know.

torch is loaded only by the commands that need it: summaries and expectations can be read where it is not installed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance import expectations, options, store, summary
from conformance.exit_codes import Exit
from conformance.near import unknown
from conformance.toml_table import TomlError
from conformance.vocabulary import Route

if TYPE_CHECKING:
    from conformance.inventory import Overload

RESULTS = Path("results")
EXPECTED = Path("matrices/expected")


class Mistake(click.ClickException):
    """The user's: one line, exit code 2, no traceback."""

    exit_code = Exit.INTERRUPTED


class Commands(click.Group):
    """A group that answers an unknown command with the names near it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise Mistake(unknown("command", args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


def main() -> None:
    """The ``conformance`` command."""
    try:
        commands()
    except ModuleNotFoundError as e:
        if e.name != "torch":
            raise
        click.echo("Error: torch is not installed in this environment; this command needs it, and a backend", err=True)
        sys.exit(Mistake.exit_code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def commands() -> None:
    """Op conformance of a PyTorch device backend. The matrix itself runs as: pytest --pyargs conformance."""


@commands.command("inventory")
@click.option("--backend", default="", metavar="NAME", help="An installed backend, or module:device.")
@click.option("--route", type=click.Choice([r.value for r in Route]), help="Only overloads served in this way.")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option(
    "-k", "pattern", default="", metavar="PATTERN", help="Only names that hold this text or match this pattern."
)
def inventory_(backend: str, route: str | None, form: str, pattern: str) -> None:
    """List every aten overload of this torch, and how the backend serves it."""
    from conformance import inventory_text

    overloads = _overloads(backend)
    found = _matching(pattern, [o.name for o in overloads])
    chosen = [o for o in overloads if o.name in found and (route is None or o.route.value == route)]
    click.echo(inventory_text.as_json(chosen) if form == "json" else inventory_text.table(chosen))


@commands.group(cls=Commands)
def corpus() -> None:
    """The samples: build them, or look at them."""


@corpus.command("build")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Where to; default: the installed package."
)
def corpus_build(out: Path | None) -> None:
    """Record, derive, check and write the samples, on this machine's CPU; takes minutes."""
    from conformance.corpus import build, reader

    with _mistakes(reader.CorpusError, OSError):
        built = build.build(out or reader.DATA, lambda step: click.echo(step, err=True))
    click.echo(built.summary())


@corpus.command("show")
@click.argument("overload", default="")
@click.option(
    "--from", "source", type=click.Path(exists=True, path_type=Path), help="A directory; default: the installed one."
)
def corpus_show(overload: str, source: Path | None) -> None:
    """Print what the corpus holds; with OVERLOAD (a name or a pattern), its samples."""
    from conformance.corpus import reader

    with _mistakes(reader.CorpusError):
        found = reader.load(source)
        if not overload:
            total = sum(len(found.samples(name)) for name in found.overloads)
            counts = f"{len(found.overloads)} overloads, {total} samples"
            click.echo(f"corpus {found.hash[:12]}, built on torch {found.torch}: {counts}")
            return
        for name in sorted(_matching(overload, found.overloads)):
            for sample in found.samples(name):
                click.echo(_sample_line(sample))


@commands.command("repro")
@click.argument("case")
@click.option("--backend", default="", metavar="NAME", help="An installed backend, or module:device.")
@click.option("--seed", type=int, default=20, show_default=True, help="Of the random overloads, as given to the run.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; default: standard output."
)
def repro_(case: str, backend: str, seed: int, output: Path | None) -> None:
    """Write a script that repeats CASE with torch and the backend alone."""
    from conformance import backends, repro
    from conformance.corpus.reader import CorpusError
    from conformance.suite import Selection, Suite

    with _mistakes(backends.BackendNotFound, CorpusError, LookupError, OSError):
        suite = Suite(backends.find(backend or backends.default()), Selection(), seed)
        text = repro.script(suite, repro.find(suite, case), seed)
        if output is None:
            click.echo(text, nl=False)
        else:
            output.write_text(text, encoding="utf-8")


@commands.command("scenario")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--backend", default="", metavar="NAME", help="An installed backend, or module:device.")
@click.option("--timeout", type=float, default=300.0, show_default=True, help="Seconds a scenario may take.")
def scenario_(names: tuple[str, ...], backend: str, timeout: float) -> None:
    """Run whole scenarios on CPU and on the device, and compare; without a NAME, all of them."""
    from conformance import backends
    from conformance.scenarios import runner

    with _mistakes(backends.BackendNotFound, LookupError):
        found = backends.find(backend or backends.default())
        lacking = {name: runner.lacking(name) for name in names or runner.names()}
        results = []
        for name, needs in lacking.items():
            if needs:
                click.echo(f"{name}: NOT RUN: {needs} is not installed", err=True)
                continue
            results.append(runner.run(name, found, timeout))
            click.echo(results[-1].text())
    if any(lacking.values()) and names:
        raise Mistake("what was asked for could not be run")
    sys.exit(Exit.CELLS_FAILED if any(r.failure for r in results) else Exit.OK)


@commands.command("record", context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- python SCRIPT.py ...")
@click.option("--backend", default="", metavar="NAME", help="An installed backend, or module:device.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), default=Path("calls.safetensors"))
@click.option(
    "--largest", type=int, default=1 << 20, show_default=True, help="Bytes of a storage that is kept as values; a seed "
    "stands for a larger one of floats."
)  # fmt: skip
def record_(command: tuple[str, ...], backend: str, output: Path, largest: int) -> None:
    """Run a program and keep its ATen calls on the device as samples, to be judged again with `replay`."""
    from conformance import backends
    from conformance.triage import run

    with _mistakes(backends.BackendNotFound, ValueError):
        name = backend or backends.default()
        backends.find(name)
        python, program = run.interpreter(command)
    arguments = [name, str(output), str(largest), "--", *program]
    ended = subprocess.run([python, "-m", "conformance.calls.recording", *arguments], check=False)
    click.echo(f"written to {output}" if output.is_file() else f"nothing was written to {output}", err=True)
    sys.exit(Exit.OK if ended.returncode == 0 else Exit.CELLS_FAILED)


@commands.command("replay")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--backend", default="", metavar="NAME", help="An installed backend, or module:device.")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds a call may take.")
def replay_(file: Path, backend: str, timeout: float) -> None:
    """Make the calls of FILE, written by `record`, again on CPU and on the device, and compare each."""
    from conformance import backends
    from conformance.calls import file as file_
    from conformance.calls.replay import replay

    with _mistakes(backends.BackendNotFound, file_.CallsError):
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
    sys.exit(Exit.CELLS_FAILED if failed else Exit.OK)


@commands.command("triage", context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="CASE | -- python SCRIPT.py ...")
@click.option("--backend", default="", metavar="NAME", help="An installed backend, or module:device.")
@click.option(
    "--matrix", "file", type=click.Path(path_type=Path), help="The lanes; default: matrices/<backend>.toml, if there."
)
@click.option("--lanes", default="", metavar="A,B", help="Only these lanes, next to the program as it is.")
@click.option(
    "--python", "pythons", multiple=True, metavar="PATH", help="Another torch's interpreter; may be repeated."
)
@click.option("--timeout", type=float, default=300.0, show_default=True, help="Seconds a run may take.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("triage"), show_default=True)
def triage_(
    command: tuple[str, ...], backend: str, file: Path | None, lanes: str, pythons: tuple[str, ...], timeout: float,
    out: Path,
) -> None:  # fmt: skip
    """Find the first op of a program, or of a failing CASE, that goes wrong on the device; say why; write a script."""
    from conformance import backends
    from conformance.corpus.reader import CorpusError
    from conformance.triage import lanes as lanes_
    from conformance.triage import report, run

    with _mistakes(backends.BackendNotFound, CorpusError, LookupError, TomlError, ValueError, OSError):
        name = backend or backends.default()
        found = backends.find(name)
        if len(command) == 1 and "::" in command[0]:
            command = (str(_case_script(command[0], found, out)),)
        python, program = run.interpreter(command)
        if program[0] != "-m" and not Path(program[0]).is_file():
            raise Mistake(f"no script {program[0]}")
        everything = lanes_.environments(found.name, file or Path(f"matrices/{found.name}.toml"), found.environments())
        chosen = options.names("--lanes", "lane", lanes or None, everything)
        kept = {k: v for k, v in everything.items() if chosen is None or k in chosen or k in lanes_.ALWAYS}
        out.mkdir(parents=True, exist_ok=True)
        tell = lambda line: click.echo(line, err=True)  # noqa: E731
        job = run.Job(found, name, program, python, kept, pythons, out.resolve() / "runs", timeout, tell)
        evidence, script = run.triage(job)
        (out / "report.md").write_text(report.markdown(evidence, script), encoding="utf-8")
        (out / "report.json").write_text(report.as_json(evidence, script), encoding="utf-8")
        if script:
            (out / "script.py").write_text(script, encoding="utf-8")
    click.echo(report.text(evidence, script))
    click.echo(f"\nwritten to {out}/: report.md, report.json" + (", script.py" if script else ""))
    sys.exit(Exit.CELLS_FAILED if evidence.first else Exit.OK)


def _case_script(case: str, backend: Any, out: Path) -> Path:
    """A program that does what the case does."""
    from conformance import repro
    from conformance.suite import Selection, Suite

    suite = Suite(backend, Selection(), 20)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "case.py"
    path.write_text(repro.script(suite, repro.find(suite, case), 20), encoding="utf-8")
    return path


@commands.group(cls=Commands)
def expect() -> None:
    """Known failures."""


@expect.command("update")
@click.argument("run")
@click.option(
    "--expected", type=click.Path(dir_okay=False, path_type=Path), help="Default: matrices/expected/<backend>.toml."
)
def expect_update(run: str, expected: Path | None) -> None:
    """Rewrite the known failures from RUN, a lane's name or a directory of results; reasons written by hand stay."""
    with _mistakes(store.StoreError, TomlError, OSError):
        read = store.read(store.find(RESULTS, run))
        file = expected or EXPECTED / f"{read.manifest.backend}.toml"
        if len(read.observations) < read.manifest.collected:
            raise Mistake(f"{run}: {read.notes[-1]}; nothing was changed")
        old = expectations.load(file)
        new = expectations.update(old, read.observations, read.manifest.lane, read.manifest.complete)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(expectations.dump(new, f"Known failures of {read.manifest.backend}."), encoding="utf-8")
    kept = sum(rule in old for rule in new)
    click.echo(f"{file}: {len(new)} rules: {kept} kept, {len(new) - kept} new; {len(old) - kept} dropped")


@commands.command("summary")
@click.argument("run")
def summary_(run: str) -> None:
    """Print again what RUN, a lane's name or a directory of results, ended with."""
    with _mistakes(store.StoreError, OSError):
        path = store.find(RESULTS, run)
        read = store.read(path)
        for note in read.notes:
            click.echo(f"note: {note}", err=True)
        directory = path if path.is_dir() else path.parent
        click.echo(summary.text(store.read_summary(directory), read.observations, str(directory)))


@contextmanager
def _mistakes(*kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of these kinds, which say what the user can do, into one line."""
    try:
        yield
    except kinds as e:
        raise Mistake(str(e.args[0]) if isinstance(e, LookupError) and e.args else str(e)) from e


def _overloads(backend: str) -> Sequence[Overload]:
    from conformance import backends
    from conformance.inventory import inventory

    with _mistakes(backends.BackendNotFound):
        return inventory(backends.find(backend or backends.default()).device)


def _matching(pattern: str, names: Sequence[str]) -> set[str]:
    """The names that hold the pattern's text, or match it as a shell pattern. Raises Mistake when there are none."""
    found = {n for n in names if pattern in n or fnmatchcase(n, pattern)}
    if not found:
        raise Mistake(unknown("overload", pattern, names))
    return found


def _sample_line(sample: Any) -> str:
    slots = ", ".join(f"{s.name}{list(s.shape)}" + (f":{s.dtype}" if s.dtype else "") for s in sample.tensors)
    raises = "  raises" if sample.raises else ""
    return f"{sample.overload}  {sample.name}  ({slots})  {' '.join(sample.dtypes)}{raises}"


if __name__ == "__main__":
    main()
