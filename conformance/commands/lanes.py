"""`lane`: runs a command in the environment of a lane."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from conformance.commands.edge import Mistake, mistakes
from conformance.lanes import process
from conformance.support.toml_table import TomlError


@click.command("lane", context_settings={"ignore_unknown_options": True})
@click.argument("name", metavar="LANE")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND ...")
def lane_(name: str, command: tuple[str, ...]) -> None:
    """Run COMMAND with the environment variables of LANE, including those that its sanitizers need at start.

    The word `python` means the lane's interpreter if nox has created it, else the interpreter of this command.
    """
    root = Path.cwd()
    with mistakes(TomlError, LookupError, OSError):
        lane, environment = process.find(root, name)
        variables = process.variables(root, lane, os.environ)
        made = process.interpreter_file(root, environment)
        python = made.read_text(encoding="utf-8") if made.is_file() else sys.executable
    program = python if command[0] == "python" else command[0]
    sys.stdout.flush()
    try:
        # The command replaces this process, so that Ctrl-C and the signals of a CI reach the command alone. It may take
        # seconds to end, because a run closes its results.
        os.execvpe(program, [program, *command[1:]], os.environ | variables)
    except OSError as e:
        raise Mistake(f"{program}: cannot be run: {e.strerror}; expected a program and its arguments after --") from e
