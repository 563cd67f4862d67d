"""A forked or spawned child process that answers requests, and the records of its death or hang. No torch."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import json
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from conformance.lanes import sanitizers
from conformance.records import SanitizerReport
from conformance.running import sanitizer_report
from conformance.support.signals import ignore_interruptions

# The exit code of a child in which the suite itself failed (sysexits' EX_SOFTWARE).
BROKEN = 70

_LENGTH = struct.Struct("<I")
_LOG_READ = 1 << 20  # bytes of a child's stderr that are read
_LOG_KEPT = 3000  # characters that are kept: libc's message and the innermost frames come first
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Death:
    """The child ended during a request. ``status``: the exit code or minus the signal, as in subprocess."""

    status: int
    log: str
    report: SanitizerReport | None = None  # if a sanitizer stopped the child; then ``log`` is its text


@dataclass(frozen=True, slots=True)
class Hang:
    """The child was killed because it took longer than ``seconds``; ``log`` holds its Python stack."""

    seconds: float
    log: str


class Child:
    """A forked child that runs ``serve(request) -> reply``; both are JSON. See also :class:`Spawned`.

    The child's stderr is kept for the report: libc's message, or the stack of a fatal signal.
    """

    def __init__(self, serve: Callable[[Any], dict[str, Any]]) -> None:
        requests, replies = self._open()
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # the child's garbage collector must not write to the pages that it shares with the parent
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._requests)
            os.close(self._replies)
            live(serve, requests, replies, self._log.fileno())
        os.close(requests)
        os.close(replies)

    def _open(self) -> tuple[int, int]:
        """Open the pipes and the log. Return the child's descriptors for requests and for replies."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        self._status: int | None = None
        self._asked_at = 0
        return requests, replies

    def ask(self, request: Any, timeout: float) -> dict[str, Any] | Death | Hang:
        """Send one request and wait for its reply. After a Death or a Hang the child is gone: call close()."""
        self._send(request)
        return self._receive(timeout)

    def _send(self, request: Any) -> None:
        self._asked_at = os.fstat(self._log.fileno()).st_size
        data = json.dumps(request).encode()
        with contextlib.suppress(BrokenPipeError):  # the child died before the request; _receive finds the closed pipe
            os.write(self._requests, _LENGTH.pack(len(data)) + data)

    def _receive(self, timeout: float) -> dict[str, Any] | Death | Hang:
        deadline = time.monotonic() + timeout
        head = self._read(_LENGTH.size, deadline)
        body = self._read(_LENGTH.unpack(head)[0], deadline) if isinstance(head, bytes) and head else head
        if body is None:
            return self._hung(timeout)
        if not body:
            self._reap()
            assert self._status is not None
            said = self._said()
            found = sanitizer_report.parse(said)
            report = found.record() if found else None
            return Death(self._status, str(report) if report else said[:_LOG_KEPT], report)
        reply: dict[str, Any] = json.loads(body)
        return reply

    def close(self) -> None:
        """End the child and wait for it."""
        if self._requests >= 0:
            os.close(self._requests)
            os.close(self._replies)
            self._requests = self._replies = -1
        self._reap()
        self._log.close()

    def kill(self) -> None:
        """Kill the child."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
        self.close()

    def _read(self, count: int, deadline: float) -> bytes | None:
        """Return ``count`` bytes; b"" if the pipe was closed before; None after the deadline."""
        data = b""
        while len(data) < count:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._replies], [], [], left)[0]:
                return None
            more = os.read(self._replies, count - len(data))
            if not more:
                return b""
            data += more
        return data

    def _hung(self, timeout: float) -> Hang:
        """Let the child write its Python stack, wait a moment, and kill it."""
        os.kill(self.pid, signal.SIGUSR1)
        time.sleep(0.2)
        os.kill(self.pid, signal.SIGKILL)
        self._reap()
        return Hang(timeout, self._said()[:_LOG_KEPT])

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
        log = self._log
        self._process = subprocess.Popen(command, pass_fds=given, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.pid = self._process.pid
        os.close(requests)
        os.close(replies)
        self._send(first)
        self._start_timeout = start_timeout
        self._started = False

    def ask(self, request: Any, timeout: float) -> dict[str, Any] | Death | Hang:
        """Send one request and wait for its reply. Startup time does not count towards ``timeout``."""
        if not self._started:
            reply = self._receive(self._start_timeout)
            if not isinstance(reply, dict):
                return reply
            self._started = True
        return super().ask(request, timeout)

    def _reap(self) -> None:
        self._status = self._process.wait()


def live(serve: Callable[[Any], dict[str, Any]], requests: int, replies: int, log: int) -> NoReturn:
    """Answer requests by ``serve`` until the parent closes the pipe or dies. Does not return.

    ``requests``, ``replies`` and ``log`` are open file descriptors.
    """
    code = 0
    try:
        _settle(log)
        with os.fdopen(requests, "rb") as incoming, os.fdopen(replies, "wb") as outgoing:
            while head := incoming.read(_LENGTH.size):
                reply = json.dumps(serve(json.loads(incoming.read(_LENGTH.unpack(head)[0])))).encode()
                outgoing.write(_LENGTH.pack(len(reply)) + reply)
                outgoing.flush()
    except BaseException:  # noqa: BLE001  # the parent reads it from the log; nothing above this frame may run twice
        traceback.print_exc()
        sys.stderr.flush()
        code = BROKEN
    os._exit(code)


def _settle(log: int) -> None:
    """Ignore interruptions, die with the parent, and write stderr and the stacks of fatal signals to the log."""
    ignore_interruptions()
    tie_to(os.getppid())
    os.dup2(log, 2)
    sanitizers.report_to(2)
    sys.stderr = os.fdopen(os.dup(log), "w")
    faulthandler.enable(sys.stderr, all_threads=False)
    faulthandler.register(signal.SIGUSR1, sys.stderr, all_threads=True)


def tie_to(parent: int) -> None:
    """Kill this process when its parent, ``parent``, dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent is already dead
        os._exit(0)
