"""The messages between the process that the user starts and the nodes of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from conformance.lanes.matrix import Resources


class ClusterError(ValueError):
    """A cluster that cannot be used as requested. The message is one line."""


@dataclass(frozen=True, slots=True)
class Order:
    """One task: to run a shard of a lane, or, if ``shard`` is "", to list the lane's cells."""

    lane: str
    backend: str
    tier: str
    environment: str  # the nox session that makes the lane's environment
    shard: str  # "I/N"
    resources: Resources
    root: str  # the checkout, at the same path on every node
    token: str  # of the cluster run
    reuse: bool = False  # do not make an environment again that exists
    split_by: str = ""  # the closed run whose durations split the cells
    arguments: tuple[str, ...] = ()  # the user's, for pytest

    @property
    def key(self) -> str:
        return f"{self.lane} {self.shard}"


class State(Enum):
    """The end of a task."""

    ENDED = "ended"  # with the outcome of every cell of the shard, or the list of cells
    EMPTY = "empty"  # the shard has no cells
    STOPPED = "stopped"  # the user ended the run
    FAILED = "failed"  # see the reason


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a task."""

    state: State
    node: str = ""
    reason: str = ""
    run: str = ""  # the name of the shard's closed run
    files: dict[str, bytes] = field(default_factory=dict)  # those of the closed run, by name
    cells: tuple[str, ...] = ()  # the ids of a lane's cells, for an order without shard


@dataclass(frozen=True, slots=True)
class Begun:
    """The answer to a task that begins. Attempts count from 1; 0: the task must not begin."""

    attempt: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class News:
    """Lines of a shard's journal; none when an attempt begins. The first line of an attempt is the manifest."""

    key: str
    attempt: int
    node: str
    lines: tuple[str, ...]


class Mail(Protocol):
    """The methods of :class:`conformance.cluster.inbox.Inbox` that a task uses."""

    def begin(self, key: str, node: str) -> Begun: ...
    def add(self, news: News) -> bool: ...
