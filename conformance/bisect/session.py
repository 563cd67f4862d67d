"""The session of a search: it prepares points in the background, runs the cases, and stores every answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from conformance.bisect.environments import NoRoom, Unusable
from conformance.bisect.places import Place, Workshop
from conformance.bisect.posterior import Rate
from conformance.bisect.probes import Probe
from conformance.bisect.record import PointRecord, Record, RunRecord, shortened
from conformance.bisect.search import Answer, Result, Search
from conformance.bisect.signature import ProbeOutcome, answer
from conformance.bisect.together import Step, likely_next, plan, results
from conformance.support.lines import last_line
from conformance.support.signals import undisturbed

SETUP = 3.0  # assumed cost of preparing a point, in runs, until it is measured
PATIENCE = 2.0  # seconds to wait for a point before a message says that it is being prepared

_SAID = {Answer.GOOD: "passed", Answer.BAD: "failed", Answer.UNKNOWN: "unknown"}  # of one run

Tell = Callable[[str], None]


def searches(record: Record) -> dict[str, Search]:
    """Return each case's search with all answers of the record."""
    q = record.question
    unusable = {i for i, place in record.places.items() if place.unusable}
    found = {}
    for case in q.cases:
        search = Search(
            points=len(q.points), bad=_along(record, q.bad), good=None if q.good is None else _along(record, q.good),
            rate=Rate.known(q.rate), threshold=q.threshold, tries=q.tries, most_runs=q.most_runs,
            skip=frozenset(_along(record, i) for i in {*q.skip, *unusable}),
        )  # fmt: skip
        for point, said in record.answers(case):
            search = search.answer(_along(record, point), said)
        found[case] = search
    return found


def found(record: Record) -> dict[str, Result]:
    """Return the results so far, with the record's numbers of the points."""
    q = record.question
    if not q.fixed:
        return results(searches(record))
    n = len(q.points) - 1
    return {
        case: replace(r, first=n - r.last, last=n - r.first, untested=tuple(n - p for p in reversed(r.untested)))
        for case, r in results(searches(record)).items()
    }


def _along(record: Record, point: int) -> int:
    """Return the point's number in the search, which goes from good to bad even with --fixed."""
    return len(record.question.points) - 1 - point if record.question.fixed else point


