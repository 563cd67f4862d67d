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
    """Fork as ``os.fork`` does, without the warning of Python 3.12 and later about other threads.

    Libraries start threads when they are loaded, before the first fork. A child may wait for a lock of one of these
    threads forever. Its parent ends it, like every child that hangs.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def asked_in_fork(question: Callable[[], int]) -> int:
    """Return the result of ``question`` in a forked child, so that this process does not change.

    A question to a device's module may load the device's driver, and after that no fork could use the device. If the
    child does not answer, because it dies, raises or hangs, ``question`` is called in this process.
    """
    reading, writing = os.pipe()
    child = fork()
    if not child:
        with contextlib.suppress(BaseException):  # the parent calls it again, and raises the error
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
