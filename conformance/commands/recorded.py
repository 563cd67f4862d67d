"""The recorded models that commands weight by: those that ship with the suite, and files of the user."""

from __future__ import annotations

from pathlib import Path

import click

from conformance.commands.edge import mistakes
from conformance.models import file
from conformance.models.model import Recording
from conformance.support import options
from conformance.support.options import OptionError

ALL = "all"

model_option = click.option(
    "--model", default=None, metavar="A,B", help=f"Only these recorded models: {', '.join(file.names())}, or {ALL}."
)
recorded_option = click.option(
    "--recorded", type=click.Path(dir_okay=False, path_type=Path), multiple=True, help="The calls of this file, "
    "written by `record`, in place of the recorded models or besides those of --model; may be repeated."
)  # fmt: skip


def recordings(model: str | None, recorded: tuple[Path, ...]) -> tuple[Recording, ...] | None:
    """Return the recordings of the options, None if neither is given. Raises Mistake for unknown names or bad files."""
    with mistakes(OptionError, file.ModelsError):
        chosen = options.names("--model", "model", model, (*file.names(), ALL))
        shipped = file.load_all(None if chosen and ALL in chosen else chosen) if chosen else ()
    if chosen is None and not recorded:
        return None
    return (*shipped, *_own(recorded))


def _own(recorded: tuple[Path, ...]) -> list[Recording]:
    if not recorded:
        return []
    from conformance.calls import file as calls
    from conformance.calls.recorded import recording_of

    with mistakes(calls.CallsError):
        return [recording_of(path) for path in recorded]
