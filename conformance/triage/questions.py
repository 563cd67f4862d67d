"""Tests of the culprit's parts alone in several lanes: the op, its copies, the allocator."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from conformance.calls import judging
from conformance.inventory import exists
from conformance.triage import lanes as lanes_
from conformance.triage.evidence import CopyProbe, Evidence, Kernel, LaneRun
from conformance.triage.job import AT_ONCE, Job

MOST_ASKED = 4  # lanes with the same finding in which the culprit is tested alone
BROKEN = "broken"  # the key that replaces an answer if the prober's process has ended
T = TypeVar("T")


class Prober:
    """A process in one lane that answers questions."""

    def __init__(self, job: Job, lane: str) -> None:
        from conformance.triage import prober

        self._process = job.talk(prober, [job.backend_name], lane)

    def ask(self, question: str, *arguments: Any) -> dict[str, Any]:
        """Return the answer, or ``{"broken": ...}`` if the prober's process has ended."""
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write(json.dumps([question, *arguments]) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {BROKEN: "the process has ended"}
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {BROKEN: "the process has ended"}
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@contextmanager
def prober(job: Job, lane: str) -> Iterator[Prober]:
    """Yield a prober in a lane, and close it afterwards."""
    opened = Prober(job, lane)
    try:
        yield opened
    finally:
        opened.close()


def question(job: Job, e: Evidence, lane: str, path: Path) -> Evidence:
    """Test the op, its copies and the allocator alone: first in the culprit's lane, then in the others."""
    wanted = asked_lanes(e, lane)
    with ThreadPoolExecutor(AT_ONCE) as pool:  # each waits for a process of its own
        answers = list(pool.map(lambda asked: _ask(job, asked, path, asked == lane), wanted))
    kernels = next((a.kernels for a in answers if a.kernels), ())
    return replace(
        e,
        alone=_known(wanted, [a.wrong for a in answers]),
        allocator=_known(wanted, [a.blocks for a in answers]),
        threads=_known(wanted, [a.threaded for a in answers]),
        kernels=kernels,
        copy=answers[0].copy,
    )


def _known(lanes: Sequence[str], answers: Sequence[T | None]) -> tuple[tuple[str, T], ...]:
    """Return the lanes that answered, each with its answer."""
    return tuple((lane, answer) for lane, answer in zip(lanes, answers, strict=True) if answer is not None)


def named(runs: Sequence[LaneRun], lane: str) -> LaneRun | None:
    """Return the run in a lane, None if there is none."""
    return next((r for r in runs if r.lane == lane), None)


def asked_lanes(e: Evidence, lane: str) -> list[str]:
    """Return the culprit's lane, the lanes with another finding or none, and some of those with the same finding."""
    others = [r.lane for r in e.runs if r.lane not in (lane, lanes_.SINGLE, lanes_.OWN)]
    differing = [n for n in others if n not in e.finding_lanes]
    agreeing = sorted((n for n in others if n in e.finding_lanes), key=lambda n: not _died_in(e, n))
    return [lane, *differing, *agreeing][: max(MOST_ASKED, 1 + len(differing))]


def shown_in(e: Evidence, lane: str) -> str:
    """Return the lane for the script: the culprit's lane, or the first in which the op fails alone.

    An op that reads out of bounds may read the correct values by chance. With guard pages, it fails each time.
    """
    alone = dict(e.alone)
    wrong = [n for n in alone if alone[n]]
    return lane if alone.get(lane) or not wrong else wrong[0]


def _died_in(e: Evidence, lane: str) -> bool:
    run = named(e.runs, lane)
    return run is not None and run.found is not None and bool(run.found.died)


@dataclass(frozen=True)
class _Answers:
    """The answers of one lane's prober. None: the prober's process ended without an answer."""

    wrong: bool | None
    blocks: str | None
    threaded: str | None
    kernels: tuple[Kernel, ...] = ()
    copy: CopyProbe | None = None


def _ask(job: Job, lane: str, path: Path, thoroughly: bool) -> _Answers:
    with prober(job, lane) as p:
        again = _again(p.ask("judge", str(path)))
        problem, threaded = _problem(p.ask("blocks", 1)), _problem(p.ask("blocks", 4))
        answers = _Answers(again, problem, threaded)
        if thoroughly:
            answers = replace(answers, kernels=_kernels(job, p, path), copy=_copy(p, path))
    if again is None:
        job.tell(f"alone in {lane}: no answer, the process has ended")
    else:
        job.tell(f"alone in {lane}: {'wrong again' if again else 'right'}; blocks: {problem or threaded or 'sound'}")
    return answers


def _again(answer: Mapping[str, Any]) -> bool | None:
    return None if BROKEN in answer else wrong(answer)


def wrong(answer: Mapping[str, Any]) -> bool:
    """Return whether a repeated call failed."""
    return bool(answer.get("check") or answer.get("died"))


def _problem(answer: Mapping[str, Any]) -> str | None:
    if BROKEN in answer:
        return None
    died = answer.get("died")
    return f"died of {died}" if died else str(answer.get("problem") or answer.get("raised") or "")


def _kernels(job: Job, p: Prober, path: Path) -> tuple[Kernel, ...]:
    answer = p.ask("kernels", str(path), False)
    if "kernels" not in answer:
        answer = p.ask("kernels", str(path), True)
    return tuple(Kernel(name, inside, _route(name, job.backend.device)) for name, inside in answer.get("kernels", ()))


def _route(operator: str, device: str) -> str:
    """Return a route of any overload of an operator: the dispatcher's profile does not name the overload."""
    packet = getattr(torch.ops.aten, operator, None)
    names = [operator if o == "default" else f"{operator}.{o}" for o in packet.overloads()] if packet else []
    names = [n for n in names if exists(n)]
    routes = [str(judging.route(n, device)) for n in names]
    return next((r for r in ("native", "composite", "fallback") if r in routes), "")


def _copy(p: Prober, path: Path) -> CopyProbe | None:
    lie, dense = p.ask("copy", str(path), False), p.ask("copy", str(path), True)
    if "raised" in lie or BROKEN in lie or BROKEN in dense:
        return None
    return CopyProbe(_copied(lie), _copied(dense), lie.get("wrong", ""))


def _copied(answer: Mapping[str, Any]) -> str:
    return str(answer.get("died") or ("wrong" if answer.get("wrong") or answer.get("raised") else "right"))
