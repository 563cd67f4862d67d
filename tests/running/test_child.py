"""A forked child: replies, deaths and hangs."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.running.child import BROKEN, Child, Death, Hang
from conformance.support.descriptors import ready
from tests.hangs import Hangs

ROOT = Path(__file__).parents[2]


def in_another_thread() -> None:
    thread = threading.Thread(target=ctypes.string_at, args=(0,))
    thread.start()
    thread.join()


def leaves_a_process() -> None:
    """Die and leave a process that holds the pipes open."""
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
    os.abort()


# The ways in which an op may end its process, and the exit statuses.
ENDS: dict[str, Callable[[], object]] = {
    "crash in another thread": in_another_thread,
    "C exit": lambda: ctypes.CDLL(None).exit(3),
    "_exit": lambda: os._exit(70),
    "sys.exit": lambda: sys.exit(70),
    "SIGFPE": lambda: os.kill(os.getpid(), signal.SIGFPE),
    "a process left behind": leaves_a_process,
}
STATUS = {
    "crash in another thread": -signal.SIGSEGV, "C exit": 3, "_exit": 70, "sys.exit": 70, "SIGFPE": -signal.SIGFPE,
    "a process left behind": -signal.SIGABRT,
}  # fmt: skip


def serve(request: Any) -> dict[str, Any]:
    if request == "segv":
        ctypes.string_at(0)
    if request == "abort":
        os.write(2, b"free(): invalid pointer\n")
        os.abort()
    if request == "raise":
        raise ValueError("of the suite's own making")
    if isinstance(request, str) and request in ENDS:
        ENDS[request]()
    return {"pid": os.getpid(), "echo": request}


@pytest.fixture
def child() -> Any:
    child = Child(serve)
    yield child
    child.close()


def test_one_child_process_answers_many_requests(child: Child) -> None:
    first, second = child.ask([1, "a"], 60), child.ask([2], 60)
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["echo"] == [1, "a"]
    assert first["pid"] == second["pid"] == child.pid != os.getpid()


@pytest.fixture
def a_thousand_files() -> Iterator[None]:
    """Open so many files that the next descriptors exceed 1023, the limit of ``select.select()``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]
    yield
    for descriptor in opened:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("a_thousand_files")
def test_a_child_answers_and_dies_in_a_process_with_a_thousand_open_files() -> None:
    child = Child(serve)
    assert isinstance(child.ask([1], 60), dict)
    assert isinstance(child.ask("segv", 60), Death)
    child.close()


@pytest.mark.parametrize(("how", "number"), [("segv", signal.SIGSEGV), ("abort", signal.SIGABRT)])
def test_the_reply_of_a_dead_child_has_its_signal(child: Child, how: str, number: signal.Signals) -> None:
    reply = child.ask(how, 60)
    assert isinstance(reply, Death)
    assert reply.status == -number


def test_the_reply_of_a_dead_child_has_its_stderr_and_python_stack(child: Child) -> None:
    reply = child.ask("abort", 60)
    assert isinstance(reply, Death)
    assert "free(): invalid pointer" in reply.log
    assert "in serve" in reply.log


def test_a_child_that_hangs_is_stopped_and_its_python_stack_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = Child(Hangs(tmp_path, monkeypatch).hang)
    reply = child.ask("x", 0.5)
    assert isinstance(reply, Hang)
    assert reply.seconds == 0.5
    assert "in hang" in reply.log
    assert "in live" in reply.log
    child.close()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="a child's end is waited for on Linux")
