"""Commands on a finished run: `summary` prints it, `expect update` adds its failures to the known failures."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from conformance.commands.edge import Commands, Mistake, expected_option, format_option, mistakes, results_option
from conformance.explain import describe
from conformance.report import github, job_page, junit
from conformance.results import expectations, expected_files, store, summary
from conformance.support.toml_table import TomlError


@click.group(
    cls=Commands, where={"export": "device_test_lists:expect_export", "import": "device_test_lists:expect_import"}
)
def expect() -> None:
    """Known failures."""


@expect.command("update")
@click.argument("run")
@results_option
@expected_option
def expect_update(run: str, results: Path, expected: Path | None) -> None:
    """Update the known failures from RUN, a lane's name or a directory of results; reasons written by hand stay."""
    with mistakes(store.StoreError, TomlError, OSError):
        read = store.read(store.find(results, run))
        told = read.manifest
        file = expected_files.to_write(expected, told)
        if told.shard:
            raise Mistake(f"{run}: is shard {told.shard}; merge the shards first, with: conformance merge")
        if len(read.observations) < told.collected:
            raise Mistake(f"{run}: {read.notes[-1]}; nothing was changed")
        old = expectations.load(file)
        new = expectations.update(old, read.observations, told.lane, told.complete, describe.ended)
        expectations.save(file, new, told.backend)
    kept = sum(rule in old for rule in new)
    click.echo(f"{file}: {len(new)} rules: {kept} kept, {len(new) - kept} new; {len(old) - kept} dropped")


_NEEDED = frozenset({"by_status", "cases", "collected", "coverage", "wall_s"})


@dataclass(frozen=True)
class _Read:
    """A run, its summary, and its known failures."""

    run: store.Run
    result: dict[str, Any]
    directory: Path
    known: tuple[expectations.KnownFailure, ...]


@click.command("summary")
@click.argument("names", nargs=-1, metavar="[RUN]...")
@format_option(
    "text", "json", "markdown", "junit", "annotations",
    more=": junit has one test for each overload and dtype, and one for each cell that is not as expected; annotations "
    "are those of a GitHub workflow, one for each cause",
)  # fmt: skip
@results_option
@expected_option
def summary_(names: tuple[str, ...], form: str, results: Path, expected: Path | None) -> None:
    """Print the end of RUN, a lane's name or a directory of results; without RUN, of the latest run of each lane."""
    with mistakes(store.StoreError, TomlError, OSError):
        found = [_read(results, name, expected) for name in names or _latest(results)]
        if not found:
            raise Mistake(f"no closed run in {results / store.RUNS}/; {store.how_to_have_one(results)}")
    if form == "text":
        click.echo("\n\n".join(_text(r) for r in found))
    elif form == "json":
        click.echo(json.dumps([{"manifest": asdict(r.run.manifest), **r.result} for r in found], indent=1))
    elif form == "markdown":
        pages = (job_page.markdown(r.run.manifest, r.result, r.run.observations, r.known) for r in found)
        click.echo("\n".join(pages))
    elif form == "annotations":
        texts = (github.annotated(r.run.manifest, r.run.observations, r.known) for r in found)
        click.echo("".join(texts), nl=False)
    else:
        click.echo(junit.junit([(r.run.manifest, r.run.observations, r.known) for r in found]), nl=False)


def _text(read: _Read) -> str:
    return summary.text(read.result, read.run.observations, str(read.directory), read.run.manifest.backend_for_commands)


def _latest(results: Path) -> list[str]:
    """Return the latest closed run of each lane, from the store: the lane's own directory may hold a shard."""
    return [of_series[-1] for of_series in store.shown_series(results).values()]


def _read(results: Path, name: str, expected: Path | None) -> _Read:
    """Return a run with its summary and known failures. Raises StoreError, TomlError or OSError."""
    path = store.find(results, name)
    read = store.read(path)
    for note in read.notes:
        click.echo(f"note: {note}", err=True)
    directory = path if path.is_dir() else path.parent
    result = store.read_summary(directory)
    if lacking := _NEEDED - result.keys():
        raise store.StoreError(f"{directory}: its summary has no {', '.join(sorted(lacking))}")
    known = expectations.load(expected_files.of_results(expected, read.manifest))
    return _Read(read, result, directory, known)
