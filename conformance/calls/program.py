"""The run of a user's program in this process."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def run_program(program: list[str]) -> None:
    """Run a script, or ``-m`` and a module, with its arguments, as the interpreter does."""
    sys.argv = program[1:] if program[0] == "-m" else program
    if program[0] == "-m":
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        return
    sys.path.insert(0, str(Path(program[0]).resolve().parent))
    runpy.run_path(program[0], run_name="__main__")
