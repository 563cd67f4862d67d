"""The name of the signal that ended a process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conformance.support.signals import signal_name


@pytest.mark.parametrize(
    ("program", "name"),
    [("os.abort()", "SIGABRT"), ("os.kill(os.getpid(), 40)", "signal 40"), ("exit(3)", "exit code 3")],
)
def test_the_return_code_of_a_process_gives_the_name_of_its_signal(program: str, name: str) -> None:
    ended = subprocess.run([sys.executable, "-c", f"import os; {program}"], check=False)
    assert signal_name(ended.returncode) == name
