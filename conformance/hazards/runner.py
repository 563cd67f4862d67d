"""The runner of hazards: in child processes, under delays if the backend offers them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from conformance.backends import Capabilities
from conformance.hazards import copies, dag, ending, host, steps, streams
from conformance.hazards.bench import Bench
from conformance.hazards.model import HAZARDS, Hazard, Needs
from conformance.running.child import BROKEN, Child, Death, Hang
from conformance.support.signals import signal_name
from conformance.support.suggestions import unknown

PROGRAMS = (host, copies, streams, steps, ending)  # importing them fills the table
#: The name of the random programs, which are not in the table.
RANDOM = "random_programs"
#: Microseconds before each piece of work, under the first schedule.
DELAY = 2000


@dataclass(frozen=True, slots=True)
class Schedule:
    """The delays of work in one round. ``us`` is 0 if the backend offers none; then ``seed`` counts the rounds."""

    us: int
    seed: int | None = None

    def text(self) -> str:
        if self.us == 0:
            return f"round {self.seed}, behind long matrix products"
        return f"{self.us} µs before each piece of work" if self.seed is None else f"delays of seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a hazard. ``failure`` is "" if the device kept the dependency in all rounds."""

    name: str
    rounds: int
    failure: str = ""
    lacking: str = ""  # the requirement that the backend lacks; the hazard did not run

    def text(self) -> str:
        if self.lacking:
            return f"{self.name}: NOT RUN: the backend has no {self.lacking}"
        if self.failure:
            return f"{self.name}: FAILED: {self.failure}"
        return f"{self.name}: held in {self.rounds} rounds"


def names() -> list[str]:
    """Return the names of all hazards."""
    return [*sorted(HAZARDS), RANDOM]


def described(name: str) -> str:
    """Return one line that describes a hazard."""
    return f"{name}: steps of programs that seeds draw" if name == RANDOM else HAZARDS[name].text()


def rounds_of(backend: Capabilities, rounds: int, first_seed: int) -> list[Schedule]:
    """Return the schedules of a run: equal delays, then delays drawn from seeds; without delays, repetitions."""
    if not backend.delays_work:
        return [Schedule(0, number) for number in range(rounds)]
    return [Schedule(DELAY), *(Schedule(DELAY, first_seed + n) for n in range(rounds - 1))]


def confidence(backend: Capabilities, rounds: int) -> str:
    """Return a sentence about the meaning of a run without failures."""
    if backend.delays_work:
        return f"each ran under {rounds} schedules: equal delays, and delays drawn from seeds"
    missed = 1 - 0.05 ** (1 / rounds)
    return (
        f"the backend does not delay work (delay_work), so each ran {rounds} times behind long matrix products: with "
        f"95 % confidence, a defect shows in less than {missed:.0%} of such runs"
    )


def run(name: str, backend: Capabilities, schedules: list[Schedule], timeout: float) -> Result:
    """Run a hazard in a forked child. ``timeout``: seconds. Raises LookupError for an unknown name."""
    if name not in names():
        raise LookupError(unknown("hazard", name, names(), "conformance hazard --list"))
    if name != RANDOM and HAZARDS[name].once:
        schedules = schedules[:1]
    child = Child(lambda _: _rounds(name, backend, schedules))
    try:
        reply = child.ask(None, timeout)
    finally:
        child.close()
    if not isinstance(reply, (Death, Hang)):
        return Result(name, len(schedules), reply["failure"], reply["lacking"])
    if len(schedules) > 1:  # find out which schedule failed
        alone = next((r for s in schedules if (r := run(name, backend, [s], timeout)).failure), None)
        if alone:
            return alone
    which = f" ({schedules[0].text()})" if len(schedules) == 1 else ""
    return Result(name, 0, f"{_promise(name)}: {_end_of(reply, timeout)}{which}")


def _promise(name: str) -> str:
    return "a random program" if name == RANDOM else HAZARDS[name].missing()


def _end_of(reply: Death | Hang, timeout: float) -> str:
    if isinstance(reply, Hang):
        return f"the program did not end within {timeout:g} s; its stack:\n{reply.log}"
    what = "the hazard itself broke" if reply.status == BROKEN else f"the process died: {signal_name(reply.status)}"
    return f"{what}\n{reply.log}"


# In the child -------------------------------------------------------------------------------------------------------


def _rounds(name: str, backend: Capabilities, schedules: list[Schedule]) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # the parent's threads do not exist in the child, which would wait for them
    needs = HAZARDS[name].needs if name != RANDOM else frozenset({Needs.STREAMS})
    lacking = _lacking(backend, needs)
    if lacking:
        return {"failure": "", "lacking": lacking}
    for schedule in schedules:
        bench = Bench(backend, torch.device(backend.device), _second(backend), backend.delays_work)
        with backend.delayed_work(schedule.us, schedule.seed):
            failure = _random(bench, schedule) if name == RANDOM else _program(HAZARDS[name], bench)
            if not failure:
                bench.wait()
        if failure:
            return {"failure": f"{failure} ({schedule.text()})", "lacking": ""}
    return {"failure": "", "lacking": ""}


def _program(hazard: Hazard, bench: Bench) -> str:
    try:
        found = next((f for f in hazard.run(bench) if f), None)
    except Exception as e:  # noqa: BLE001  # whatever the device raises is the finding
        return f"{hazard.later}, after {hazard.earlier}: {_way(bench)}the device raised {_said(e)}"
    return f"{hazard.missing()}: {_way(bench)}{found.text()}" if found else ""


def _way(bench: Bench) -> str:
    return f"with {bench.saves_by}, " if bench.saves_by else ""


def _said(error: Exception) -> str:
    """Return the type of an error and the first paragraph of its message, without a native stack trace."""
    stack = r"\n*\*\*\* Begin stack trace \*\*\*.*\*\*\* End stack trace \*\*\*\n*"
    said = re.sub(stack, "\n", str(error), flags=re.DOTALL).strip()
    return f"{type(error).__name__}: {said.partition(2 * chr(10))[0]}"


def _random(bench: Bench, schedule: Schedule) -> str:
    program = dag.draw(schedule.seed or 0)
    try:
        found = dag.check(program, bench)
        return f"{dag.lacking(program, bench)}\n{found.text()}" if found else ""
    except Exception as e:  # noqa: BLE001  # whatever the device raises is the finding
        return f"the device raised {_said(e)}"


def _second(backend: Capabilities) -> torch.device | None:
    count = torch.accelerator.device_count() if backend.is_accelerator else 0
    others = (torch.device(backend.kind, n) for n in range(count))
    return next((d for d in others if d != torch.device(backend.device)), None)


def _lacking(backend: Capabilities, needs: frozenset[Needs]) -> str:
    """Return the first requirement that the backend lacks, "" if there is none."""
    if backend.kind == "cpu":
        return "queue of work: CPU runs each call at once"
    known = backend.is_accelerator  # streams and pinned memory are those of the accelerator
    missing = {
        Needs.STREAMS: not (known and _works(lambda: torch.Stream(torch.device(backend.device)).query())),
        Needs.PINNED: not (known and _works(lambda: torch.ones(1, pin_memory=True))),
        Needs.TWO_DEVICES: _second(backend) is None,
        Needs.DONATION: not backend.donates,
        Needs.SEEDS: not backend.seedable,
    }
    return next((need.value for need in Needs if need in needs and missing[need]), "")


def _works(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (RuntimeError, NotImplementedError):
        return False
    return True