def test_the_stack_of_a_child_that_hangs_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child is stopped before it has written its stack, and goes on only when its end is waited for."""
    child = Child(Hangs(tmp_path, monkeypatch).hang)
    kill, stopped = os.kill, list[int]()

    def stopping(pid: int, number: int) -> None:
        if number == signal.SIGUSR1:
            kill(pid, signal.SIGSTOP)
            stopped.append(pid)
        kill(pid, number)

    def waited(descriptors: list[int], seconds: float | None) -> list[int]:
        if stopped:
            kill(stopped.pop(), signal.SIGCONT)
        return ready(descriptors, seconds)

    monkeypatch.setattr(os, "kill", stopping)
    monkeypatch.setattr("conformance.running.child.ready", waited)
    reply = child.ask("x", 0.5)
    assert isinstance(reply, Hang)
    assert "in live" in reply.log
    child.close()


def test_an_exception_of_the_suite_in_a_child_is_marked_as_broken(child: Child) -> None:
    reply = child.ask("raise", 60)
    assert isinstance(reply, Death)
    assert reply.status == BROKEN
    assert reply.broken
    assert "of the suite's own making" in reply.log


@pytest.mark.parametrize("how", sorted(ENDS.keys() - {"C exit"}))
def test_no_exit_or_signal_of_a_child_is_taken_for_a_broken_suite(child: Child, how: str) -> None:
    reply = child.ask(how, 60)
    assert isinstance(reply, Death)
    assert (reply.status, reply.broken) == (STATUS[how], False)


def test_a_c_exit_of_a_child_is_not_taken_for_a_broken_suite() -> None:
    """The test uses a new process: C's exit waits for threads of libraries, which a child of this process may lack."""
    program = f"""
from conformance.running.child import Child
from {__name__} import serve
child = Child(serve)
reply = child.ask("C exit", 60)
child.close()
print(type(reply).__name__, reply.status, reply.broken)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert told.stdout == f"Death {STATUS['C exit']} False\n", told.stderr


def flood(to: int) -> dict[str, Any]:
    """Write 200 MB, then wait, so that the parent can look at the log."""
    os.write(to, b"the first words\n")
    for _ in range(200):
        os.write(to, b"x" * (1 << 20))
    time.sleep(1)
    return {}


@pytest.mark.parametrize("descriptor", [1, 2])
def test_a_child_that_prints_megabytes_leaves_a_small_log(descriptor: int) -> None:
    child = Child(lambda request: os.abort() if request == "die" else flood(descriptor))
    assert child.ask("flood", 60) == {}
    assert os.fstat(child._log.fileno()).st_blocks * 512 < 32 << 20  # noqa: SLF001  # the file has no name
    assert isinstance(child.ask("die", 60), Death)
    child.close()


def test_a_child_neither_prints_to_the_terminal_nor_reads_from_it(
    child: Child, capfd: pytest.CaptureFixture[str]
) -> None:
    one = Child(lambda _: {"read": os.read(0, 1).hex(), "said": print("heard?"), "c": os.write(1, b"heard?")})
    assert one.ask("x", 60) == {"read": "", "said": None, "c": 6}
    one.close()
    assert "heard?" not in capfd.readouterr().out


@pytest.mark.parametrize("end", ["segv", "done"])
def test_a_child_leaves_nothing_in_the_temporary_directory(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve_with_files(request: Any) -> dict[str, Any]:
        if request == "segv":
            ctypes.string_at(0)
        of_c = subprocess.run("mktemp", capture_output=True, text=True, check=True).stdout.strip()
        return {"made": [tempfile.mkdtemp(), of_c]}

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    child = Child(serve_with_files)
    reply = child.ask("make", 60)
    assert isinstance(reply, dict)
    assert all(Path(made).exists() and tmp_path in Path(made).parents for made in reply["made"])
    child.ask(end, 60)
    child.close()
    assert [*tmp_path.iterdir()] == []


def test_a_request_to_a_dead_child_returns_its_death(child: Child) -> None:
    os.kill(child.pid, signal.SIGKILL)
    assert isinstance(child.ask("x", 60), Death)


def test_a_child_ignores_ctrl_c(child: Child) -> None:
    child.ask("settled", 60)
    os.kill(child.pid, signal.SIGINT)
    assert isinstance(child.ask("still here", 60), dict)


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_a_forked_child_ends_with_its_parent() -> None:
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:
        child = Child(serve)
        child.ask("settled", 60)
        os.write(writer, f"{child.pid}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(parent, 0)
    pid = int(os.read(reader, 32))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and _runs(pid):
        time.sleep(0.01)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
