"""The time of a call at a point, next to its time at the good end."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conformance.bisect import slowness
from conformance.bisect.environments import Unusable
from conformance.bisect.places import Place
from conformance.bisect.processes import Ended, Processes
from conformance.bisect.signature import ProbeOutcome, Signature
from conformance.bisect.slowness import Judged, Pace
from conformance.perf import store
from conformance.perf.model import Record, Round
from conformance.results.store import StoreError


class _Unknown(Exception):
    """A comparison that is not possible. The message gives the reason, for a person."""


@dataclass(frozen=True, slots=True)
class _Timed:
    """The times of a case in one process."""

    record: Record
    torch: str


@dataclass
class PerfProbe:
    """A probe that times a case in processes, in turn at the good end and at a point, until the interval decides."""

    processes: Processes
    backend: str
    good_end: Callable[[], Place]
    timeout: float  # seconds of a process
    variables: tuple[tuple[str, str], ...] = ()
    least: float = slowness.LEAST
    seconds: float = 1.0  # for which a process times the calls
    pairs: int = slowness.PAIRS
    most_pairs: int = slowness.MOST_PAIRS
    _spent: float = field(default=0.0, init=False)  # seconds of the processes of this run

    def run(self, place: Place, case: str) -> ProbeOutcome:
        self._spent = 0.0
        try:
            judged, pairs = self._judged(self.good_end(), place, case)
        except _Unknown as e:
            return ProbeOutcome(False, None, False, str(e), self._spent)
        except Unusable as e:
            return ProbeOutcome(False, None, False, f"the good end cannot be made: {e.why}", self._spent)
        found = judged.interval
        said = (
            f"{case}: {found.ratio:.3g} times the time at the good end [{found.low:.3g}, {found.high:.3g}], "
            f"{pairs} processes a side: {judged.pace}"
        )
        slow = judged.pace is Pace.SLOW
        known = judged.pace is not Pace.CANNOT_TELL
        return ProbeOutcome(known and not slow, Signature(str(Pace.SLOW)) if slow else None, known, said, self._spent)

    def command(self, case: str) -> str:
        return " ".join(["conformance", *self._arguments(case)])

    def minimal(self, place: Place, case: str) -> str:  # noqa: ARG002 - the command shows it
        return ""

    def _judged(self, good_end: Place, place: Place, case: str) -> tuple[Judged, int]:
        """Return the pace, and the number of processes a side. Raises _Unknown, Stopped."""
        good: list[_Timed] = []
        here: list[_Timed] = []
        while True:
            for number in range(self.pairs):
                sides = [(good_end, good), (place, here)]
                for where, kept in sides if number % 2 else reversed(sides):
                    kept.append(self._timed(where, case))
            judged = self._compared(good, here)
            if judged.pace is not Pace.CANNOT_TELL or len(here) + self.pairs > self.most_pairs:
                return judged, len(here)

    def _compared(self, good: list[_Timed], here: list[_Timed]) -> Judged:
        one, other = good[0].record, here[0].record
        if (one.sample, one.shapes) != (other.sample, other.shapes):
            raise _Unknown(f"its arguments differ: {one.sample} at the good end, {other.sample} here")
        same_torch = good[0].torch == here[0].torch
        return slowness.judge(_rounds(good), _rounds(here), self.least, same_torch=same_torch)

    def _timed(self, place: Place, case: str) -> _Timed:
        """Time the case in a process. Raises _Unknown if it was not measured."""
        with tempfile.TemporaryDirectory() as scratch:
            command = [place.python, "-m", "conformance.cli", *self._arguments(case), "--results", scratch]
            variables = {**place.variables, **dict(self.variables)}
            ended = self.processes.run(command, cwd=Path(scratch), variables=variables, timeout=self.timeout)
            self._spent += ended.seconds
            record, torch = self._record(Path(scratch), ended)
        if not record.is_measured:
            raise _Unknown(f"{case} was not measured: {record.end}: {record.reason}")
        return _Timed(record, torch)

    def _record(self, results: Path, ended: Ended) -> tuple[Record, str]:
        if ended.late:
            raise _Unknown(f"no end after {self.timeout:g} s")
        try:
            (name,) = store.names(results)
            run = store.load(results / store.PERF / name)
            (record,) = run.records
        except (StoreError, ValueError):
            raise _Unknown(ended.last_lines() or f"the process ended with {ended.code}") from None
        return record, run.manifest.torch

    def _arguments(self, case: str) -> list[str]:
        key = slowness.key_of(case)
        return [
            "perf", "run", "--backend", self.backend, "--overloads", key.overload, "--dtype", key.dtype,
            "--sizes", str(key.size), "--rounds", "1", "--seconds-per-case", f"{self.seconds:g}",
        ]  # fmt: skip


def _rounds(of: Sequence[_Timed]) -> list[Round]:
    return [one for timed in of for one in timed.record.rounds]
