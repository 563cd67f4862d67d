"""The code of a forked process that runs a module or a file as a new Python process does.

The parent imports this module, and with it the slowest imports and reads of a run. It imports no plugin of another
distribution, because pytest could no longer rewrite the plugin's assertions. :class:`conformance.triage.warm.Warm`
calls :func:`main` in the forked process.
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

import duckdb  # noqa: F401  # a run needs it to close its results
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

# A run reads these from the suite's files and from torch, and no backend changes them.
reader.load()
file.load_all()
file.overloads()
ops.families()
inventory.exists("add.Tensor")
# pytest warns about modules that were imported before it could rewrite their assertions. The suite's need no rewriting.
for module in (conformance, conformance.plugin):
    module.__doc__ = f"{module.__doc__}\nPYTEST_DONT_REWRITE"

if threading.active_count() > 1:
    raise RuntimeError(f"a forked process would miss the threads of what was imported: {threading.enumerate()}")

# Without the directory that `python -m` puts first, and the entries of PYTHONPATH.
_PATH = [entry for entry in sys.path[1:] if entry not in os.environ["PYTHONPATH"].split(os.pathsep)]
_OWN = [name for name in sys.modules if name.partition(".")[0] == "tests"]


def main(arguments: Sequence[str]) -> NoReturn:
    """Run a program and end this process as Python would.

    ``arguments``: the working directory; a file for standard error ("" if it goes to standard output); and the rest of
    the command after the interpreter: ``-m MODULE`` or the path of a file, and arguments.
    """
    directory, errors, *command = arguments
    os.setsid()  # the caller may send a signal to the process group
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
    """Set the state that Python and torch set at their start, and load the backends."""
    named = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    first = Path.cwd() if command[0] == "-m" else Path(command[0]).resolve().parent
    sys.path[:] = [str(first), *named, *_PATH]
    sys.orig_argv = [sys.executable, *command]
    sys.argv = ["-m", *command[2:]] if command[0] == "-m" else command
    for name in _OWN:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    settle_threads()
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD") != "0":  # the parent imports no backend
        for backend in entry_points(group="torch.backends"):
            backend.load()()


def _run(command: list[str]) -> int:
    """Run a program. Return its exit code, or minus the signal that ends it."""
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
    except BaseException:  # noqa: BLE001  # the forked process must not return to the parent's frames
        traceback.print_exc()
        return 1
    return 0