@dataclass
class Session:
    """The continuation of a record until every case has a result."""

    record: Record
    probe: Probe
    workshop: Workshop
    file: Path  # of the record
    tell: Tell
    ahead: int = 1  # points that are prepared in the background
    _making: dict[int, Future[tuple[Place, float]]] = field(default_factory=dict)

    def run(self) -> None:
        """Run to the end. Raises KeyboardInterrupt and NoRoom; the record then has all answers so far."""
        before, started = self.record.seconds, time.monotonic()
        pool = ThreadPoolExecutor(1 + self.ahead)
        try:
            while step := self._plan():
                self._step(step, pool)
                self.record.seconds = before + time.monotonic() - started
                self.record.save(self.file)
        finally:
            self.record.seconds = before + time.monotonic() - started
            with undisturbed():  # a second Ctrl-C must not leave worktrees behind
                self.record.save(self.file)
                self.workshop.processes.stop()
                pool.shutdown(wait=True, cancel_futures=True)
                self.workshop.close()

    def _plan(self) -> Step | None:
        return plan(searches(self.record), self._prepared(), self._setup())

    def _step(self, step: Step, pool: ThreadPoolExecutor) -> None:
        """Run the step's cases at its point, or record that the point cannot be tested."""
        point = _along(self.record, step.point)
        self._begin(point, pool)
        self._look_ahead(step, pool)
        try:
            place, seconds = self._made(point)
        except Unusable as e:
            self.record.places[point] = PointRecord(unusable=shortened(str(e)), why=e.why, seconds=e.seconds)
            self.tell(f"{self._name(point)}: skipped: {self.record.places[point].why}")
            return
        known = self.record.places.get(point, PointRecord())
        self.record.places[point] = PointRecord(place.build, place.made_by, max(seconds, known.seconds))
        for case in step.cases:
            self._run(point, place, case, step)
            self.record.save(self.file)

    def _run(self, point: int, place: Place, case: str, step: Step) -> None:
        outcome = self.probe.run(place, case)
        kept = RunRecord(
            point, case, step.stage, outcome.passed, outcome.judged, outcome.signature, shortened(outcome.output),
            round(outcome.seconds, 3), datetime.now(timezone.utc).isoformat(timespec="seconds"),
        )  # fmt: skip
        first_failure = self.record.signature(case) is None
        self.record.runs.append(kept)
        self._tell(point, case, outcome, step)
        if self.record.question.perf:
            self.tell(f"  {kept.output}")
        if first_failure and self.record.signature(case) is not None:
            self.tell(f"  signature of the failure: {self.record.signature(case).text()}")  # type: ignore[union-attr]
            self.tell("\n".join(f"    {line}" for line in kept.output.splitlines()[:20]))
            self.record.minimal[case] = self.probe.minimal(place, case)

    # Telling ----------------------------------------------------------------------------------------------------

    def _tell(self, point: int, case: str, outcome: ProbeOutcome, step: Step) -> None:
        q = self.record.question
        said = answer(outcome, self.record.signature(case), q.any_failure)
        tally = searches(self.record)[case].tally(_along(self.record, point))
        another = f" ({_reason(outcome)})" if said is Answer.UNKNOWN else ""
        counts = f"{tally.failed} of {tally.failed + tally.passed} failed"
        which = f" {case}" if len(q.cases) > 1 else ""
        after = self._plan()
        left = f"; about {after.runs_left} more run{'s'[: after.runs_left != 1]}" if after else "; done"
        self.tell(f"{self._name(point)}:{which} {_SAID[said]}{another}, {counts} [{step.stage.value}]{left}")

    def _name(self, point: int) -> str:
        tried = list(dict.fromkeys([*self.record.places, point]))  # in the order that the report lists them
        return f"[point {tried.index(point) + 1}] {self.record.question.points[point].name}"

    # Places -----------------------------------------------------------------------------------------------------

    def _begin(self, point: int, pool: ThreadPoolExecutor) -> None:
        known = self._making.get(point)
        lost = known and known.done() and not known.exception() and not Path(known.result()[0].python).exists()
        if known is None or lost or (known.done() and isinstance(known.exception(), NoRoom)):
            self._making[point] = pool.submit(self._make, point)

    def _make(self, point: int) -> tuple[Place, float]:
        started = time.monotonic()
        try:
            place = self.workshop.make(self.record.question.points[point])
        except Unusable as e:
            e.seconds = time.monotonic() - started
            raise
        return place, time.monotonic() - started

    def _made(self, point: int) -> tuple[Place, float]:
        making = self._making[point]
        if wait([making], PATIENCE).not_done:
            self.tell(f"{self._name(point)}: installing or building")
        return making.result()

    def _look_ahead(self, step: Step, pool: ThreadPoolExecutor) -> None:
        """Start to prepare the points that may be next."""
        if not self.ahead:
            return
        along = [_along(self.record, p) for p in likely_next(searches(self.record), step, self._prepared(), 1.0)]
        waiting = sum(not f.done() for f in self._making.values())
        for point in along[: max(0, 1 + self.ahead - waiting)][: self.ahead]:
            self._begin(point, pool)

    def _prepared(self) -> list[int]:
        """Return the prepared points, numbered as in the search."""
        ready = [p for p, f in self._making.items() if f.done() and not f.cancelled() and not f.exception()]
        return [_along(self.record, p) for p in ready]

    def _setup(self) -> float:
        """Return the average cost of preparing a point, in runs."""
        places = [p.seconds for p in self.record.places.values() if not p.unusable]
        runs = [r.seconds for r in self.record.runs]
        if not places or not runs:
            return SETUP
        return (sum(places) / len(places)) / max(sum(runs) / len(runs), 1e-3)


def _reason(outcome: ProbeOutcome) -> str:
    """Return why an outcome is unknown."""
    if outcome.signature:
        return outcome.signature.text()
    return last_line(outcome.output) or "no output"


def seconds_by_point(record: Record) -> Mapping[int, float]:
    """Return the seconds of each point, including its preparation."""
    spent = {i: p.seconds for i, p in record.places.items()}
    for run in record.runs:
        spent[run.point] = spent.get(run.point, 0.0) + run.seconds
    return spent
