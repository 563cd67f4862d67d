"""The workflows and .ci/run call nox alone. The tests run each command of the workflows with a stand-in for nox."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from conformance.cli import commands
from conformance.records import Observation
from conformance.results import resume, summary
from conformance.results.ledger import Ledger
from conformance.results.shards import Split
from conformance.results.store import runs
from conformance.results.store.manifest import as_shard, run_name
from conformance.vocabulary import Status
from tests import sessions
from tests.records import manifest, observed

ROOT = Path(__file__).parents[1]
# The repositories of backends use these two files. They have no nox, so the tests run their commands unchanged.
ACTION = ROOT / "action.yml"
REUSABLE = ROOT / ".github" / "workflows" / "backend.yml"
WORKFLOWS = sorted(file for file in (ROOT / ".github" / "workflows").glob("*.yml") if file != REUSABLE)
INSTALL = 'python -m pip install "nox[uv]"'
LANE = "refnpu-torchnightly-malloc-release"
CASE = "ops/masking.py::masked_fill_.Scalar[float32-expanded]#sample@self"

# Values of the expressions in a workflow, and the worst text that a user could type.
EVIL = "x'; touch pwned #$(touch pwned)`touch pwned`"
VALUES = {
    "inputs.lanes": "", "inputs.minutes || '30'": "30", "matrix.session": "conformance-2.8(malloc)",
    "matrix.shard": "1/2", "github.token": "secret", "github.ref_name": "v0.1.0", "inputs.case": CASE,
    "inputs.axis": "backend", "inputs.good": "v1", "inputs.bad": "v2",
    "github.server_url }}/${{ github.repository }}/actions/runs/${{ github.run_id": "https://example.org/1",
}  # fmt: skip

# The stand-in for nox records its arguments, and runs only the `conformance` commands that need no torch.
NOX = f"""#!{sys.executable}
import json, subprocess, sys
session, rest = sys.argv[2], sys.argv[4:]
assert sys.argv[1] == "-s" and sys.argv[3:4] in ([], ["--"]), sys.argv
print(json.dumps([session, rest]), file=open("calls", "a"))
words = {{"conformance": rest, "report": ["report", *(rest or ["site"])]}}.get(session)
sys.exit(words is not None and subprocess.call([sys.executable, "-m", "conformance.cli", *words]))
"""
GH = '#!/bin/sh\necho gh "$@" >> gh-calls\n[ "$2" = list ] && echo \'[]\'\nexit 0\n'


@dataclass(frozen=True)
class Step:
    """A command of a workflow, and the expressions in its environment variables."""

    job: str
    command: str
    variables: dict[str, str]


def loaded(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found


def steps(file: Path) -> Iterator[Step]:
    found = loaded(file)
    for name, job in {**found.get("jobs", {}), **({"action": found["runs"]} if "runs" in found else {})}.items():
        for step in job["steps"]:
            if "run" in step:
                yield Step(name, step["run"], step.get("env", {}))


def matrix_of(file: Path) -> list[dict[str, str]]:
    jobs = loaded(file)["jobs"].values()
    found = (job.get("strategy", {}).get("matrix", {}) for job in jobs)
    return [entry for matrix in found if isinstance(matrix, dict) for entry in matrix.get("include", [])]


every_workflow = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)


def test_the_repository_has_workflows() -> None:
    assert {file.stem for file in WORKFLOWS} == {"ci", "nightly", "bisect", "triage", "release"}


@every_workflow
def test_a_workflow_runs_nox_and_nothing_else(file: Path) -> None:
    ran = [step.command for step in steps(file) if step.command != INSTALL]
    assert ran
    assert [command for command in ran if not command.startswith("nox -s ") or "\n" in command] == []


@every_workflow
def test_a_workflow_passes_user_text_and_results_to_shells_by_variables(file: Path) -> None:
    inside = [e for step in steps(file) for e in re.findall(r"\$\{\{\s*(.+?)\s*\}\}", step.command)]
    own = {expression for entry in matrix_of(file) for expression in (f"matrix.{key}" for key in entry)}
    assert set(inside) <= own  # the values that the file itself lists


@every_workflow
def test_a_workflow_names_sessions_that_exist(file: Path) -> None:
    named = {m[1] for step in steps(file) if (m := re.match(r"nox -s ([\w-]+)", step.command))}
    named |= {entry["session"] for entry in matrix_of(file)}
    assert named
    assert named <= sessions.listed()


@every_workflow
def test_a_workflow_has_only_the_secrets_and_permissions_that_it_needs(file: Path) -> None:
    assert loaded(file)["permissions"] == {"contents": "read"}
    assert "secrets." not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("file", [ACTION, REUSABLE, *WORKFLOWS], ids=lambda file: file.name)
def test_actions_of_others_are_pinned_to_a_commit(file: Path) -> None:
    used = re.findall(r"^ *(?:- )?uses: (\S+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    assert [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)] == []


def ran(night: int, shard: str, *cells: Observation, whole: tuple[Observation, ...]) -> None:
    """Write the results of one shard of a night's run of the lane."""
    ids = [str(o.cell) for o in cells]
    name = run_name(LANE, datetime(2026, 11, 20 + night, tzinfo=timezone.utc) + timedelta(seconds=int(shard[0])))
    told = manifest(
        lane=LANE, backend="refnpu", run=name, collected=len(ids), cells=resume.fingerprint(ids), torch_commit="0" * 40,
        backend_commit=f"c{night}",
    )  # fmt: skip
    targets = [summary.Target("mm", "native")]
    ledger = Ledger(Path("results") / LANE, as_shard(told, shard, ""), [o.cell for o in cells], targets, ())
    for o in cells:
        ledger.enter(o)
    ledger.close(0.1, 1.0, Split(shard, len(whole), resume.fingerprint(str(o.cell) for o in whole)))


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with last night's run and tonight's two shards, one with a cell that newly fails."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "matrices", tmp_path / "matrices")
    for name, text in (("nox", NOX), ("gh", GH)):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.setenv(name, str(tmp_path / name))
    before = (observed("mm"), observed("cat"))
    ran(0, "1/1", *before, whole=before)
    subprocess.run([sys.executable, "-m", "conformance.cli", "merge"], check=True, stdout=subprocess.DEVNULL)
    after = (observed("mm", status=Status.FAIL), observed("cat"))
    for number, cell in enumerate(after, start=1):
        ran(1, f"{number}/2", cell, whole=after)
    return tmp_path


