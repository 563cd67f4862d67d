"""A forked child that answers requests one at a time, and what is known when it dies or hangs. No torch here."""

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
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from conformance import sanitizer_report, sanitizers
from conformance.sanitizer_report import Report

# The exit code of a child in which the suite itself broke (sysexits' EX_SOFTWARE).
BROKEN = 70

_LENGTH = struct.Struct("<I")
_LOG_READ = 1 << 20  # bytes, of what a child wrote
_LOG_KEPT = 3000  # characters: a libc's last words and the innermost frames come first
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Death:
    """The child ended in the middle of a request. ``status``: exit code, or minus the signal, as subprocess has it."""

    status: int
    log: str
    report: Report | None = None  # a sanitizer's, which stopped it; then the log is its short form


@dataclass(frozen=True, slots=True)
class Hang:
    """The child was killed because it took longer than ``seconds``; ``log`` holds its Python stack."""

    seconds: float
    log: str


class Child:
    """One forked child. ``serve(request) -> reply`` runs in it; both are JSON.

    What the child writes to stderr (a libc's last words, the stack of a fatal signal) is kept for the report.
    """

    def __init__(self, serve: Callable[[Any], dict[str, Any]]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # keep the parent's pages shared: the child's collector does not touch them
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._requests)
            os.close(self._replies)
            _live(serve, requests, replies, self._log.fileno())
        os.close(requests)
        os.close(replies)
        self._status: int | None = None
        self._asked_at = 0

    def ask(self, request: Any, timeout: float) -> dict[str, Any] | Death | Hang:
        """Send one request and wait for its reply. After a Death or a Hang the child is gone; call close()."""
        self._asked_at = os.fstat(self._log.fileno()).st_size
        data = json.dumps(request).encode()
        with contextlib.suppress(BrokenPipeError):  # it died idle: the read below sees the end of the pipe
            os.write(self._requests, _LENGTH.pack(len(data)) + data)
        deadline = time.monotonic() + timeout
        head = self._read(_LENGTH.size, deadline)
        body = self._read(_LENGTH.unpack(head)[0], deadline) if isinstance(head, bytes) and head else head
        if body is None:
            return self._hung(timeout)
        if not body:
            self._reap()
            assert self._status is not None
            said = self._said()
            report = sanitizer_report.parse(said)
            return Death(self._status, report.text() if report else said[:_LOG_KEPT], report)
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

    def _read(self, count: int, deadline: float) -> bytes | None:
        """``count`` bytes; b"" when the pipe ended before; None when the deadline passed."""
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
        """Ask for the stack, give it a moment to be written, and kill."""
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
        """The beginning of what the child wrote to stderr since the request."""
        self._log.seek(self._asked_at)
        return self._log.read(_LOG_READ).decode(errors="replace").strip()


def _live(serve: Callable[[Any], dict[str, Any]], requests: int, replies: int, log: int) -> NoReturn:
    """The child's whole life. It ends when the parent closes the pipe, or dies."""
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
    """Ctrl-C is the parent's to handle; the child dies with it; stderr and fatal stacks go to the log."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.dup2(log, 2)
    sanitizers.report_to(2)
    sys.stderr = os.fdopen(os.dup(log), "w")
    faulthandler.enable(sys.stderr, all_threads=False)
    faulthandler.register(signal.SIGUSR1, sys.stderr, all_threads=True)
