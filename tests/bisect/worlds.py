"""Invented histories: places that cost nothing, and runs that fail from a point on."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformance.bisect.environments import Unusable
from conformance.bisect.places import Place
from conformance.bisect.points import Point
from conformance.bisect.processes import Processes
from conformance.bisect.record import Question, Record
from conformance.bisect.session import Session
from conformance.bisect.signature import ProbeOutcome, Signature

CASE = "ops/demo.py::neg[float32-contiguous]#sample"


def points(count: int) -> tuple[Point, ...]:
    return tuple(Point(f"v{i}", f"demo=={i}") for i in range(count))


@dataclass
class Workshop:
    """A workshop that makes nothing. ``unusable`` points cannot be made; ``same`` ones equal the build before them."""

    unusable: frozenset[int] = frozenset()
    same: frozenset[int] = frozenset()
    made: list[str] = field(default_factory=list)
    processes: Processes = field(default_factory=Processes)
    closed: bool = False

    def make(self, point: Point) -> Place:
        self.made.append(point.name)
        number = int(point.name[1:])
        if number in self.unusable:
            raise Unusable(f"building {point.name} failed:", "error: no such header")
        build = number - 1 if number in self.same else number
        return Place("/", Path(point.name), {}, f"build {build}", (f"make {point.name}",))

    def close(self) -> None:
        self.closed = True


@dataclass
class Probe:
    """A probe that fails at ``rate`` from each case's culprit until ``mended``, and differently at ``other`` points."""

    culprits: Mapping[str, int]
    mended: int = 10**6
    rate: float = 1.0
    other: frozenset[int] = frozenset()
    interrupt_at: int = -1
    runs: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    def run(self, place: Place, case: str) -> ProbeOutcome:
        if self.runs == self.interrupt_at:
            self.interrupt_at = -1
            raise KeyboardInterrupt
        self.runs += 1
        point = int(place.directory.name[1:])
        if point in self.other:
            return ProbeOutcome(False, Signature("crash", "SIGSEGV device"), True, "died of something else", 0.1)
        if self.culprits[case] <= point < self.mended and self.chance.random() < self.rate:
            return ProbeOutcome(
                False,
                Signature("fail", findings=(("value",),)),
                True,
                f"{case} differs at v{point}",
                0.1,
            )
        return ProbeOutcome(True, None, True, f"{case} is equal at v{point}", 0.1)

    def command(self, case: str) -> str:
        return f"run {case}"

    def minimal(self, place: Place, case: str) -> str:
        return f"# shows {case} at {place.directory}\n"


def question(count: int = 16, **changes: object) -> Question:
    asked: dict[str, object] = {
        "axis": "torch", "cases": (CASE,), "script": False, "points": points(count), "good": 0, "bad": count - 1,
        "backend": "demo", "command": f"conformance bisect '{CASE}'",
    }  # fmt: skip
    return Question(**{**asked, **changes})  # type: ignore[arg-type]


def search(
    asked: Question, probe: Probe, file: Path, workshop: Workshop | None = None, record: Record | None = None
) -> tuple[Record, list[str]]:
    """Run a search. Return its record at the end, and the lines that it told."""
    told: list[str] = []
    kept = record or Record(asked)
    Session(kept, probe, workshop or Workshop(), file, told.append).run()  # type: ignore[arg-type]
    return kept, told
