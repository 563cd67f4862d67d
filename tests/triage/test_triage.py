"""Triage from end to end, on the incident's fault and on none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.triage import lanes, run

PROGRAM = """
import torch, {module}
x = torch.arange(24.0, device="{device}").view(2, 3, 4)
y = x.transpose(0, 2).contiguous()
print(torch.all(y + 1 > 0))
"""


def triage(where: Path, module: str, device: str, *options: str, **environment: str) -> tuple[int, dict[str, Any], str]:
    (where / "program.py").write_text(PROGRAM.format(module=module, device=device))
    command = [sys.executable, "-m", "conformance.cli", "triage", *options, "--out", str(where / "out"), "--", "python"]
    done = subprocess.run(
        [*command, str(where / "program.py")],
        env=os.environ | environment, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    report = where / "out" / "report.json"
    return done.returncode, json.loads(report.read_text()) if report.is_file() else {}, done.stdout + done.stderr


def test_a_program_that_is_right_ends_with_nothing_found(tmp_path: Path) -> None:
    code, found, said = triage(tmp_path, "conformance", "cpu", "--backend", "torch:cpu")
    assert code == 0, said
    assert "nothing went wrong in" in said
    assert found["verdicts"] == []


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
    assert "lines of its own) goes wrong when run" in said
    assert "as_strided" in found["script"]


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