def play(step: Step, values: dict[str, str] = VALUES) -> int:
    """Run a step as a GitHub runner does, in bash with its expressions replaced. Return the exit code."""
    whole = re.compile(r"\$\{\{\s*(.*)\s*\}\}")
    given = {k: whole.sub(lambda m: values[m[1].strip()], text) for k, text in step.variables.items()}
    command = re.sub(r"\$\{\{\s*(.+?)\s*\}\}", lambda m: values[m[1]], step.command)
    return subprocess.run(["bash", "-e", "-c", command], env=os.environ | given, check=False).returncode


def calls() -> list[tuple[str, list[str]]]:
    return [(session, words) for session, words in map(json.loads, Path("calls").read_text().splitlines())]


def test_a_night_goes_through_every_command_of_its_workflow(night: Path) -> None:
    codes = {s.command: play(s) for s in steps(ROOT / ".github/workflows/nightly.yml") if s.command != INSTALL}
    failed = {command: code for command, code in codes.items() if code}
    # A cell newly fails.
    assert failed == {"nox -s conformance -- merge": 1, "nox -s conformance -- nightly diff": 20}
    outputs = dict(line.split("=", 1) for line in (night / "GITHUB_OUTPUT").read_text().splitlines())
    assert {entry["torch"] for entry in json.loads(outputs["matrix"])["include"]} >= {"2.6", "2.15", "nightly"}
    assert (outputs["conclusion"], outputs["delivery-id"]) == ("failure", "0" * 40)
    assert "1 cells are not as expected" in (night / "GITHUB_STEP_SUMMARY").read_text()
    assert runs.names(Path("results"), LANE)[-1].startswith("20261121")
    assert [a["title"] for a in json.loads(Path("plan.json").read_text())] == ["Conformance: mm: fail (value)"]
    assert "gh issue create --title=Conformance: mm: fail (value)" in Path("gh-calls").read_text()
    assert Path("junit.xml").read_text().startswith("<?xml")
    assert list(Path("site").glob("*.html"))
    assert ("conformance-2.8(malloc)", ["--shard", "1/2"]) in calls()
    assert ("nightly-search", []) in calls()


