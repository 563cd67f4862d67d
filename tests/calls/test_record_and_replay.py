"""A program's calls recorded on one device are judged on another, by the op."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from conformance import backends
from conformance.calls import file
from conformance.triage.watch import Watch
from tests import forked_runs

PROGRAM = """
import torch
x = torch.arange(6.0).view(2, 3)
y = x.t().contiguous() + 1
y = x.t().contiguous() + 1
"""


def conformance(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return forked_runs.run((sys.executable, "-m", "conformance.cli", *arguments), Path.cwd(), **environment)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> str:
    where = tmp_path_factory.mktemp("recorded")
    (where / "program.py").write_text(PROGRAM)
    file = str(where / "calls.safetensors")
    done = conformance("record", "--backend", "torch:cpu", "-o", file, "--", "python", str(where / "program.py"))
    assert done.returncode == 0, done.stderr
    assert "5 kinds of 8 calls" in done.stderr
    return file


def test_a_recording_counts_the_calls_of_each_kind(recorded: str) -> None:
    calls, facts = file.load_all(Path(recorded))
    assert len(facts["counts"]) == len(calls)
    assert sum(facts["counts"]) == facts["seen"] == 8


def test_calls_recorded_on_cpu_are_equal_to_cpu_when_replayed(recorded: str) -> None:
    done = conformance("replay", recorded, "--backend", "torch:cpu")
    assert done.returncode == 0, done.stdout
    assert done.stdout == "5 calls = 5 equal to CPU + 0 fail + 0 not comparable\n"


SLOW_TO_END = """
import pathlib, sys, time, torch
torch.ones(3).neg()
pathlib.Path(sys.argv[1]).touch()
try:
    time.sleep(600)
finally:
    time.sleep(1)
"""


def test_ctrl_c_stores_the_calls_before_it(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    (tmp_path / "program.py").write_text(SLOW_TO_END)
    output = str(tmp_path / "calls")
    words = ("record", "--backend", "torch:cpu", "-o", output, "--", "python", str(tmp_path / "program.py"), str(begun))
    with subprocess.Popen((sys.executable, "-m", "conformance.cli", *words), start_new_session=True) as command:
        while not begun.exists():
            assert command.poll() is None
            time.sleep(0.05)
        os.killpg(command.pid, signal.SIGINT)  # as Ctrl-C in a terminal does
        assert command.wait(300) == 2
    assert [call.case.cell.overload for call in file.load(Path(output))] == ["ones", "neg"]


def test_a_file_of_an_earlier_recording_is_not_taken_for_that_of_a_program_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    (tmp_path / "calls").write_text("of an earlier recording")
    words = ("record", "--backend", "torch:cpu", "-o", str(tmp_path / "calls"), "--", "python")
    done = conformance(*words, str(tmp_path / "program.py"))
    assert done.returncode == 1
    assert "nothing was written to" in done.stderr


def test_a_wrong_device_is_found_in_the_call_that_it_gets_wrong(recorded: str) -> None:
    backend = "refnpu"
    pytest.importorskip(backend)
    assert conformance("replay", recorded, "--backend", backend).returncode == 0
    done = conformance("replay", recorded, "--backend", backend, REFNPU_FAULT="copy_ignores_strides")
    assert done.returncode == 1
    assert "clone (call." in done.stdout
    assert "4 equal to CPU + 1 fail" in done.stdout


def test_calls_of_which_none_can_be_compared_are_no_success(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import torch\n")
    words = ("--backend", "torch:cpu", "-o", str(tmp_path / "calls"), "--", "python", str(tmp_path / "program.py"))
    assert conformance("record", *words).returncode == 0
    done = conformance("replay", str(tmp_path / "calls"), "--backend", "torch:cpu")
    assert done.returncode == 2
    assert "no call could be compared, so nothing is known of the backend" in done.stderr


def test_a_file_that_holds_no_calls_is_a_mistake(tmp_path: Path) -> None:
    done = conformance("replay", str(tmp_path / "none"), "--backend", "torch:cpu")
    assert done.returncode == 2
    assert "not a file of recorded calls" in done.stderr


def test_watching_a_program_does_not_load_the_compiler() -> None:
    """Loading the compiler takes as long as loading torch itself, in every process of a triage."""
    watched = (
        "import sys, torch\nfrom conformance import backends\nfrom conformance.triage.watch import Watch\n"
        "with Watch(backends.find('torch:cpu'), lambda *_: None, print) as watch:\n    torch.ones(2) * 2\n"
        "assert watch.ops == 2\nassert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", watched], check=True)


def test_a_compiled_function_is_watched_op_by_op() -> None:
    """The compiler is loaded here, and must not trace the watching code."""
    seen: list[str] = []
    twice = torch.compile(lambda x: (x + x).neg(), backend="aot_eager")
    x = torch.ones(3)
    with Watch(backends.find("torch:cpu"), lambda _, op, __: seen.append(op), lambda *_: None):
        assert twice(x).tolist() == [-2, -2, -2]
    assert seen[-2:] == ["add.Tensor", "neg"]
