"""The name of the signal that ended a process."""

from __future__ import annotations

import signal


def signal_name(status: int) -> str:
    """Return ``SIGSEGV`` for a process that this signal killed, ``exit code 3`` for one that exited.

    ``status`` is an exit code or minus the signal's number, as ``subprocess`` and ``os.waitstatus_to_exitcode`` give
    it. A real-time signal has no name: ``signal 40``.
    """
    if status >= 0:
        return f"exit code {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
