"""Records with invented times."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from conformance.perf import store
from conformance.perf.model import End, Key, Limits, Machine, Record, Round, Size, Work
from conformance.results.store.manifest import run_name
from tests.records import manifest

SERIES = "demo-torch2.8-malloc-release+perf"
BEGAN = datetime(2026, 1, 1, 4, tzinfo=timezone.utc)

# A machine whose device copies 1 GB/s and computes 1 GFLOP/s, and whose CPU copies 2 GB/s and computes 10 GFLOP/s.
MACHINE = Machine(Limits(1e9, 1e9, 1e-6), Limits(2e9, 1e10, 5e-7))


def rounds(
    device: float, cpu: float = 1e-3, *, processes: int = 5, noise: float = 0.02, seed: int = 0, busy: float = 3.0
) -> list[Round]:
    """Return rounds of five blocks. Other load slows both sides of a block by a factor of up to ``busy``."""
    draw = random.Random(seed)
    found = []
    for _ in range(processes):
        own = draw.gauss(1, noise)
        slowed = [draw.uniform(1, busy) for _ in range(5)]
        times = tuple(device * own * s * draw.gauss(1, noise) for s in slowed)
        found.append(Round(10, tuple(t / 2 for t in times), times, tuple(cpu * s for s in slowed)))
    return found


def record(
    overload: str = "add.Tensor", size: Size = Size.LARGE, *, device: float = 1e-3, cpu: float = 1e-3,
    work: Work | None = None, of: Sequence[Round] | None = None, shapes: tuple[tuple[int, ...], ...] = ((10,),),
) -> Record:  # fmt: skip
    """Return the record of a measured case."""
    made = Work(10, 80, 40) if work is None else work
    blocks = rounds(device, cpu, noise=0, busy=1) if of is None else of
    return Record(Key(overload, "float32", size), "native", End.MEASURED, "", "s", shapes, made, tuple(blocks))


def ended(end: End, overload: str = "add.Tensor", reason: str = "why") -> Record:
    """Return the record of a case that was not measured."""
    return Record(Key(overload, "float32", Size.LARGE), "native", end, reason)


def timed(results: Path, *records: Record, token: str = "aaaaaa") -> Path:
    """Store a run with these records, and return its directory."""
    name = run_name(SERIES, BEGAN, token)
    return store.save(results, manifest(collected=len(records), run=name), MACHINE, {"rounds": 5}, records)
