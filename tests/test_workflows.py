"""The workflows and .ci/run call nox, sessions that exist, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import sessions

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SESSIONS = sessions.listed()


def test_there_is_a_workflow() -> None:
    assert WORKFLOWS


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_runs_nox_and_nothing_else(file: Path) -> None:
    commands = re.findall(r"^\s*-? ?run: (.+)$", file.read_text(), re.MULTILINE)
    assert commands
    assert [c for c in commands if not re.match(r"nox -s |python -m pip install \"nox\[uv\]\"$", c)] == []


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_names_sessions_that_exist(file: Path) -> None:
    named = set(re.findall(r"session: (\S+)$", file.read_text(), re.MULTILINE))
    assert named
    assert named <= SESSIONS


def test_the_check_before_landing_names_sessions_that_exist() -> None:
    calls = re.findall(r'^"\$nox" -s (.+?)(?: -- .*)?$', (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    named = {name for call in calls for name in call.split()}
    assert {"tests", "lint", "docs-check"} < named <= SESSIONS


def test_the_readme_s_commands_name_sessions_that_exist() -> None:
    text = "\n".join((ROOT / page).read_text() for page in ("README.md", "CONTRIBUTING.md"))
    named = {name.strip('"`').partition("(")[0] for name in re.findall(r"nox -s (\"?[\w.()-]+)", text)}
    assert named
    assert named <= SESSIONS
