"""Invented times of a call at each point of a history, in place of the processes that measure them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.bisect.places import Place
from conformance.bisect.points import Point
from conformance.bisect.processes import Ended, Processes
from conformance.perf import store
from conformance.perf.model import End, Record, Size
from conformance.results.store.manifest import run_name
from tests.perf.times import BEGAN, MACHINE, SERIES, ended, record, rounds
from tests.records import manifest

CASE = "softmax.int[float32-medium]"


@dataclass
class Timings(Processes):
    """Fake processes. Each one stores a run of one case, with the seconds of its point and with new noise.

    The Python of a point has the point's name.
    """

    seconds: Mapping[str, float]
    noise: float = 0.02
    busy: float = 3.0
    torches: Mapping[str, str] = field(default_factory=dict)
    cpu: Mapping[str, float] = field(default_factory=dict)
    ends: Mapping[str, End] = field(default_factory=dict)
    shapes: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    late: bool = False
    ran: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._seeds = itertools.count()

    def run(self, command: Sequence[str] | str, **given: Any) -> Ended:
        python = command[0]
        self.ran.append(python)
        (results,) = (Path(after) for word, after in itertools.pairwise(command) if word == "--results")
        name = run_name(SERIES, BEGAN, "aaaaaa")
        told = manifest(collected=1, run=name, torch=self.torches.get(python, "2.8.0"))
        if not self.late:
            store.save(results, told, MACHINE, {}, [self._record(python)])
        return Ended(0, "", "", 0.5, self.late)

    def _record(self, python: str) -> Record:
        if python in self.ends:
            return ended(self.ends[python], "softmax.int")
        times = rounds(
            self.seconds[python], self.cpu.get(python, 1e-3), processes=1, noise=self.noise, seed=next(self._seeds),
            busy=self.busy,
        )  # fmt: skip
        return record("softmax.int", Size.MEDIUM, of=times, shapes=self.shapes.get(python, ((10,),)))


def place(name: str) -> Place:
    return Place(name, Path(name), {}, f"build of {name}")


@dataclass
class Workshop:
    """A workshop that makes nothing: the Python of a point has the point's name."""

    processes: Processes

    def make(self, point: Point) -> Place:
        return place(point.name)

    def close(self) -> None:
        """Do nothing: there is nothing to remove."""
