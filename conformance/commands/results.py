"""What is done with a run that has ended: `summary` prints it, `expect update` takes its failures as known."""

from __future__ import annotations

from pathlib import Path

import click

from conformance import expectations, store, summary
from conformance.commands.edge import EXPECTED, RESULTS, Commands, Mistake, mistakes
from conformance.toml_table import TomlError


@click.group(cls=Commands)
def expect() -> None:
    """Known failures."""


@expect.command("update")
@click.argument("run")
@click.option(
    "--expected", type=click.Path(dir_okay=False, path_type=Path), help="Default: matrices/expected/<backend>.toml."
)
def expect_update(run: str, expected: Path | None) -> None:
    """Rewrite the known failures from RUN, a lane's name or a directory of results; reasons written by hand stay."""
    with mistakes(store.StoreError, TomlError, OSError):
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


@click.command("summary")
@click.argument("run")
def summary_(run: str) -> None:
    """Print again what RUN, a lane's name or a directory of results, ended with."""
    with mistakes(store.StoreError, OSError):
        path = store.find(RESULTS, run)
        read = store.read(path)
        for note in read.notes:
            click.echo(f"note: {note}", err=True)
        directory = path if path.is_dir() else path.parent
        click.echo(summary.text(store.read_summary(directory), read.observations, str(directory)))
