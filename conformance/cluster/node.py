"""One task on a node: it makes the environment, runs pytest with one shard, and sends the records."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from conformance.cluster import environment
from conformance.cluster.model import ClusterError, Ended, Mail, News, Order, State
from conformance.lanes import process
from conformance.lanes.sanitizers import NoRuntime
from conformance.results.store import journal, runs
from conformance.support.exit_codes import Exit
from conformance.support.signals import signal_name
from conformance.support.toml_table import TomlError
from conformance.vocabulary import CellId

BEFORE_THE_USERS = "-rN"  # the last argument of pytest before the user's arguments
_EVERY = 0.5  # seconds between two looks at the journal
_LINES = 3  # of pytest's output, in a reason
_ENDING = 60.0  # seconds that pytest has to close its results after an interruption
_NO_RESULTS = (Exit.INTERRUPTED, Exit.INTERNAL, Exit.USAGE)


class ProcessDied(RuntimeError):
    """A signal ended pytest; the shard can be tried again."""


def run(order: Order, durations: Mapping[str, bytes], mail: Mail, where: str) -> Ended:
    """Run a shard, or list the cells of the lane, on the node called ``where``.

    ``durations``: the files of the closed run whose durations split the cells. Raises ProcessDied. All other failures
    are returned as a result.
    """
    begun = mail.begin(order.key, where)
    if not begun.attempt:
        return Ended(State.FAILED if begun.reason else State.STOPPED, where, begun.reason)
    try:
        environment.ensure(Path(order.root), order.environment, order.token, reuse=order.reuse)
        start = process.start(Path(order.root), order.lane)
        with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
            shard = _Shard(order, start, Path(scratch), where)
            return shard.run(durations, mail, begun.attempt) if order.shard else shard.cells()
    except (ClusterError, LookupError, NoRuntime, TomlError, OSError) as e:
        return Ended(State.FAILED, where, f"node {where}: {e.args[0] if isinstance(e, LookupError) else e}")


class _Shard:
    """One attempt at an order, in a directory of its own."""

    def __init__(self, order: Order, start: process.Start, scratch: Path, where: str) -> None:
        self._order, self._start, self._where = order, start, where
        self._results = scratch / "results"
        self._log = scratch / "log"

    def cells(self) -> Ended:
        """List the lane's cells. Return their ids in the result."""
        with self._pytest("--collect-only", "-q") as child:
            code = child.wait()
        cells = tuple(str(cell) for line in self._text().splitlines() if (cell := CellId.parse(line.strip())))
        if code or not cells:
            return self._failed(code)
        return Ended(State.ENDED, self._where, cells=cells)

    def run(self, durations: Mapping[str, bytes], mail: Mail, attempt: int) -> Ended:
        """Run the shard, and send its records as they are written."""
        words = ["--shard", self._order.shard, "--jobs", str(self._order.resources.cpus)]
        if self._order.split_by:
            runs.put(self._results, self._order.split_by, durations)
            words += ["--shard-by", self._order.split_by]
        tail, goes_on, until = _Tail(self._results), True, 0.0
        with self._pytest(*words) as child:
            while child.poll() is None:
                time.sleep(_EVERY)
                sent = News(self._order.key, attempt, self._where, tail.read())
                if not mail.add(sent) and goes_on:
                    goes_on, until = False, time.monotonic() + _ENDING
                    child.send_signal(signal.SIGINT)
                if until and time.monotonic() > until:
                    child.kill()
        mail.add(News(self._order.key, attempt, self._where, tail.read()))
        return self._ended(child.returncode, stopped=not goes_on)

    def _ended(self, code: int, *, stopped: bool) -> Ended:
        if code < 0 and not stopped:
            raise ProcessDied(f"node {self._where}: {signal_name(code)} ended pytest")
        closed = next(iter(runs.shards(self._results)), "")
        files = runs.files(self._results / runs.RUNS / closed) if closed else {}
        if stopped:
            return Ended(State.STOPPED, self._where, "the run was interrupted", closed, files)
        if closed and code not in _NO_RESULTS:
            return Ended(State.ENDED, self._where, run=closed, files=files)
        return Ended(State.EMPTY, self._where) if code == Exit.OK else self._failed(code)

    def _failed(self, code: int) -> Ended:
        lines = [line for line in self._text().splitlines() if line.strip()]
        told = [line for line in lines if line.startswith("ERROR")] or lines
        reason = f"pytest ended with {signal_name(code)}: {' | '.join(told[-_LINES:])}"
        return Ended(State.FAILED, self._where, f"node {self._where}: {reason}")

    def _text(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    @contextmanager
    def _pytest(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start pytest with the order's lane. It is killed at the end of the block, and if this process dies."""
        order = self._order
        command = [
            self._start.python,
            str(Path(__file__).with_name("tied.py")),
            str(os.getpid()),
            "--pyargs",
            "conformance",
        ]
        command += ["--backend", order.backend, "--lane-name", order.lane, "--lane-tier", order.tier]
        command += ["--results", str(self._results), *words, BEFORE_THE_USERS, *order.arguments]
        with self._log.open("wb") as log, self._started(command, log) as child:
            try:
                yield child
            finally:
                if child.poll() is None:
                    child.kill()

    def _started(self, command: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, cwd=self._order.root, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            start_new_session=True,  # an interruption reaches the run alone, which ends its tasks
            env=_variables(os.environ, self._order.resources.cpus) | self._start.variables,
        )  # fmt: skip


def _variables(environ: Mapping[str, str], cpus: int) -> dict[str, str]:
    """Return the variables of pytest. They fix the number of threads, in which shards of a merge may not differ."""
    kept = {name: value for name, value in environ.items() if not name.startswith("RAY_")}
    if not kept.get("CUDA_VISIBLE_DEVICES", "all"):
        del kept["CUDA_VISIBLE_DEVICES"]  # Ray hides GPUs from tasks that request none
    return kept | {"OMP_NUM_THREADS": str(cpus)}


class _Tail:
    """The complete lines that a journal gained since the last look."""

    def __init__(self, results: Path) -> None:
        self._results = results
        self._file: Path | None = None
        self._at = 0

    def read(self) -> tuple[str, ...]:
        """Return the new lines; none while there is no journal."""
        if self._file is None:
            self._file = next(self._results.glob(f"*/{journal.OBSERVATIONS}"), None)
        if self._file is None:
            return ()
        with self._file.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        return tuple(whole.decode().splitlines())
