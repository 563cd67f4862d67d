"""pytest in a process that ends when the task that started it dies: ``python tied.py PID ...``.

The file is run by its path: a package that is imported before pytest has assertions that pytest cannot rewrite.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run pytest with the arguments after the process id of the parent."""
    parent = int(sys.argv.pop(1))
    sys.path[0] = str(Path.cwd())  # as `python -m pytest` does
    # Ray blocks SIGINT in its child processes, and a shell ignores SIGINT in background processes.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
