"""The triage of programs that are wrong only under ``torch.compile``, from end to end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.triage.worker import NOT_COMPILED
from tests.triage.interrupting import ROOT, interrupted_at

#: A compiler that is wrong for the second of two functions, and a program that tests it and exits with 1.
PROGRAM = """
import os, signal, sys, time
import torch
from torch._dynamo import register_backend

@register_backend
def mine(graph, inputs):
    if not any("cos" in str(node.target) for node in graph.graph.nodes):
        return graph.forward
    def call(*args):
        {how}
        return tuple(r + 1 for r in graph(*args))
    return call

first = torch.compile(lambda x: x.sin(), backend="mine")
second = torch.compile(lambda x: x.cos() * 2, backend="mine")
x = torch.ones(int(sys.argv[1]))
first(x)
sys.exit(0 if torch.allclose(second(x), x.cos() * 2) else 1)
"""


def triage(
    where: Path, program: str, *arguments: str, options: tuple[str, ...] = ("--backend", "torch:cpu"), **variables: str
) -> tuple[int, dict[str, Any], str]:
    (where / "program.py").write_text(program)
    command = [sys.executable, "-m", "conformance.cli", "triage", "--compiled", *options, "--out", str(where / "out")]
    done = subprocess.run(
        [*command, "--", "python", str(where / "program.py"), *arguments],
        env=os.environ | variables, capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    report = where / "out" / "report.json"
    return done.returncode, json.loads(report.read_text()) if report.is_file() else {}, done.stdout + done.stderr


def test_a_program_that_compiles_rightly_ends_with_nothing_found(tmp_path: Path) -> None:
    code, found, said = triage(tmp_path, PROGRAM.format(how="return graph(*args)"), "5")
    assert code == 0, said
    assert found["stage"] == ""
    assert "nothing differs: 2 calls of 2 compiled graphs" in said


def test_a_program_that_fails_by_itself_is_no_success(tmp_path: Path) -> None:
    code, found, said = triage(tmp_path, "raise ValueError('no file')\n")
    assert code == 2, said
    assert found["stage"] == ""
    assert "the program itself fails, also without torch.compile: ValueError: no file; it compiles nothing" in said


def test_a_backend_that_is_wrong_for_one_function_is_named_with_the_graph(tmp_path: Path) -> None:
    """The program takes an argument, compiles two functions, and exits with 1 because of the wrong one."""
    code, found, said = triage(tmp_path, PROGRAM.format(how="pass"), "5")
    assert code == 1, said
    assert found["stage"] == "backend"
    wrong = found["evidence"]["runs"][-1]["wrong"]
    assert (wrong["kind"], wrong["graph"], wrong["subject"]) == ("values", 1, "result 0")
    assert "values differ between aot_eager_decomp_partition and the program's backend" in said


def test_a_crash_of_compiled_code_is_named_with_the_graph_and_the_phase(tmp_path: Path) -> None:
    code, found, said = triage(tmp_path, PROGRAM.format(how="os.kill(os.getpid(), signal.SIGSEGV)"), "5")
    assert code == 1, said
    wrong = found["evidence"]["runs"][-1]["wrong"]
    assert (wrong["kind"], wrong["message"], wrong["graph"], wrong["phase"]) == ("died", "SIGSEGV", 1, "forward")


def test_a_program_that_is_wrong_without_the_compiler_is_left_to_the_other_triage(tmp_path: Path) -> None:
    pytest.importorskip("refnpu")
    program = """
import torch, refnpu
f = torch.compile(lambda x: torch.nn.functional.layer_norm(x, (8,)))
f(torch.arange(8.0, device="npu") / 1000)
"""
    code, found, said = triage(
        tmp_path, program, options=("--backend", "refnpu"), REFNPU_FAULT="layer_norm_eps_outside_sqrt"
    )
    assert code == 1, said
    assert found["stage"] == "eager"
    assert "layer_norm" in found["evidence"]["eager"]
    assert f"conformance triage -- python {tmp_path / 'program.py'}" in said


# A program that does not end in a run that compiles it.
HELD = f"""
import os, time
while {NOT_COMPILED!r} not in os.environ:
    time.sleep(0.1)
"""


def test_an_interrupted_triage_writes_what_is_known(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(HELD + PROGRAM.format(how="pass"))
    arguments = ("--compiled", "--backend", "torch:cpu", "--", "python", str(tmp_path / "program.py"), "5")
    code, said, evidence = interrupted_at("backend 'eager'", tmp_path, *arguments)
    assert code == 2
    assert said.startswith("interrupted: nothing has differed so far")
    assert [run["backend"] for run in evidence["runs"]] == [""]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--aoti", "--", "python", "script.py"], "triage --compiled takes no --aoti"),
        (["--lanes", "malloc", "--", "python", "script.py"], "triage --compiled takes no --lanes"),
        (["--backend", "torch:cpu", "--", "python", "no_such_script.py"], "no script no_such_script.py"),
        (["--backend", "torch:cpu", "--", "make"], "expected a command like: python script.py"),
    ],
)
def test_wrong_arguments_are_one_line(tmp_path: Path, arguments: list[str], error: str) -> None:
    command = [sys.executable, "-m", "conformance.cli", "triage", "--compiled", "--out", str(tmp_path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert error in done.stderr
    assert "Traceback" not in done.stderr
