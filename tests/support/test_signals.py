"""The name of the signal that ended a process."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from conformance.support.signals import signal_name, undisturbed


@pytest.mark.parametrize(
    ("program", "name"),
    [("os.abort()", "SIGABRT"), ("os.kill(os.getpid(), 40)", "signal 40"), ("exit(3)", "exit code 3")],
)
def test_the_return_code_of_a_process_gives_the_name_of_its_signal(program: str, name: str) -> None:
    ended = subprocess.run([sys.executable, "-c", f"import os; {program}"], check=False)
    assert signal_name(ended.returncode) == name


def test_interruptions_are_ignored_while_a_run_tidies_up_and_not_after_it() -> None:
    with undisturbed():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_thread_that_may_not_set_handlers_is_left_as_it_is() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def tidy() -> None:
        with undisturbed():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=tidy)
    thread.start()
    thread.join()
    assert seen == [before]


TWICE = """
import os, signal
from conformance.support.signals import interrupt_once

interrupt_once()
try:
    os.kill(os.getpid(), signal.SIGTERM)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
    print("ended in order")
"""


def test_a_second_signal_does_not_interrupt_the_end_of_a_run() -> None:
    done = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ended in order\n"), done.stderr
