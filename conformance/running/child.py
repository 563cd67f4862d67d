"""A forked or spawned child process that answers requests, and the records of its death or hang. No torch."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import fcntl
import gc
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from conformance.lanes import sanitizers
from conformance.records import SanitizerReport
from conformance.running import sanitizer_report
from conformance.support.descriptors import ready
from conformance.support.forking import fork
from conformance.support.signals import ignore_interruptions
from conformance.support.time_limits import TimeLimit

# The exit code of a child in which the suite itself failed (sysexits' EX_SOFTWARE). An op may exit with this code too,
# so such a child also sends ``_LAST_REPLY``.
BROKEN = 70
_LAST_REPLY = {"broken": True}

_LENGTH = struct.Struct("<I")
_LOG_READ = 1 << 20  # bytes of a child's stderr that are read
_LOG_KEPT = 20_000  # characters that are kept: libc's message and the innermost frames come first
_LOG_MOST = 16 << 20  # bytes that a child's output may take on the disk
_TICK = 0.2  # seconds between two checks of the output's size
_STACK_S = 10.0  # seconds that a child may take to write its stack; enough on a busy machine too
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Death:
    """The end of a child during a request. ``status``: the exit code or minus the signal, as in subprocess."""

    status: int
    log: str
    report: SanitizerReport | None = None  # if a sanitizer stopped the child; then ``log`` is its text
    broken: bool = False  # whether the suite itself failed in the child, and not an op


@dataclass(frozen=True, slots=True)
class Hang:
    """The end of a child that was killed after ``seconds`` without a reply. ``log`` holds its Python stack."""

    seconds: float
    log: str


class Child:
    """A forked child that runs ``serve(request) -> reply``; both are JSON. See also :class:`Spawned`.

    The child's output is kept for the report, for example libc's message or the stack of a fatal signal. If the output
    is longer than ``_LOG_MOST``, only its beginning stays on the disk. The child has a temporary directory of its own,
    which :meth:`close` removes: an op that kills the process, or a server that the process started, leaves files there.
    """

    def __init__(self, serve: Callable[[Any], dict[str, Any]]) -> None:
        requests, replies = self._open()
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # the child's garbage collector must not write to the pages that it shares with the parent
        self.pid = fork()
        if self.pid == 0:
            os.close(self._requests)
            os.close(self._replies)
            os.environ.update(self._environment())
            tempfile.tempdir = None  # so that tempfile reads TMPDIR again
            live(serve, requests, replies, self._log.fileno())
        os.close(requests)
        os.close(replies)
        self._watch()

    def _open(self) -> tuple[int, int]:
        """Open the pipes, the log and the directory. Return the child's descriptors for requests and for replies."""
        self._directory = tempfile.mkdtemp(prefix=_prefix(os.getpid()))
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        fcntl.fcntl(self._log, fcntl.F_SETFL, fcntl.fcntl(self._log, fcntl.F_GETFL) | os.O_APPEND)  # see _cut
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        self._status: int | None = None
        self._asked_at = 0
        return requests, replies

    def _environment(self) -> dict[str, str]:
        """Return the environment variables in which the child differs from its parent."""
        return dict.fromkeys(("TMPDIR", "TEMP", "TMP"), self._directory)

    def _watch(self) -> None:
        """Open a descriptor that shows the end of the process. Processes that it started may keep its pipes open."""
        self._ended = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else -1

    def ask(self, request: Any, timeout: float) -> dict[str, Any] | Death | Hang:
        """Send one request and wait for its reply. After a Death or a Hang the child is gone: call close()."""
        limit = TimeLimit(self.pid, timeout)  # the child may be done with the request before _send returns
        self._send(request)
        return self._receive(limit)

    def _send(self, request: Any) -> None:
        self._cut(to=0)
        self._asked_at = os.fstat(self._log.fileno()).st_size
        data = json.dumps(request).encode()
        with contextlib.suppress(BrokenPipeError):  # the child died before the request; _receive finds the closed pipe
            os.write(self._requests, _LENGTH.pack(len(data)) + data)

    def _receive(self, limit: TimeLimit) -> dict[str, Any] | Death | Hang:
        head = self._read(_LENGTH.size, limit)
        body = self._read(_LENGTH.unpack(head)[0], limit) if isinstance(head, bytes) and head else head
        if body is None:
            return self._hung(limit.seconds)
        reply: dict[str, Any] = json.loads(body or "{}")
        if not body or reply == _LAST_REPLY:
            return self._death(broken=bool(body))
        return reply

    def _death(self, *, broken: bool) -> Death:
        self._reap()
        assert self._status is not None
        said = self._said()
        found = None if broken else sanitizer_report.parse(said)
        report = found.record() if found else None
        return Death(self._status, str(report) if report else said[:_LOG_KEPT], report, broken)

    def _cut(self, to: int) -> None:
        """Keep only the first ``to`` bytes of the output if it is longer than ``_LOG_MOST``."""
        if os.fstat(self._log.fileno()).st_size > _LOG_MOST:
            os.ftruncate(self._log.fileno(), to)

    def close(self) -> None:
        """End the child and wait for it."""
        if self._requests >= 0:
            os.close(self._requests)
            os.close(self._replies)
            self._requests = self._replies = -1
        if self._ended >= 0:
            os.close(self._ended)
            self._ended = -1
        self._reap()
        self._log.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def kill(self) -> None:
        """Kill the child."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
        self.close()

    def _read(self, count: int, limit: TimeLimit) -> bytes | None:
        """Return ``count`` bytes; b"" if the pipe is closed or the child ends first; None after the limit."""
        data = b""
        watched = [self._replies, *([self._ended] if self._ended >= 0 else [])]
        while len(data) < count:
            if limit.is_exceeded():
                return None
            found = ready(watched, min(limit.left, _TICK) or _TICK)
            self._cut(to=self._asked_at + _LOG_READ)
            if not found:
                continue
            if self._replies not in found and not ready([self._replies], 0):
                return b""
            more = os.read(self._replies, count - len(data))
            if not more:
                return b""
            data += more
        return data

    def _hung(self, seconds: float) -> Hang:
        """Make the child write its Python stack and end. Kill it if it does not end."""
        os.kill(self.pid, signal.SIGUSR1)
        if self._ended >= 0:
            ready([self._ended], _STACK_S)
        else:
            time.sleep(0.2)
        os.kill(self.pid, signal.SIGKILL)
        self._reap()
        return Hang(seconds, self._said()[:_LOG_KEPT])

    def _reap(self) -> None:
        if self._status is None:
            _, status = os.waitpid(self.pid, 0)
            self._status = os.waitstatus_to_exitcode(status)

    def _said(self) -> str:
        """Return the beginning of the child's stderr since the request."""
        self._log.seek(self._asked_at)
        return self._log.read(_LOG_READ).decode(errors="replace").strip()


