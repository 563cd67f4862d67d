"""The names of signals, and the signals that ask a run to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

# The signals of Ctrl-C, and of a CI whose time limit is exceeded. The whole process group gets them: the process that
# the user started ends the run, and the processes below it wait for that.
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)


def ignore_interruptions() -> None:
    """Ignore the signals that ask a run to end, in a process that another process ends."""
    for number in INTERRUPTIONS:
        signal.signal(number, signal.SIG_IGN)


def interrupt_once() -> None:
    """Raise KeyboardInterrupt at the first signal that asks this process to end. Ignore the signals after it.

    Some senders send two signals. A signal that the process ignores, as under nohup, stays ignored.
    """

    def interrupt(*_: object) -> NoReturn:
        ignore_interruptions()
        raise KeyboardInterrupt

    for number in INTERRUPTIONS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore the signals that ask a run to end, while the run cleans up. Does nothing outside of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in INTERRUPTIONS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def signal_name(status: int) -> str:
    """Return ``SIGSEGV`` for a process that this signal killed, ``exit code 3`` for a process that exited.

    ``status`` is an exit code or minus the signal's number, as in ``subprocess`` and ``os.waitstatus_to_exitcode``. A
    real-time signal has no name: ``signal 40``.
    """
    if status >= 0:
        return f"exit code {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