@every_workflow
def test_the_commands_of_a_workflow_take_the_options_they_are_given(file: Path, night: Path) -> None:
    for step in steps(file):
        if step.command != INSTALL:
            play(step, VALUES | {f"matrix.{k}": v for entry in matrix_of(file) for k, v in entry.items()})
    words = {"bisect": ["bisect"], "triage": ["triage"], "nightly-search": ["nightly", "search"]}
    for session, given in calls():
        if session in words:
            assert parsed(commands, [*words[session], *given])
        else:
            assert not [w for w in given if w.startswith("-")] or session == "conformance" or given[0] == "--shard"


def parsed(command: click.Command, words: list[str]) -> bool:
    """Return whether click accepts the words. Raises an error of click that names the wrong word."""
    context = command.make_context("x", words)
    if isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, words)
        return found is not None and bool(name) and parsed(found, rest)
    return True


@pytest.mark.parametrize("name", ["bisect", "triage", "nightly"])
def test_text_that_a_user_enters_is_an_argument_and_not_a_command(name: str, night: Path) -> None:
    values = {key: EVIL if key.startswith("inputs.") else value for key, value in VALUES.items()}
    for step in steps(ROOT / f".github/workflows/{name}.yml"):
        if step.command != INSTALL and step.variables:
            play(step, values)
    assert not Path("pwned").exists()
    assert [w for _, words in calls() for w in words if EVIL in w]


def test_the_check_before_landing_names_sessions_that_exist() -> None:
    calls = re.findall(r'^"\$nox" -s (.+?)(?: -- .*)?$', (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    named = {name for call in calls for name in call.split()}
    assert {"tests", "lint", "docs-check"} < named <= sessions.listed()


def test_the_readme_s_commands_name_sessions_that_exist() -> None:
    text = "\n".join((ROOT / page).read_text() for page in ("README.md", "CONTRIBUTING.md"))
    named = {name.strip('"`').partition("(")[0] for name in re.findall(r"nox -s (\"?[\w.()-]+)", text)}
    assert named
    assert named <= sessions.listed()


# The inputs from a backend's repository, and the values that GitHub supplies.
GIVEN = {
    "github.action_path": str(ROOT), "inputs.backend": "refnpu", "inputs.tier": "smoke", "inputs.results": "results",
    "inputs.select": "masked_fill.Scalar and float32-contiguous", "inputs.install": "echo installed > installed",
    "inputs.suite": "op-conformance", "matrix.torch": "torch", "github.token": "secret",
}  # fmt: skip


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the checkout of a backend's repository on a runner."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    path = (tmp_path / "bin", Path(sys.executable).parent, os.environ["PATH"])
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, path)))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "GITHUB_STEP_SUMMARY"))
    return tmp_path


@pytest.mark.parametrize("file", [ACTION, REUSABLE], ids=lambda file: file.name)
def test_a_backend_s_repository_gets_annotations_and_a_summary(
    file: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REFNPU_FAULT", "crash_in_kernel")
    played = [step for step in steps(file) if "pip install" not in step.command]
    codes = {step.command.split()[-1] if file == REUSABLE else step.command: play(step, GIVEN) for step in played}
    assert sorted(set(codes.values())) == [0, 1]
    assert "::error title=masked_fill" in capfd.readouterr().out
    assert "cells are not as expected" in (elsewhere / "GITHUB_STEP_SUMMARY").read_text()
    if file == REUSABLE:
        assert (elsewhere / "installed").exists()
        assert list((elsewhere / "site").glob("*.html"))
        assert "masked_fill" in (elsewhere / "gh-calls").read_text()


@pytest.mark.parametrize("file", [ACTION, REUSABLE], ids=lambda file: file.name)
def test_the_inputs_of_a_backend_s_repository_reach_shells_by_variables(file: Path) -> None:
    assert [step.command for step in steps(file) if "${{" in step.command] == []