class Spawned(Child):
    """A child that is a new interpreter, with the command ``python -m module ARGUMENTS``.

    The arguments are the parent's process id, the three file descriptors of :func:`live`, and further descriptors.
    ``first`` is the first request. The constructor does not wait for its reply.
    """

    def __init__(self, module: str, first: Any, *arguments: int, start_timeout: float = 600.0) -> None:
        """``arguments`` are file descriptors that the child inherits. ``start_timeout``: seconds."""
        requests, replies = self._open()
        given = (requests, replies, self._log.fileno(), *arguments)
        command = [sys.executable, "-m", module, *map(str, (os.getpid(), *given))]
        log, variables = self._log, os.environ | self._environment()
        self._process = subprocess.Popen(
            command, env=variables, pass_fds=given, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        self.pid = self._process.pid
        os.close(requests)
        os.close(replies)
        self._watch()
        self._send(first)
        self._start_timeout = start_timeout
        self._started = False

    def ask(self, request: Any, timeout: float) -> dict[str, Any] | Death | Hang:
        """Send one request and wait for its reply. Startup time does not count towards ``timeout``."""
        if not self._started:
            reply = self._receive(TimeLimit(self.pid, self._start_timeout))
            if not isinstance(reply, dict):
                return reply
            self._started = True
        return super().ask(request, timeout)

    def _reap(self) -> None:
        self._status = self._process.wait()


def live(serve: Callable[[Any], dict[str, Any]], requests: int, replies: int, log: int) -> NoReturn:
    """Answer requests with ``serve`` until the parent closes the pipe or dies. Does not return.

    ``requests``, ``replies`` and ``log`` are open file descriptors.
    """
    code = 0
    try:
        _settle(log)
        with os.fdopen(requests, "rb") as incoming, os.fdopen(replies, "wb") as outgoing:
            try:
                while head := incoming.read(_LENGTH.size):
                    _reply(outgoing, serve(json.loads(incoming.read(_LENGTH.unpack(head)[0]))))
            except SystemExit as e:  # an op that is written in Python ends its process
                code = e.code if isinstance(e.code, int) else int(e.code is not None)
            except BaseException:  # noqa: BLE001  # as below, but the reply tells the parent that the suite failed
                traceback.print_exc()
                sys.stderr.flush()
                code = BROKEN
                _reply(outgoing, _LAST_REPLY)
    except BaseException:  # noqa: BLE001  # the parent reads it from the log; no frame above this one may run twice
        traceback.print_exc()
        sys.stderr.flush()
        code = BROKEN
    os._exit(code)


def _reply(outgoing: IO[bytes], reply: dict[str, Any]) -> None:
    data = json.dumps(reply).encode()
    outgoing.write(_LENGTH.pack(len(data)) + data)
    outgoing.flush()


def _settle(log: int) -> None:
    """Ignore interruptions, die with the parent, leave no core file, and write all output to the log."""
    ignore_interruptions()
    tie_to(os.getppid())
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # core files fill a disk
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(nothing)
    sanitizers.report_to(2)
    sys.stdout = sys.stderr = os.fdopen(os.dup(log), "w")
    faulthandler.enable(sys.stderr, all_threads=False)
    # ``chain`` runs the signal's default action after the stack, which ends the process. The end of the process tells
    # the parent that the stack is complete.
    faulthandler.register(signal.SIGUSR1, sys.stderr, all_threads=True, chain=True)


def remove_directories(parent: int) -> None:
    """Remove the directories that the children of process ``parent`` left if a signal killed that process."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_prefix(parent)}*"):
        shutil.rmtree(directory, ignore_errors=True)


def _prefix(parent: int) -> str:
    return f"opc-{parent}-"  # short: a socket's path may have 104 characters


def tie_to(parent: int) -> None:
    """Kill this process when its parent, ``parent``, dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent is already dead
        os._exit(0)
