"""Triage from end to end, with a fault and without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance.calls.sequence import lone
from conformance.triage import lanes, questions, reduction, run, watching
from conformance.triage.evidence import Evidence, Found, LaneRun
from conformance.triage.job import Job
from conformance.triage.shrink import shrink
from tests.calls.test_calls import BACKEND, taken
from tests.triage.interrupting import ROOT, interrupted_at

PROGRAM = """
import torch, {module}
x = torch.arange(24.0, device="{device}").view(2, 3, 4)
y = x.transpose(0, 2).contiguous()
print(torch.all(y + 1 > 0))
"""


def triage(
    where: Path, module: str, device: str, *options: str, program: str = PROGRAM, **environment: str
) -> tuple[int, dict[str, Any], str]:
    (where / "program.py").write_text(program.format(module=module, device=device))
    command = [sys.executable, "-m", "conformance.cli", "triage", *options, "--out", str(where / "out"), "--", "python"]
    done = subprocess.run(
        [*command, str(where / "program.py")],
        env=os.environ | environment, capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    report = where / "out" / "report.json"
    return done.returncode, json.loads(report.read_text()) if report.is_file() else {}, done.stdout + done.stderr


def test_a_program_that_is_right_ends_with_nothing_found(tmp_path: Path) -> None:
    code, found, said = triage(tmp_path, "conformance", "cpu", "--backend", "torch:cpu")
    assert code == 0, said
    assert "nothing failed in" in said
    assert found["verdicts"] == []


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import {module}\nopen('no such file')\n", "the program raised FileNotFoundError: [Errno 2]"),
        ("import {module}, sys\nsys.exit(3)\n", "the program ended with 3"),
        ("import {module}, os\nos._exit(0)\n", "the run ended with exit code 0 and without a result"),
        ("import {module}, os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "died of SIGKILL before its first op"),
    ],
)
def test_a_program_that_fails_before_its_first_op_is_no_success(tmp_path: Path, program: str, said: str) -> None:
    code, found, output = triage(tmp_path, "torch", "cpu", "--backend", "torch:cpu", program=program)
    assert code == 2, output
    assert "the program itself failed in 2 of 2 runs" in output
    assert said in output.partition("first in lane 'as it is': ")[2]
    assert found["culprit"] == ""


def test_a_program_without_an_op_on_the_device_is_no_success(tmp_path: Path) -> None:
    code, _, said = triage(tmp_path, "torch", "cpu", "--backend", "torch:cpu", program="import {module}\n")
    assert code == 2, said
    assert "the program called no op on the device, so nothing was compared" in said


@pytest.mark.parametrize("allocator", ["malloc", "aligned_alloc"])
def test_copies_that_ignore_strides_are_named_and_the_allocator_ruled_out(tmp_path: Path, allocator: str) -> None:
    module = "refnpu"
    pytest.importorskip(module)
    code, found, said = triage(
        tmp_path, module, "npu", "--backend", module, "--lanes", "malloc,aligned_alloc",
        REFNPU_FAULT="copy_ignores_strides", REFNPU_ALLOCATOR=allocator,
    )  # fmt: skip
    assert code == 1, said
    assert found["culprit"] == "_copy_from"
    assert "_copy_from, called by clone" in said
    rulings = {v["hypothesis"]: v["ruling"] for v in found["verdicts"]}
    assert rulings["copy"] == "holds"
    assert rulings["allocator"] == rulings["a kernel"] == rulings["threads"] == "ruled out"
    assert "lines of its own) fails when run" in said
    assert "as_strided" in found["script"]


def test_triage_writes_the_smallest_call_that_fails_in_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device gets 3 or more elements wrong, but by chance the shrinker once saw 2 wrong elements."""
    call = taken(torch.ops.aten.clone.default, torch.arange(8.0))
    calls = shrink(call, lambda smaller: smaller.elements >= 2 * 4)
    assert calls[-1].elements == 2 * 4
    versions = [[lone(smaller)] for smaller in calls]
    job = Job(BACKEND, "torch:cpu", (), sys.executable, {"here": {}}, (), tmp_path, timeout=600, tell=lambda text: None)
    alone = Evidence((), alone=(("here", True),))

    def goes_wrong(_: Job, python: str, script: Path, lane: str) -> bool:
        return "arange(2)" not in script.read_text()

    monkeypatch.setattr(reduction, "_fails", goes_wrong)
    evidence, text = reduction.finish(job, alone, versions, "here")
    assert "arange(2)" not in text
    assert "fails when run" in evidence.notes[-1]
    monkeypatch.setattr(reduction, "_fails", lambda *_: False)
    evidence, text = reduction.finish(job, alone, versions, "here")
    assert "does not fail each time it is run" in evidence.notes[-1]
    assert (tmp_path / "script.py").read_text() == text


