"""A search carried out: makes places, runs cases in them, writes every answer down, makes the next places meanwhile."""

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

SETUP = 3.0  # what making a place costs, in runs, before anything was measured
PATIENCE = 2.0  # seconds that a place may take before it is said that it is waited for

_SAID = {Answer.GOOD: "passed", Answer.BAD: "failed", Answer.UNKNOWN: "unknown"}  # of one run, whatever its point is

Tell = Callable[[str], None]


def searches(record: Record) -> dict[str, Search]:
    """Each case's search, with all that is known: a function of the record alone."""
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
    """The results there are, with points numbered as the record does."""
    q = record.question
    if not q.fixed:
        return results(searches(record))
    n = len(q.points) - 1
    return {
        case: replace(r, first=n - r.last, last=n - r.first, untested=tuple(n - p for p in reversed(r.untested)))
        for case, r in results(searches(record)).items()
    }


def _along(record: Record, point: int) -> int:
    """The point's number in the search, which goes from good to bad, also where a repair is looked for."""
    return len(record.question.points) - 1 - point if record.question.fixed else point


@dataclass
class Session:
    """Goes on with a record until every case has its result."""

    record: Record
    probe: Probe
    workshop: Workshop
    file: Path  # that the record is kept in
    tell: Tell
    ahead: int = 1  # places made in the background
    _making: dict[int, Future[tuple[Place, float]]] = field(default_factory=dict)

    def run(self) -> None:
        """To the end. Raises KeyboardInterrupt and NoRoom, the record then being as far as it came."""
        before, started = self.record.seconds, time.monotonic()
        pool = ThreadPoolExecutor(1 + self.ahead)
        try:
            while step := self._plan():
                self._step(step, pool)
                self.record.seconds = before + time.monotonic() - started
                self.record.save(self.file)
        finally:
            self.record.seconds = before + time.monotonic() - started
            self.record.save(self.file)
            self.workshop.processes.stop()
            pool.shutdown(wait=True, cancel_futures=True)
            self.workshop.close()

    def _plan(self) -> Step | None:
        return plan(searches(self.record), self._prepared(), self._setup())

    def _step(self, step: Step, pool: ThreadPoolExecutor) -> None:
        """Run the step's cases at its point, or find out that it cannot be probed."""
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
        if first_failure and self.record.signature(case) is not None:
            self.tell(f"  the failure looked for: {self.record.signature(case).text()}")  # type: ignore[union-attr]
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
            self.tell(f"{self._name(point)}: is being installed or built")
        return making.result()

    def _look_ahead(self, step: Step, pool: ThreadPoolExecutor) -> None:
        """Begin with the places that may be asked for next, so that they are ready by then."""
        if not self.ahead:
            return
        along = [_along(self.record, p) for p in likely_next(searches(self.record), step, self._prepared(), 1.0)]
        waiting = sum(not f.done() for f in self._making.values())
        for point in along[: max(0, 1 + self.ahead - waiting)][: self.ahead]:
            self._begin(point, pool)

    def _prepared(self) -> list[int]:
        """Points whose places are there, as the search numbers them."""
        ready = [p for p, f in self._making.items() if f.done() and not f.cancelled() and not f.exception()]
        return [_along(self.record, p) for p in ready]

    def _setup(self) -> float:
        """What making a place costs, in runs, as measured so far."""
        places = [p.seconds for p in self.record.places.values() if not p.unusable]
        runs = [r.seconds for r in self.record.runs]
        if not places or not runs:
            return SETUP
        return (sum(places) / len(places)) / max(sum(runs) / len(runs), 1e-3)


def _reason(outcome: ProbeOutcome) -> str:
    """Why an outcome says nothing."""
    if outcome.signature:
        return outcome.signature.text()
    return (outcome.output.strip().splitlines() or ["it said nothing"])[-1]


def seconds_by_point(record: Record) -> Mapping[int, float]:
    """What each point cost, its place included."""
    spent = {i: p.seconds for i, p in record.places.items()}
    for run in record.runs:
        spent[run.point] = spent.get(run.point, 0.0) + run.seconds
    return spent
