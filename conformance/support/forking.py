"""Forks of a process in which libraries may have started threads."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import warnings
from collections.abc import Callable

#: Seconds that a fork may take to answer: other processes may keep all processors busy.
ANSWER_SECONDS = 60.0


def fork() -> int:
    """Return as ``os.fork``, without the warning of Python 3.12 and later about other threads.

    Libraries start threads when they are loaded, before the first fork. A child that waits for a lock of such a thread
    is ended by its parent, as any child is that hangs.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def asked_in_fork(question: Callable[[], int]) -> int:
    """Return the answer of a forked child, which leaves this process as it was.

    A question to a device's module may load its driver, and after that no fork could use the device. If the child does
    not answer, because it dies, raises or hangs, the question is asked in this process.
    """
    reading, writing = os.pipe()
    child = fork()
    if not child:
        with contextlib.suppress(BaseException):  # the parent asks again, and raises it
            os.write(writing, str(int(question())).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        answered = select.select([answers], [], [], ANSWER_SECONDS)[0]
        if not answered:
            os.kill(child, signal.SIGKILL)
        answer = answers.read()
    os.waitpid(child, 0)
    return int(answer) if answer else int(question())
