"""The ends of the processes of calls."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conformance.aoti.session import end_of


@pytest.mark.parametrize(
    ("code", "timeout", "said"),
    [("", 60, ""), ("exit(3)", 60, "exit code 3"), ("import os; os.kill(os.getpid(), 15)", 60, "SIGTERM"),
     ("import time; time.sleep(60)", 0.1, "timeout")],
)  # fmt: skip
def test_the_end_of_a_process_is_named(code: str, timeout: float, said: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", code])
    assert end_of(process, timeout) == said
    assert process.returncode is not None


def test_a_process_that_is_waited_for_ends_with_an_interruption() -> None:
    class Endless:
        killed = False

        def wait(self, timeout: float | None = None) -> int:
            if not self.killed:
                raise KeyboardInterrupt
            return -9

        def kill(self) -> None:
            self.killed = True

    process = Endless()
    with pytest.raises(KeyboardInterrupt):
        end_of(process, 60)
    assert process.killed
