"""The time limit of a new process: a hang exceeds it, and waiting for a processor does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import count

import pytest

from conformance.scenarios import patience
from conformance.support import time_limits


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
    code, hours = "import time; time.sleep(1); print(1)", count(0, 3600.0)
    monkeypatch.setattr(time_limits, "waited_for_processor", lambda pid: {pid: next(hours)})
    monkeypatch.setattr(time_limits, "_MOST", 1e6)
    assert run(code, 0.6) == (0, "1\n", "")
