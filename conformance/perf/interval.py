"""The interval of a ratio of two medians, by a bootstrap over processes and their blocks. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SEED = 20
RESAMPLES = 2000
CONFIDENCE = 0.99

Samples = Sequence[Sequence[float]]  # of each process, a number for each of its blocks


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio, new over old, and the interval that contains it with :data:`CONFIDENCE`."""

    ratio: float
    low: float
    high: float


def of_ratio(old: Samples, new: Samples) -> Interval:
    """Return the interval of the median of ``new`` over that of ``old``.

    A median is that of the processes' medians. Each resample draws processes with replacement, and of each its blocks:
    two processes differ by more than two blocks of one (addresses, caches, what else the machine does), so that blocks
    alone would give an interval that is too narrow. With one process a side the interval is that of its blocks.
    """
    generator = np.random.default_rng(SEED)
    drawn = _medians(new, generator) / _medians(old, generator)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(_median(new) / _median(old), float(low), float(high))


def _median(of: Samples) -> float:
    return float(np.median([np.median(blocks) for blocks in of]))


def _medians(of: Samples, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return the median of each resample."""
    chosen = generator.integers(len(of), size=(RESAMPLES, len(of)))
    medians = np.empty(chosen.shape)
    for process, blocks in enumerate(of):
        at = chosen == process
        drawn = generator.integers(len(blocks), size=(int(at.sum()), len(blocks)))
        medians[at] = np.median(np.asarray(blocks, dtype=np.float64)[drawn], axis=1)
    found: NDArray[np.float64] = np.median(medians, axis=1)
    return found
