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

    The median of a run is the median of its processes' medians. Each resample draws processes with replacement, then
    blocks of each drawn process. Two processes differ more than two blocks of one process (addresses, caches, other
    load of the machine), so resamples of blocks alone would give an interval that is too narrow. If each side has only
    one process, the interval comes from its blocks.
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
