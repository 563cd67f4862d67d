"""The commands that are printed next to a failing case, which the command line accepts."""

from __future__ import annotations

import shlex

import pytest

from conformance.cli import commands
from conformance.support import command_lines

CASE = "ops/masking.py::masked_fill_.Scalar[float32-expanded]#opinfo.masked_fill.3@mask"


@pytest.mark.parametrize("line", [command_lines.script(CASE, "demo"), command_lines.triage(CASE, "demo")])
def test_the_command_parses_and_names_the_case_and_the_backend(line: str) -> None:
    program, name, *words = shlex.split(line)
    assert program == "conformance"
    command = commands.get_command(None, name)  # type: ignore[arg-type]  # it needs no context
    assert command
    parsed = command.make_context(name, words).params
    assert parsed["backend"] == "demo"
    assert CASE in (parsed.get("case"), *parsed.get("command", ()))


def test_a_case_is_repeated_alone_here_and_in_a_lane() -> None:
    assert shlex.split(command_lines.repeat(CASE, "demo"))[-2:] == ["--case", CASE]
    assert shlex.split(command_lines.in_lane(CASE, "demo-lane"))[1:3] == ["lane", "demo-lane"]
