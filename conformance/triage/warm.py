"""A process that has imported torch and the suite, but no backend, and forks the processes of lanes.

``python -m conformance.triage.warm FD MODULE...`` imports the modules first; without MODULE, those of triage. FD is the
descriptor of a socket with requests. A request is a JSON object with ``module``, ``arguments`` and ``environment``, and
four descriptors: standard input, output and error, and a pipe for two lines of status. These are the process id, and
the return code as in subprocess.

Importing torch takes longer than a small program runs. A lane's variables are set before its backend is imported; see
:func:`forkable` for variables that are read earlier.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from conformance.running.child import tie_to
from conformance.support.descriptors import ready
from conformance.support.signals import INTERRUPTIONS, ignore_interruptions

# Variables that the loader, libc, Python or torch read before a backend is imported.
READ_AT_START = (
    "LD_", "GLIBC_", "MALLOC_", "ASAN_", "LSAN_", "TSAN_", "UBSAN_", "PYTHON", "OMP_", "GOMP_", "KMP_", "MKL_",
    "OPENBLAS_", "DNNL_", "ONEDNN_", "ATEN_", "TORCH", "PYTORCH_", "CUDA_",
)  # fmt: skip
AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"  # by default, torch imports installed backends
_LOADED = ("conformance.triage.worker", "conformance.triage.watch", "conformance.triage.prober")
_NOTHING = Path(os.devnull)
_MOST = 1 << 20  # bytes of a request


def forkable(variables: Mapping[str, str]) -> bool:
    """Return whether these variables can be set in a forked process, because nothing has read them yet."""
    return not any(name.startswith(READ_AT_START) for name in variables)


class Forked:
    """A forked process, with the methods of ``subprocess.Popen`` that triage uses."""

    def __init__(self, status: int, stdin: IO[str] | None = None, stdout: IO[str] | None = None) -> None:
        """``status``: the descriptor of the two status lines. Raises ConnectionError if the first is missing."""
        self._status, self.stdin, self.stdout = status, stdin, stdout
        first = self._line()
        if not first:
            os.close(status)
            raise ConnectionError("the warm process has ended")
        self.pid = int(first)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code or minus the signal, None while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Return the exit code or minus the signal. Raises TimeoutExpired; ``timeout`` in seconds."""
        if self.returncode is None:
            if not ready([self._status], timeout):
                raise subprocess.TimeoutExpired(f"forked process {self.pid}", timeout or 0)
            self.returncode = int(self._line() or -signal.SIGKILL)  # the warm process is gone, and its children with it
            os.close(self._status)
        return self.returncode

    def kill(self) -> None:
        """Kill the process."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _line(self) -> str:
        line = b""
        while not line.endswith(b"\n") and (byte := os.read(self._status, 1)):
            line += byte
        return line.decode()


class Warm:
    """The warm process of an interpreter, as a context manager. Its forked processes die with it."""

    def __init__(self, python: str, loaded: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> None:
        """``loaded``: the modules that it imports; none of them may start threads. By default those of triage.

        ``variables``: added to the environment of this process.
        """
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [python, "-m", __name__, str(theirs.fileno()), *loaded]
            environment = {**os.environ, **(variables or {}), AUTOLOAD: "0"}
            fd = theirs.fileno()
            self._process = subprocess.Popen(command, pass_fds=[fd], env=environment, stdin=subprocess.DEVNULL)

    def __enter__(self) -> Warm:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.wait()

    def run(self, module: str, arguments: Sequence[str], environment: Mapping[str, str], output: IO[bytes]) -> Forked:
        """Run ``python -m module arguments`` in that environment. Its output goes to ``output``."""
        with _NOTHING.open("rb") as nothing:
            return Forked(self._ask(module, arguments, environment, [nothing.fileno(), *[output.fileno()] * 2]))

    def talk(self, module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Forked:
        """Run a module as :meth:`run` does, with pipes for its standard input and output."""
        reads, stdin = os.pipe()
        stdout, writes = os.pipe()
        ours = os.fdopen(stdin, "w"), os.fdopen(stdout)
        with os.fdopen(reads), os.fdopen(writes, "w"), _NOTHING.open("wb") as nothing:
            return Forked(self._ask(module, arguments, environment, [reads, writes, nothing.fileno()]), *ours)

    def _ask(self, module: str, arguments: Sequence[str], environment: Mapping[str, str], streams: list[int]) -> int:
        status, theirs = os.pipe()
        request = {"module": module, "arguments": list(arguments), "environment": dict(environment)}
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], [*streams, theirs])
        except OSError:
            os.close(status)
            raise
        finally:
            os.close(theirs)
        return status


def main(fd: int, loaded: Sequence[str] = ()) -> None:
    """Fork processes until the socket is closed. Ignore Ctrl-C, which the forked processes and the parent handle."""
    usual = {number: signal.getsignal(number) for number in INTERRUPTIONS}
    ignore_interruptions()
    for module in loaded or _LOADED:
        importlib.import_module(module)
    gc.freeze()  # a child's garbage collector must not write to shared pages
    waiting: set[int] = set()  # helper processes, each of which waits for a requested process
    with socket.socket(fileno=fd) as requests:
        while True:
            data, descriptors, _, _ = socket.recv_fds(requests, _MOST, 4)
            if not data:
                break
            pid = os.fork()
            if pid == 0:
                requests.close()
                _wait_for_one(json.loads(data), descriptors, usual)
            waiting.add(pid)
            waiting -= _ended(waiting)
            for each in descriptors:
                os.close(each)
    ends = time.monotonic() + 1  # processes that still run after that die with this process
    while waiting and time.monotonic() < ends:
        waiting -= _ended(waiting)
        time.sleep(0.01)


def _ended(pids: set[int]) -> set[int]:
    return {pid for pid in pids if os.waitpid(pid, os.WNOHANG)[0]}


def _wait_for_one(request: dict[str, Any], descriptors: list[int], handlers: Mapping[signal.Signals, Any]) -> NoReturn:
    *streams, status = descriptors
    tie_to(os.getppid())
    here = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(status)
        tie_to(here)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        _become(request, streams)
    for each in streams:
        os.close(each)
    os.write(status, f"{pid}\n".encode())
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(BrokenPipeError):
        os.write(status, f"{ended}\n".encode())
    os._exit(0)


def _become(request: dict[str, Any], streams: list[int]) -> NoReturn:
    for target, each in enumerate(streams):
        os.dup2(each, target)
        os.close(each)
    os.environ.clear()
    os.environ.update(request["environment"])
    random.seed()  # as in a new process
    code = 0
    try:
        importlib.import_module(request["module"]).main(request["arguments"])
    except BaseException:  # noqa: BLE001  # nothing above this frame may run twice
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
