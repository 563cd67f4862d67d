"""`corpus`: builds the samples, or prints them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from conformance.commands.edge import Commands, Mistake, matching, mistakes, tell
from conformance.support import checked_heap, guarded_heap
from conformance.support.signals import interrupt_once


@click.group(cls=Commands)
def corpus() -> None:
    """Build or print the samples."""


@corpus.command("build")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="A directory; default: the installed package."
)
def corpus_build(out: Path | None) -> None:
    """Record, derive, check and write the samples on this machine's CPU, then generate others. Takes hours."""
    from conformance.corpus import build, reader

    checked_heap.restart()
    with mistakes(reader.CorpusError, OSError):
        built = build.build(out or reader.DATA, tell)
    click.echo(built.summary())
    _generate(out)


@corpus.command("generate")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="A directory; default: the installed package."
)
@click.option("--check", is_flag=True, help="Generate none: try those that are there again, and keep those that run.")
@click.option("--anew", is_flag=True, help="Remove the samples that earlier rules made and these do not.")
@click.argument("overloads", nargs=-1)
def corpus_generate(out: Path | None, check: bool, anew: bool, overloads: tuple[str, ...]) -> None:
    """Generate samples of other sizes, values and arguments from those that are there, and try them on CPU.

    OVERLOADS are names, or parts or patterns of names; default: all overloads, which takes hours. The generated samples
    that are there stay, unless a new one has the same name. Ctrl-C keeps what was generated so far.
    Calls in which CPU reads or writes past a block of memory are left out. Their memory is guarded for that, which
    takes a C compiler; without one, the C library's checking allocator, where there is one, finds writes.
    """
    if check and anew:
        raise click.UsageError("--check generates none, and --anew is about generated ones: give one of them")
    if out is not None:
        _check_recorded("--out", out)
    if not guarded_heap.restart():
        checked_heap.restart()
    interrupt_once()  # a second signal must not stop the writing
    _generate(out, overloads, check=check, anew=anew)


def _check_recorded(option: str, directory: Path) -> None:
    """Raise Mistake if a directory has no recorded samples. Other samples are generated from them."""
    from conformance.corpus import reader

    if not (directory / reader.INDEX).is_file():
        raise Mistake(
            f"{option} {directory}: has no recorded samples ({reader.INDEX}); expected a copy of {reader.DATA}, or a "
            f"directory that `conformance corpus build --out {directory}` wrote"
        )


def _generate(out: Path | None, patterns: tuple[str, ...] = (), *, check: bool = False, anew: bool = False) -> None:
    from conformance.corpus import reader
    from conformance.corpus.vary import build
    from conformance.plan.cases import of_generated

    with mistakes(reader.CorpusError, build.GenerationError, OSError):
        where = out or reader.DATA
        known = reader.load(where, generated=False).overloads
        named = [{pattern} if pattern in known else matching(pattern, known) for pattern in patterns]
        wanted = sorted(set().union(*named)) if patterns else known
        make = build.check if check else partial(build.build, anew=anew)
        click.echo(make(where, wanted, of_generated, tell))


@corpus.command("show")
@click.argument("overload", default="")
@click.option(
    "--from", "source", type=click.Path(exists=True, path_type=Path), help="A directory; default: the installed one."
)
def corpus_show(overload: str, source: Path | None) -> None:
    """Print a summary of the corpus; with OVERLOAD (a name or a pattern), its samples."""
    from conformance.corpus import reader

    if source is not None:
        _check_recorded("--from", source)
    with mistakes(reader.CorpusError):
        found = reader.load(source)
        if not overload:
            total = sum(len(found.samples(name)) for name in found.overloads)
            counts = f"{len(found.overloads)} overloads, {total} samples"
            click.echo(f"corpus {found.hash[:12]}, built on torch {found.torch}: {counts}")
            return
        for name in sorted(matching(overload, found.overloads)):
            for sample in found.samples(name):
                click.echo(_sample_line(sample))


def _sample_line(sample: Any) -> str:
    slots = ", ".join(f"{s.name}{list(s.shape)}" + (f":{s.dtype}" if s.dtype else "") for s in sample.tensors)
    raises = "  raises" if sample.raises else ""
    return f"{sample.overload}  {sample.name}  ({slots})  {' '.join(sample.dtypes)}{raises}"
