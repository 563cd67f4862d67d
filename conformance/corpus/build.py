"""Builds the corpus on this machine's CPU: record, choose, derive, add our own, validate, write."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from conformance.corpus.derive import Deriver
from conformance.corpus.model import Sample
from conformance.corpus.outs import vary_outs
from conformance.corpus.own import realize
from conformance.corpus.pools import PoolBuilder
from conformance.corpus.reader import DATA
from conformance.corpus.record import Recording, record
from conformance.corpus.select import most_different, total
from conformance.corpus.validate import Died, validate
from conformance.corpus.writer import write
from conformance.inventory import Overload, inventory
from conformance.ops import own_samples

Progress = Callable[[str], None]

# How many samples of an overload to keep for each base: of the targets, and of what is composed of them.
MOST_OF_A_TARGET = {"float32": 7, "int64": 4, "complex64": 3, "bool": 3}
MOST_OF_A_COMPOSITE = {"float32": 2, "int64": 1, "complex64": 1, "bool": 1}
DERIVING_ROUNDS = 3
SPARE = 2  # chosen beyond that, for those that turn out not to run


@dataclass(frozen=True)
class Built:
    """What a build made."""

    hash: str
    samples: dict[str, list[Sample]]
    died: list[Died]
    targets: int
    targets_reached: int

    def summary(self) -> str:
        rows = [s for found in self.samples.values() for s in found]
        return (
            f"corpus {self.hash[:12]}: {len(self.samples)} overloads, {len(rows)} samples, {total(rows)} with dtypes, "
            f"{sum(s.raises for s in rows)} that raise; {self.targets_reached} of {self.targets} targets reached; "
            f"{len(self.died)} samples killed the CPU itself"
        )


def build(out_dir: Path = DATA, progress: Progress = lambda _: None) -> Built:
    """Write the corpus into ``out_dir``. The same torch on the same machine gives the same hash."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _build(out_dir, progress)
    finally:
        torch.set_num_threads(threads)


def _build(out_dir: Path, progress: Progress) -> Built:
    overloads = {o.name: o for o in inventory("CPU")}
    recording = record(progress)
    progress("validating what was recorded")
    kept, died = _keep(_candidates(recording, overloads), overloads, recording.pools)
    progress("adding samples of our own")
    own, died_own = validate(realize(own_samples(), recording.pools), recording.pools)
    died += died_own
    for sample in own:
        kept[sample.overload].append(sample)
    deriver = Deriver(overloads, recording.pools, _most)
    for round_ in range(DERIVING_ROUNDS):  # a functional form derived in one round gives outputs in the next
        progress(f"deriving, round {round_ + 1} of {DERIVING_ROUNDS}")
        derived, died_deriving = _keep(deriver.derive(kept), overloads, recording.pools)
        died += died_deriving
        for name, rows in derived.items():
            kept[name] += rows
    progress("varying outputs")
    targets = {o.name for o in overloads.values() if o.is_target}
    varied, died_varied = validate(list(vary_outs(kept, sorted(targets))), recording.pools)
    died += died_varied
    for sample in varied:
        kept[sample.overload].append(sample)
    progress("writing")
    reached = {name for name, rows in kept.items() if any(not s.raises for s in rows)}
    schemas = {name: o.schema for name, o in overloads.items()}
    hash_ = write(out_dir, kept, recording.pools, schemas, {})
    return Built(hash_, kept, died, len(targets), len(targets & reached))


def _candidates(recording: Recording, overloads: dict[str, Overload]) -> list[Sample]:
    chosen: list[Sample] = []
    for (name, base), rows in sorted(recording.candidates.items()):
        if name in overloads:
            most = _most(overloads[name])[base] + SPARE
            chosen += most_different([s for s in rows if not s.raises], most)
            chosen += most_different([s for s in rows if s.raises], 1)
    return chosen


def _keep(
    samples: list[Sample], overloads: dict[str, Overload], pools: PoolBuilder
) -> tuple[dict[str, list[Sample]], list[Died]]:
    valid, died = validate(samples, pools)
    kept: dict[str, list[Sample]] = defaultdict(list)
    for sample in valid:
        same = [s for s in kept[sample.overload] if (s.base, s.raises) == (sample.base, sample.raises)]
        if all(s.name != sample.name for s in same) and len(same) < (
            1 if sample.raises else _most(overloads[sample.overload])[sample.base]
        ):
            kept[sample.overload].append(sample)
    return kept, died


def _most(overload: Overload) -> dict[str, int]:
    return MOST_OF_A_TARGET if overload.is_target else MOST_OF_A_COMPOSITE


def main(argv: Iterable[str] = sys.argv[1:]) -> int:
    """``python -m conformance.corpus.build [DIRECTORY]``"""
    out_dir = Path(next(iter(argv), DATA))
    print(build(out_dir, lambda s: print(s, file=sys.stderr, flush=True)).summary())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
