"""Forks of a process with several threads."""

from __future__ import annotations

import os
import threading
import warnings

from conformance.support.forking import fork


def test_a_fork_beside_a_thread_warns_of_nothing() -> None:
    done = threading.Event()
    beside = threading.Thread(target=done.wait)
    beside.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pid = fork()
            if not pid:
                os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        done.set()
        beside.join()
