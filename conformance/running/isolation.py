"""Sources of fresh children: forked from this process, or spawned with one spare child in advance."""

from __future__ import annotations

from typing import Any, Protocol

from conformance.running.child import Child, Spawned
from conformance.running.progress import Progress
from conformance.running.protocol import Server, Work

FORK, SPAWN, AUTO = "fork", "spawn", "auto"
MODES = (AUTO, FORK, SPAWN)

# The module that a spawned child runs.
_MODULE = "conformance.running.spawned"

# Number of forked children after which a run counts as long and imports more. A short run does not wait for that.
_MANY = 8


class Children(Protocol):
    """A source of fresh children. All of them note the running case in ``progress``."""

    progress: Progress

    def fresh(self) -> Child:
        """Return a child that has run no case."""

    def close(self) -> None:
        """End the spare children, and free the memory of ``progress``."""


class Forking:
    """Children forked from this process, which has not used the device. A start takes milliseconds."""

    def __init__(self, work: Work) -> None:
        self.progress = Progress()
        self._work = work
        self._serve = Server(work, self.progress)
        self._forked = 0
        work.prepare()

    def fresh(self) -> Child:
        self._forked += 1
        if self._forked == _MANY:
            self._work.prepare_for_doubts()
        return Child(self._serve)

    def close(self) -> None:
        """Free the memory of ``progress``. There are no spare children."""
        self.progress.close()


class Spawning:
    """Children that are new interpreters. A start takes seconds, so one spare child always starts in advance."""

    def __init__(self, recipe: dict[str, Any]) -> None:
        """``recipe``: see ``Plan.recipe``."""
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
        self.progress.close()

    def _spawn(self) -> Child:
        return Spawned(_MODULE, self._recipe, self.progress.descriptor)


def choose(mode: str, wish: str, device_in_use: bool) -> tuple[str, str]:
    """Return FORK or SPAWN, and a note for the user. ``wish`` is the mode that the backend's adapter asks for.

    Raises ValueError if ``mode`` is FORK and forked children could not use the device.
    """
    if mode == SPAWN or (mode == AUTO and wish == SPAWN):
        return SPAWN, ""
    if not device_in_use:
        return FORK, ""
    why = "this process has used the device or its module, so a forked child could not use the device"
    if mode == FORK:
        raise ValueError(f"{why}; load the backend without using its device, or give --isolation spawn")
    return SPAWN, f"cells run in spawned processes: {why}"


def children(mode: str, work: Work, recipe: dict[str, Any]) -> Children:
    """Return the source of children for FORK or SPAWN."""
    return Spawning(recipe) if mode == SPAWN else Forking(work)
