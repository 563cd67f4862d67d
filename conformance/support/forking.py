"""Forks of a process in which libraries may have started threads."""

from __future__ import annotations

import os
import warnings


def fork() -> int:
    """Return as ``os.fork``, without the warning of Python 3.12 and later about other threads.

    Libraries start threads when they are loaded, before the first fork. A child that waits for a lock of such a thread
    is ended by its parent, as any child is that hangs.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
