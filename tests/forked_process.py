"""What a forked process does to run a module or a file as Python does in a new process.

The process that is forked imports this module and, with it, what takes a run longest to import and to read. No plugin
of another distribution is imported, because pytest could not rewrite its assertions any more. :func:`main` is called in
the forked process by :class:`conformance.triage.warm.Warm`.
"""

from __future__ import annotations

import atexit
import importlib
import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import NoReturn

import duckdb  # noqa: F401  # a run closes its results with it
import pytest  # noqa: F401

import conformance
import conformance.explain.repro
import conformance.plugin
import conformance.running.cell_runner
import conformance.running.pool
from conformance import inventory, ops
from conformance.corpus import reader
from conformance.models import file
from conformance.torch_versions import settle_threads

# What a run reads of the suite's files and of torch, which no backend changes.
reader.load()
file.load_all()
file.overloads()
ops.families()
inventory.exists("add.Tensor")
# pytest warns of modules that were imported before it could rewrite their assertions. It rewrites none of the suite's.
for module in (conformance, conformance.plugin):
    module.__doc__ = f"{module.__doc__}\nPYTEST_DONT_REWRITE"

if threading.active_count() > 1:
    raise RuntimeError(f"a forked process would miss the threads of what was imported: {threading.enumerate()}")

# Without the directory that `python -m` puts first, and the entries of PYTHONPATH.
_PATH = [entry for entry in sys.path[1:] if entry not in os.environ["PYTHONPATH"].split(os.pathsep)]
_OWN = [name for name in sys.modules if name.partition(".")[0] == "tests"]


def main(arguments: Sequence[str]) -> NoReturn:
    """Run a program and end this process as Python would.

    ``arguments``: the working directory, a file for standard error ("" if it has the place of standard output), and
    what follows the interpreter in the command: ``-m MODULE`` or the path of a file, and arguments.
    """
    directory, errors, *command = arguments
    os.setsid()  # whoever starts it may send a signal to its group
    os.chdir(directory)
    if errors:
        _redirect_errors(errors)
    _be_new(command)
    code = _run(command)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()  # noqa: SLF001  # no public name calls them without ending the interpreter
    sys.stdout.flush()
    sys.stderr.flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _redirect_errors(file: str) -> None:
    descriptor = os.open(file, os.O_WRONLY)
    os.dup2(descriptor, sys.stderr.fileno())
    os.close(descriptor)


def _be_new(command: list[str]) -> None:
    """Put in place what Python and torch set at their start."""
    named = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    first = Path.cwd() if command[0] == "-m" else Path(command[0]).resolve().parent
    sys.path[:] = [str(first), *named, *_PATH]
    sys.orig_argv = [sys.executable, *command]
    sys.argv = ["-m", *command[2:]] if command[0] == "-m" else command
    for name in _OWN:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    settle_threads()
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD") != "0":  # the process that was forked imports no backend
        for backend in entry_points(group="torch.backends"):
            backend.load()()


def _run(command: list[str]) -> int:
    """Return the exit code of a program, or minus the signal that ends it."""
    try:
        if command[0] == "-m":
            runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(command[0], run_name="__main__")
    except SystemExit as e:
        if e.code is None or isinstance(e.code, int):
            return int(e.code or 0) & 0xFF
        print(e.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        traceback.print_exc()
        return -signal.SIGINT
    except BaseException:  # noqa: BLE001  # the forked process must not go on above this frame
        traceback.print_exc()
        return 1
    return 0
