"""The limit of a new process: one that hangs exceeds it, one that waits for a processor does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from conformance.scenarios import patience


def run(code: str, seconds: float) -> tuple[int, str, str]:
    return patience.run([sys.executable, "-S", "-c", code], seconds)


def test_a_process_that_ends_gives_its_code_and_its_output() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    assert run(code, 60) == (3, "out\n", "err\n")
    assert run("import os; os.kill(os.getpid(), 9)", 60) == (-9, "", "")


def test_a_process_ends_although_one_that_it_started_keeps_its_output_open() -> None:
    start = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    code, keeper, _ = run(f"import subprocess, sys; print({start}.pid)", 60)
    assert code == 0
    os.kill(int(keeper), signal.SIGKILL)


@pytest.mark.parametrize("code", ["import time; time.sleep(600)", "while True: pass"])
def test_a_process_that_hangs_has_not_ended_in_time(code: str) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run(code, 0.3)


def test_the_time_that_a_process_waits_for_a_processor_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    code, waited = "import time; time.sleep(1); print(1)", patience.waited_for_processor
    monkeypatch.setattr(patience, "waited_for_processor", lambda pid: dict.fromkeys(waited(pid) or [pid], 60.0))
    monkeypatch.setattr(patience, "_MOST", 1e6)
    assert run(code, 0.3) == (0, "1\n", "")


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the kernel counts no waiting")  # noqa: PTH110
def test_the_time_of_waiting_is_that_of_the_process_and_its_children() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = patience.waited_for_processor(os.getpid())
        assert {os.getpid(), child.pid} <= found.keys()
        assert all(seconds >= 0 for seconds in found.values())
    assert patience.waited_for_processor(child.pid) == {}


@pytest.mark.parametrize(("share", "exceeded"), [(0.9, False), (0.5, True), (0.96, True)])
def test_a_limit_is_exceeded_by_what_is_left_of_the_time_or_by_many_times_of_it(
    share: float, exceeded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(patience, "waited_for_processor", lambda pid: {pid: share * clock.now})
    limit = patience.Limit(os.getpid(), 10.0)
    assert not limit.is_exceeded()
    clock.now = 90.0 if share < 0.95 else 201.0
    assert limit.is_exceeded() is exceeded
