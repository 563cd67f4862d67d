"""The search for earlier calls without which a failing op is correct, and their reduction."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.calls import sequence
from conformance.calls.model import Call
from conformance.calls.sequence import Step
from conformance.support.ddmin import ddmin
from conformance.triage.evidence import Before, Evidence
from conformance.triage.job import Job
from conformance.triage.questions import Prober, prober, wrong
from conformance.triage.reduction import Versions
from conformance.triage.shrink import shrink

RIGHT_ALONE = "the op alone is correct, so the failure depends on earlier calls of the program"
SECONDS = 90.0  # time budget of the search
MOST_TRIES = 60  # of the shrinker for each call
CONFIRMED = 3  # repetitions in fresh processes that confirm a result


def what_came_before(job: Job, e: Evidence, lane: str, path: Path | None) -> tuple[Evidence, Versions]:
    """Return the evidence with its ``before``, and the failing versions: the needed calls, then smaller arguments.

    There are no versions if the calls were not recorded, or if repeating them does not reproduce the failure each time.
    """
    if path is None:
        return replace(e, notes=(RIGHT_ALONE, "the calls could not be recorded in another run")), []
    steps, gaps = sequence.load(path)
    before = Before(len(steps) - 1, gaps.cut, gaps.missed)
    with prober(job, lane) as p:
        asked = _Asked(p, path)
        versions, before = _reduced(job, asked, before, steps)
        versions = [*versions, *_shrunk(asked, versions[-1])] if versions else []
    if before.sure:
        before = replace(before, lanes=(lane, *_elsewhere(job, e, lane, versions[0])))
    return replace(e, before=before, notes=(RIGHT_ALONE, *notes(before))), versions


def _elsewhere(job: Job, e: Evidence, lane: str, steps: list[Step]) -> list[str]:
    """Return the other lanes in which these steps fail too."""
    path = job.place(lane) / "needed.safetensors"
    sequence.save(path, steps)
    found = []
    for other in dict(e.alone):
        if other != lane:
            with prober(job, other) as p:
                found += [other] if _Asked(p, path).whole(range(len(steps))) else []
    return found


class _Asked:
    """A prober that repeats steps, with a time budget that its callers respect."""

    def __init__(self, p: Prober, path: Path) -> None:
        self._prober, self._path, self._written = p, path, 0
        self._ends = time.monotonic() + SECONDS

    @property
    def over(self) -> bool:
        """Whether the time budget is used up."""
        return time.monotonic() > self._ends

    def whole(self, kept: Sequence[int]) -> bool:
        """Return whether the last of the program's steps with these indices fails."""
        return self._ask(self._path, kept)

    def these(self, steps: Sequence[Step]) -> bool:
        """Return whether the last of these changed steps fails."""
        candidate = self._path.with_name(f"candidate-{self._written}.safetensors")
        self._written += 1
        sequence.save(candidate, steps)
        try:
            return self._ask(candidate, range(len(steps)))
        finally:
            candidate.unlink()

    def _ask(self, path: Path, kept: Sequence[int]) -> bool:
        answer: dict[str, Any] = self._prober.ask("steps", str(path), list(kept))
        return wrong(answer) and answer.get("at", len(kept) - 1) == len(kept) - 1

    def counted(self, kept: Sequence[int]) -> tuple[int, int]:
        """Repeat the program's steps with these indices. Return the numbers of failures and of tries."""
        return sum(self.whole(kept) for _ in range(CONFIRMED)), CONFIRMED


def _reduced(job: Job, asked: _Asked, before: Before, steps: Sequence[Step]) -> tuple[Versions, Before]:
    """Return the fewest steps of the program that fail each time, and the counts of the tries.

    Return no steps if the op does not fail each time after all earlier steps, or if it also fails without them.
    """
    last = len(steps) - 1
    before = replace(before, again=asked.counted(range(len(steps))), alone=asked.counted([last]))
    if before.again[0] < CONFIRMED or before.alone[0]:
        return [], before
    found = ddmin(last, lambda kept: None if asked.over else asked.whole([*kept, last]))
    kept = [*found.kept, last]
    small = sequence.without_strangers(sequence.part(steps, kept))
    needed = tuple(sequence.names(small)[:-1])
    before = replace(before, needed=needed, confirmed=asked.counted(kept), minimal=found.minimal)
    job.tell(f"of {last} calls before it, it needs {len(needed)}: {', '.join(needed[:8])}")
    return [small] if before.confirmed[0] == CONFIRMED else [], before


def _shrunk(asked: _Asked, steps: list[Step]) -> Versions:
    """Return versions of the steps: with separate storages if they still fail, then with smaller arguments."""
    found: Versions = []
    for untied in (sequence.taken_apart(steps), sequence.kept_alive(steps)):
        if untied != steps and asked.these(untied):
            found, steps = [untied], untied
            break
    for i in reversed(range(len(steps))):

        def with_call(call: Call, i: int = i, steps: list[Step] = steps) -> list[Step]:
            return [*steps[:i], replace(steps[i], call=call), *steps[i + 1 :]]

        calls = shrink(steps[i].call, lambda c: not asked.over and asked.these(with_call(c)), MOST_TRIES)
        found += [with_call(call) for call in calls[1:]]
        steps = found[-1] if found else steps
    return found


def notes(before: Before) -> tuple[str, ...]:
    """Return lines about the earlier calls."""
    wrong_, tries = before.again
    lines = []
    if before.sure:
        few = "" if before.minimal else " (no time to search for fewer calls)"
        after = f"it fails after {', '.join(before.needed)}: in {_of(before.confirmed)} fresh processes{few}"
        lines.append(f"{after}, {_of(before.alone)} without")
    elif before.alone[0]:
        lines.append(f"alone, it failed in {_of(before.alone)} fresh processes: it is flaky")
    elif wrong_ == tries:
        lines.append(f"it fails after all {before.calls} calls before it; after fewer calls it did not fail each time")
    else:
        again = f"repeated after the {before.calls} calls before it, it failed in {_of(before.again)} fresh processes"
        lines.append(f"{again}: the cause is not in the calls (other threads, streams, code outside ATen)")
    if before.cut:
        lines.append(f"the first {before.cut} calls of the program were not recorded, because of the size limit")
    if before.missed:
        missed = ", ".join(f"{op} ({n})" for op, n in before.missed[:8])
        lines.append(f"calls that cannot be recorded, and were not repeated: {missed}")
    return tuple(lines)


def _of(counts: tuple[int, int]) -> str:
    return f"{counts[0]} of {counts[1]}"
