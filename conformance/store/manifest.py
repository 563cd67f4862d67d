"""What a run was, as known before its first cell, and the error of everything that reads results."""

from __future__ import annotations

from dataclasses import dataclass


class StoreError(ValueError):
    """Results that cannot be read, or not be written; the message is one line and names the file."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run was: written before the first cell runs, so only what is known by then."""

    lane: str
    backend: str
    collected: int  # cells
    complete: bool  # every cell of the lane was collected: no -k, no --dtypes, tier full
    torch: str
    environment: str
    build: str
    python: str
    compiler: str
    backend_commit: str
    corpus: str  # its content hash
    tier: str
    seed: int
    arguments: tuple[str, ...] = ()  # pytest's, as given
    cells: str = ""  # a hash of the ids of the cells collected
