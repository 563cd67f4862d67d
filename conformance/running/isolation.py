"""Where a fresh child comes from: forked from this process, or spawned ahead, so that a warm one is at hand."""

from __future__ import annotations

from typing import Any, Protocol

from conformance.running.child import Child, Spawned
from conformance.running.progress import Progress
from conformance.running.protocol import Server, Work

FORK, SPAWN, AUTO = "fork", "spawn", "auto"
MODES = (AUTO, FORK, SPAWN)

# The module that a spawned child runs.
_MODULE = "conformance.running.spawned"


class Children(Protocol):
    """A source of fresh children, all of which note in ``progress`` what they do."""

    progress: Progress

    def fresh(self) -> Child:
        """A child that has run nothing."""

    def close(self) -> None:
        """End the children that nobody has taken."""


class Forking:
    """Children forked from this process, which has loaded everything and not touched the device: milliseconds each."""

    def __init__(self, work: Work) -> None:
        self.progress = Progress()
        self._serve = Server(work, self.progress)
        work.prepare()

    def fresh(self) -> Child:
        return Child(self._serve)

    def close(self) -> None:
        """There is none."""


class Spawning:
    """New interpreters, each of which loads everything again: seconds. One is always getting ready ahead."""

    def __init__(self, recipe: dict[str, Any]) -> None:
        """``recipe`` is what a plan is made from, see ``Plan.recipe``."""
        self.progress = Progress()
        self._recipe = recipe
        self._spare: Child | None = self._spawn()

    def fresh(self) -> Child:
        child = self._spare or self._spawn()
        self._spare = self._spawn()
        return child

    def close(self) -> None:
        if self._spare:
            self._spare.kill()
            self._spare = None

    def _spawn(self) -> Child:
        return Spawned(_MODULE, self._recipe, self.progress.descriptor)


def choose(mode: str, wish: str, device_in_use: bool) -> tuple[str, str]:
    """(FORK or SPAWN, what to say about it) for the mode asked for and what the backend's adapter wishes.

    Raises ValueError where children are to be forked that could not use the device.
    """
    if mode == SPAWN or (mode == AUTO and wish == SPAWN):
        return SPAWN, ""
    if not device_in_use:
        return FORK, ""
    why = "the device was used in this process before its first child is forked, which therefore could not use it"
    if mode == FORK:
        raise ValueError(f"{why}; load the backend without touching its device, or give --isolation spawn")
    return SPAWN, f"children are spawned, not forked: {why}"


def children(mode: str, work: Work, recipe: dict[str, Any]) -> Children:
    """The source of children that FORK or SPAWN stands for."""
    return Spawning(recipe) if mode == SPAWN else Forking(work)
