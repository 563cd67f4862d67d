"""Commands of a search: output, exit, and the end of all their processes."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from conformance.bisect import processes as module
from conformance.bisect.processes import Ended, Processes, Stopped

# Starts a child in its own process group, as ninja starts compilers, writes the child's process id, and waits.
PARENT = """
import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], preexec_fn=os.setpgrp)
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(600)
"""


@pytest.fixture
def parent(tmp_path: Path) -> list[str]:
    (tmp_path / "parent.py").write_text(PARENT)
    return [sys.executable, str(tmp_path / "parent.py"), str(tmp_path / "child")]


def wait_for_number(file: Path) -> None:
    while not file.is_file() or not file.read_text():
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_output_and_the_exit_code_of_a_command_are_kept() -> None:
    ended = Processes().run("echo out; echo err >&2; exit 3")
    assert (ended.code, ended.stdout, ended.stderr, ended.late) == (3, "out\n", "err\n", False)


def test_a_command_has_no_input_and_the_variables_it_is_given(tmp_path: Path) -> None:
    ended = Processes().run("cat; echo $POINT $PWD", cwd=tmp_path, variables={"POINT": "v1"})
    assert ended.stdout == f"v1 {tmp_path}\n"


def test_output_that_is_not_utf8_does_not_stop_a_command() -> None:
    assert Processes().run(r"printf '\377ok'").stdout == "\N{REPLACEMENT CHARACTER}ok"


def test_the_last_lines_are_those_that_say_something() -> None:
    ended = Processes().run("seq 10; echo; echo the end >&2")
    assert ended.last_lines(2) == "10\nthe end"


def test_the_errors_of_a_build_are_told_before_what_came_after_them() -> None:
    said = "[1/9] Building\n  ../a.cpp:3:5: error: no such name\n  b.h:1: fatal error: no such file\nninja: stopped\nx"
    assert Ended(1, said, "", 1.0).errors() == "../a.cpp:3:5: error: no such name\nb.h:1: fatal error: no such file"
    assert Ended(1, "", "Traceback\nImportError: no module", 1.0).errors() == "ImportError: no module"
    assert Ended(1, "one\ntwo\n", "three", 1.0).errors(2) == "two\nthree"


def test_a_command_that_takes_too_long_is_killed_with_what_it_began(
    parent: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    communicate = subprocess.Popen.communicate

    def when_it_runs(process: subprocess.Popen[str], timeout: float | None = None) -> tuple[str, str]:
        if timeout is not None:
            wait_for_number(tmp_path / "child")
        return communicate(process, timeout=timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", when_it_runs)
    ended = Processes().run(parent, timeout=0.1)
    assert ended.late
    assert ended.code < 0
    assert not alive(int((tmp_path / "child").read_text()))


# Writes a lock file when it runs. The handler ``tidy`` removes the file on SIGTERM.
TIDY = """
import pathlib, signal, sys, time
lock = pathlib.Path(sys.argv[1])
def tidy(*_):
    lock.unlink()
    sys.exit(1)
signal.signal(signal.SIGTERM, {handler})
lock.write_text("held")
time.sleep(600)
"""


@pytest.mark.parametrize(("handler", "tidies"), [("tidy", True), ("signal.SIG_IGN", False)])
def test_a_stopped_command_may_tidy_up_and_is_killed_if_it_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handler: str, tidies: bool
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_S", 300.0 if tidies else 0.1)
    program, lock, runner = tmp_path / "tidy.py", tmp_path / "lock", Processes()
    program.write_text(TIDY.format(handler=handler))

    def run() -> None:
        with contextlib.suppress(Stopped):
            runner.run([sys.executable, str(program), str(lock)])

    thread = threading.Thread(target=run)
    thread.start()
    while not lock.is_file():
        time.sleep(0.01)
    runner.stop()
    thread.join(300)
    assert not thread.is_alive()
    assert lock.is_file() != tidies


def test_stopping_kills_what_runs_and_refuses_what_comes_after(parent: list[str], tmp_path: Path) -> None:
    processes, said = Processes(), []

    def run() -> None:
        try:
            processes.run(parent)
        except Stopped:
            said.append("stopped")

    thread = threading.Thread(target=run)
    thread.start()
    wait_for_number(tmp_path / "child")
    processes.stop()
    thread.join(300)
    assert said == ["stopped"]
    assert not alive(int((tmp_path / "child").read_text()))
    with pytest.raises(Stopped):
        processes.run(shlex.join(["touch", str(tmp_path / "after")]))
    assert not (tmp_path / "after").exists()
