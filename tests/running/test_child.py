"""A forked child: replies, deaths and hangs."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conformance.running.child import BROKEN, Child, Death, Hang


def serve(request: Any) -> dict[str, Any]:
    if request == "segv":
        ctypes.string_at(0)
    if request == "abort":
        os.write(2, b"free(): invalid pointer\n")
        os.abort()
    if request == "sleep":
        time.sleep(60)
    if request == "raise":
        raise ValueError("of the suite's own making")
    return {"pid": os.getpid(), "echo": request}


@pytest.fixture
def child() -> Any:
    child = Child(serve)
    yield child
    child.close()


def test_one_child_answers_many_requests(child: Child) -> None:
    first, second = child.ask([1, "a"], 10), child.ask([2], 10)
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["echo"] == [1, "a"]
    assert first["pid"] == second["pid"] == child.pid != os.getpid()


@pytest.mark.parametrize(("how", "number"), [("segv", signal.SIGSEGV), ("abort", signal.SIGABRT)])
def test_a_death_names_its_signal(child: Child, how: str, number: signal.Signals) -> None:
    reply = child.ask(how, 10)
    assert isinstance(reply, Death)
    assert reply.status == -number


def test_a_death_keeps_the_c_library_s_last_words_and_the_stack(child: Child) -> None:
    reply = child.ask("abort", 10)
    assert isinstance(reply, Death)
    assert "free(): invalid pointer" in reply.log
    assert "in serve" in reply.log


def test_a_hang_is_killed_and_shows_where_it_hung(child: Child) -> None:
    started = time.monotonic()
    reply = child.ask("sleep", 0.5)
    assert time.monotonic() - started < 10
    assert isinstance(reply, Hang)
    assert "in serve" in reply.log


def test_a_broken_suite_is_told_from_a_dead_device(child: Child) -> None:
    reply = child.ask("raise", 10)
    assert isinstance(reply, Death)
    assert reply.status == BROKEN
    assert "of the suite's own making" in reply.log


def test_a_child_that_died_idle_is_found_dead_when_asked(child: Child) -> None:
    os.kill(child.pid, signal.SIGKILL)
    assert isinstance(child.ask("x", 10), Death)


def test_ctrl_c_is_the_parent_s_to_handle(child: Child) -> None:
    child.ask("settled", 10)
    os.kill(child.pid, signal.SIGINT)
    assert isinstance(child.ask("still here", 10), dict)


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_a_child_does_not_outlive_its_parent() -> None:
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:
        child = Child(serve)
        child.ask("settled", 10)
        os.write(writer, f"{child.pid}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(parent, 0)
    pid = int(os.read(reader, 32))
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _runs(pid):
        time.sleep(0.01)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
