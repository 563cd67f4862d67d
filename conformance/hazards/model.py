"""A hazard: a program, and the dependency that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from conformance.hazards.bench import Bench, Difference

#: The differences of a run, found in order. A program with no difference yields None, or nothing.
Found = Iterator[Difference | None]


class Needs(Enum):
    """The requirements of a hazard for a backend, besides one device."""

    STREAMS = "streams"
    PINNED = "pinned memory"
    TWO_DEVICES = "two devices"
    DONATION = "donated memory (donate)"
    SEEDS = "generator that torch.manual_seed() seeds"


@dataclass(frozen=True, slots=True)
class Hazard:
    """``later`` must wait for ``earlier``: two calls of the program, in words that a finding quotes."""

    name: str
    earlier: str
    later: str
    needs: frozenset[Needs]
    run: Callable[[Bench], Found]
    once: bool = False  # it delays its work itself, and runs under the first schedule only

    def text(self) -> str:
        """Return one line with the dependency and the requirements for a backend."""
        needs = [need.value for need in Needs if need in self.needs]
        of = f"; needs {', '.join(needs)}" if needs else ""
        return f"{self.name}: {self.later}, after {self.earlier}{of}"

    def missing(self) -> str:
        return f"missing dependency: {self.later} did not wait for {self.earlier}"


HAZARDS: dict[str, Hazard] = {}


def hazard(
    earlier: str, later: str, *needs: Needs, once: bool = False
) -> Callable[[Callable[[Bench], Found]], Callable[[Bench], Found]]:
    """Register a program as a hazard, named after its function."""

    def register(run: Callable[[Bench], Found]) -> Callable[[Bench], Found]:
        name = run.__name__
        if name in HAZARDS:
            raise ValueError(f"two hazards are called {name}")
        HAZARDS[name] = Hazard(name, earlier, later, frozenset(needs), run, once)
        return run

    return register
