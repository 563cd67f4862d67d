"""Python programs that tests run, forked from a process that has imported torch and the suite.

Importing torch and the suite takes two thirds of a short run. Where a fork could make a difference to the program, and
on systems other than Linux, the program gets a new process: see :func:`can_be_forked`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from conformance.triage.warm import Forked, Warm, forkable

ROOT = Path(__file__).parents[1]
LIMIT = 840  # seconds after which a run counts as hung
# A forked process handles PYTHONPATH as Python does. A process that compiles, for example in an earlier test, sets the
# others. They are read when Inductor is loaded, and the process that forks does not load it.
_OF_A_RUN = ("PYTHONPATH", "TORCHINDUCTOR_", "TORCH_WARM_POOL", "KMP_DUPLICATE_LIB_OK")
# Hypothesis's plugin imports all of Hypothesis at the end of a session, and no cell needs it.
WITHOUT_HYPOTHESIS = {"PYTEST_ADDOPTS": "-p no:hypothesispytest"}
_AT_FIRST = dict(os.environ)


def can_be_forked(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Return whether ``python -m MODULE`` or ``python FILE`` would do the same in a forked process.

    A run with pytest-xdist workers cannot be forked: its workers are new processes, which start from the properties
    that pytest reports of the first process. Neither can a run whose environment changes a variable that Python or
    torch reads at its start.
    """
    if sys.platform != "linux" or command[0] != sys.executable:
        return False
    if not command[1].startswith("-m") and not command[1].endswith(".py"):
        return False
    if any(word.startswith("-n") for word in command):  # workers
        return False
    changed = {name for name, _ in environment.items() ^ _AT_FIRST.items()}
    return forkable({name: "" for name in changed if not name.startswith(_OF_A_RUN)})


class Run:
    """A forked process, with the methods of ``subprocess.Popen`` that tests and pytester use."""

    stdin = None

    def __init__(self, forked: Forked, outputs: Sequence[Path]) -> None:
        self._forked = forked
        self._outputs = outputs
        self.pid = forked.pid

    @property
    def returncode(self) -> int | None:
        return self._forked.returncode

    def poll(self) -> int | None:
        return self._forked.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code or minus the signal.

        Raises subprocess.TimeoutExpired. Without ``timeout``, kills a process that hangs and raises AssertionError.
        """
        try:
            return self._forked.wait(LIMIT if timeout is None else timeout)
        except subprocess.TimeoutExpired:
            if timeout is not None:
                raise
        os.kill(self.pid, signal.SIGABRT)  # pytest's faulthandler prints its stack
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._forked.wait(5)
        self.kill()
        said = "\n".join(file.read_text(errors="replace")[-10_000:] for file in self._outputs)
        raise AssertionError(f"the run did not end within {LIMIT} s; its output:\n{said}")

    def kill(self) -> None:
        """Kill the process and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def start(
    command: Sequence[str], directory: Path, stdout: IO[Any], stderr: IO[Any] | None = None, **variables: str
) -> Run | subprocess.Popen[bytes]:
    """Start a program in a session of its own, forked where a fork makes no difference.

    ``stdout`` and ``stderr``: named files. Without ``stderr``, both outputs go to ``stdout``. ``variables``:
    environment variables, in addition to those of this process.
    """
    environment = {**os.environ, **WITHOUT_HYPOTHESIS, **variables}
    if not can_be_forked(command, environment):
        errors = stderr or subprocess.STDOUT
        return subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=stdout, stderr=errors, env=environment,
            start_new_session=True,
        )  # fmt: skip
    words = ["-m", command[1][2:], *command[2:]] if command[1] != "-m" and command[1].startswith("-m") else command[1:]
    outputs = [Path(file.name) for file in (stdout, stderr) if file]
    arguments = [str(directory), str(Path(stderr.name).absolute()) if stderr else "", *words]
    return Run(_process().run("tests.forked_process", arguments, environment, stdout), outputs)


def run(command: Sequence[str], directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program as :func:`start` does, and return its exit code and its outputs."""
    with TemporaryDirectory() as place:
        files = [Path(place) / name for name in ("stdout", "stderr")]
        with files[0].open("wb") as stdout, files[1].open("wb") as stderr:
            code = start(command, directory, stdout, stderr, **variables).wait()
        return subprocess.CompletedProcess(command, code, *(file.read_text(errors="replace") for file in files))


@cache
def _process() -> Warm:
    """Return the process that forks. It starts with the first program, and uses no device.

    Besides its main thread, it has only threads of numpy's linear algebra, which starts them again after a fork.
    """
    warm = Warm(sys.executable, ("tests.forked_process",), {"PYTHONPATH": str(ROOT)})
    atexit.register(warm.__exit__)
    return warm