def test_a_script_that_does_not_end_counts_as_one_that_fails(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import time\ntime.sleep(600)\n")
    job = Job(BACKEND, "torch:cpu", (), sys.executable, {"here": {}}, (), tmp_path, timeout=0.5, tell=lambda text: None)
    begun = time.monotonic()
    assert reduction._fails(job, sys.executable, script, "here")  # noqa: SLF001
    assert time.monotonic() - begun < 300


@pytest.mark.parametrize(
    ("command", "program"),
    [(["x.py", "-v"], ("x.py", "-v")), (["python", "x.py", "1"], ("x.py", "1")), (["python3", "-m", "x"], ("-m", "x"))],
)
def test_a_command_is_taken_apart(command: list[str], program: tuple[str, ...]) -> None:
    assert run.interpreter(command) == (sys.executable, program)


@pytest.mark.parametrize("command", [["ls"], ["python"], ["python", "-c", "1"]])
def test_any_other_command_is_refused(command: list[str]) -> None:
    with pytest.raises(ValueError, match=r"expected a command like: python script\.py"):
        run.interpreter(command)


def test_lanes_come_from_the_matrix_and_else_from_the_adapter(tmp_path: Path) -> None:
    file = tmp_path / "demo.toml"
    offered = {"guarded": {"DEMO": "guard"}}
    assert list(lanes.environments("demo", file, offered)) == [lanes.OWN, lanes.SINGLE, "guarded"]
    file.write_text(
        'backend = "demo"\nproject = "demo"\nmodule = "demo"\n'
        '[[torch]]\nversion = "2.8"\n[environments.exact]\nDEMO = "exact"\n'
    )
    found = lanes.environments("demo", file, offered)
    assert list(found) == [lanes.OWN, lanes.SINGLE, "exact"]
    assert found["exact"] == {"DEMO": "exact"}


def _run(lane: str, died: str = "") -> LaneRun:
    return LaneRun(lane, Found(6, "clone", "" if died else "value", "", died=died), 9)


def test_an_interruption_ends_the_runs_of_all_lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(*_: object) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        return started[-1]

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "_start", start)
    places: dict[str, dict[str, str]] = {"one": {}, "other": {}}
    job = Job(BACKEND, "torch:cpu", (), sys.executable, places, (), tmp_path, timeout=600, tell=interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            watching.watch(job)
        assert [process.returncode for process in started] == [-9, -9]
    finally:
        for process in started:
            process.kill()
            process.wait()


# A program that does not end in a run with a single thread.
HELD = """
import os, time
while os.environ.get("OMP_NUM_THREADS") == "1":
    time.sleep(0.1)
"""


def test_an_interrupted_triage_writes_what_is_known(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(HELD + PROGRAM.format(module="torch", device="cpu"))
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    arguments = ("--backend", "torch:cpu", "--", "python", str(tmp_path / "program.py"))
    code, said, evidence = interrupted_at(f"{lanes.OWN}: nothing failed", tmp_path, *arguments, environment=environment)
    assert code == 2
    assert said.startswith("interrupted: nothing has failed so far in ")
    assert [run["lane"] for run in evidence["runs"]] == [lanes.OWN]


def test_a_prober_that_has_ended_says_nothing_of_its_lane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended:
        def ask(self, *_: object) -> dict[str, Any]:
            return {questions.BROKEN: "the process has ended"}

    monkeypatch.setattr(questions, "prober", lambda job, lane: nullcontext(Ended()))
    told: list[str] = []
    job = Job(BACKEND, "torch:cpu", (), sys.executable, {"here": {}}, (), tmp_path, timeout=600, tell=told.append)
    e = questions.question(job, Evidence((_run("here"),)), "here", tmp_path / "call")
    assert (e.alone, e.allocator, e.threads, e.copy) == ((), (), (), None)
    assert told == ["alone in here: no answer, the process has ended"]


def test_lanes_that_stop_at_once_are_asked_before_others_that_agree() -> None:
    e = Evidence((_run("as it is"), _run("exact"), _run("pool"), _run("canaries"), _run("guard", "SIGSEGV")))
    assert questions.asked_lanes(e, "as it is") == ["as it is", "guard", "exact", "pool"]


def test_the_script_is_for_a_lane_in_which_the_op_alone_goes_wrong() -> None:
    e = Evidence((_run("as it is"), _run("guard", "SIGSEGV")))
    assert questions.shown_in(replace(e, alone=(("as it is", False), ("guard", True))), "as it is") == "guard"
    assert questions.shown_in(replace(e, alone=(("as it is", True), ("guard", True))), "as it is") == "as it is"
    assert questions.shown_in(replace(e, alone=(("as it is", False), ("guard", False))), "as it is") == "as it is"
