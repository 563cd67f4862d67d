"""The build of the corpus on this machine's CPU: record, select, derive, add own samples, validate, write."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from conformance.corpus.derive import Deriver
from conformance.corpus.model import (
    Arg,
    ComplexArg,
    DeviceArg,
    DtypeArg,
    EnumArg,
    GeneratorArg,
    Sample,
    TensorSlot,
)
from conformance.corpus.outs import vary_outs
from conformance.corpus.own import realize
from conformance.corpus.pools import PoolBuilder
from conformance.corpus.reader import DATA, Corpus
from conformance.corpus.record import Recording, record
from conformance.corpus.select import most_different, total
from conformance.corpus.validate import Died, validate
from conformance.corpus.writer import write
from conformance.inventory import Overload, inventory
from conformance.ops import facts, own_samples

Progress = Callable[[str], None]

# The number of samples to keep for each base: of a target overload, and of a composite overload.
MOST_OF_A_TARGET = {"float32": 7, "int64": 4, "complex64": 3, "bool": 3}
MOST_OF_A_COMPOSITE = {"float32": 2, "int64": 1, "complex64": 1, "bool": 1}
# Calls that raise an error in the torch that builds the corpus. In another version, they kill the process with a
# division by zero.
KILLS_SOME_TORCH = frozenset([("arange.start_out", "int64"), ("mvlgamma_", "int64")])
DERIVING_ROUNDS = 3
SPARE = 2  # more samples than needed, since some do not run


@dataclass(frozen=True)
class Built:
    """The result of a build."""

    hash: str
    samples: dict[str, list[Sample]]
    died: list[Died]
    targets: int
    unreached: dict[str, str]  # target without a sample with values -> reason

    def summary(self) -> str:
        rows = [s for found in self.samples.values() for s in found]
        return (
            f"corpus {self.hash[:12]}: {len(self.samples)} overloads, {len(rows)} samples, {total(rows)} with dtypes, "
            f"{sum(s.raises for s in rows)} that raise; "
            f"{self.targets - len(self.unreached)} of {self.targets} targets reached; "
            f"{len(self.died)} samples crashed on CPU"
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
    recording = record(progress, composites(overloads))
    pools = recording.pools
    gathering = Gathering(overloads, pools)
    progress("validating recorded samples")
    gathering.take(_candidates(recording, overloads), _most)
    progress("adding own samples")
    gathering.take(realize(own_samples(), pools))
    deriver = Deriver(overloads, pools, _most)
    for round_ in range(DERIVING_ROUNDS):  # a functional form of one round gives the outputs of the next
        progress(f"deriving, round {round_ + 1} of {DERIVING_ROUNDS}")
        gathering.take(deriver.derive(gathering.kept), _most)
    progress("varying outputs")
    targets = frozenset(o.name for o in overloads.values() if o.is_target)
    gathering.take(list(vary_outs(gathering.kept, targets)))
    progress("writing")
    return _write(out_dir, gathering, targets)


def composites(overloads: Mapping[str, Overload]) -> dict[str, list[str]]:
    """Return the CompositeImplicit overloads of each operator."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, overload in overloads.items():
        if overload.is_composite_implicit and overload.has_tensors:
            found[overload.base].append(name)
    return found


def _write(out_dir: Path, gathering: Gathering, targets: frozenset[str]) -> Built:
    kept, overloads = gathering.kept, gathering.overloads
    reached = {name for name, rows in kept.items() if any(not s.raises for s in rows)}
    schemas = {name: o.schema for name, o in overloads.items()}
    reasons = {name: reason(o) for name, o in overloads.items() if name not in reached}
    hash_ = write(out_dir, kept, gathering.pools, schemas, reasons)
    unreached = {name: reasons[name] for name in sorted(targets - reached)}
    return Built(hash_, kept, gathering.died, len(targets), unreached)


def reason(overload: Overload) -> str:
    """Return why an overload has no sample with values."""
    known = facts(overload.name).cannot
    if known:
        return known
    if not overload.has_cpu_kernel:
        return "the CPU has no kernel for it, so there is nothing to compare with"
    if not overload.has_tensors:
        return "neither takes nor gives a tensor"
    if overload.is_composite_implicit:
        return "made of other overloads on every device, and those are compared"
    return "no sample suits it: neither recorded, nor derived from a sibling, nor written by hand"


@dataclass
class Gathering:
    """The samples that run on CPU, by overload."""

    overloads: dict[str, Overload]
    pools: PoolBuilder
    kept: dict[str, list[Sample]] = field(default_factory=lambda: defaultdict(list))
    died: list[Died] = field(default_factory=list)

    def take(self, samples: list[Sample], most: Callable[[Overload], dict[str, int]] | None = None) -> None:
        """Keep the samples that run. With ``most``, keep a limited number for each base, and one that raises."""
        valid, died = validate(samples, self.pools)
        self.died += died
        for sample in valid:
            rows = self.kept[sample.overload]
            same = [s for s in rows if (s.base, s.raises) == (sample.base, sample.raises)]
            if most and len(same) >= (1 if sample.raises else most(self.overloads[sample.overload])[sample.base]):
                continue
            if all(s.name != sample.name for s in rows):
                rows.append(sample)


def describe(corpus: Corpus, overload: str) -> list[dict[str, str]]:
    """Return a row of text for each sample of an overload."""
    return [
        {
            "sample": s.name,
            "base": s.base,
            "dtypes": " ".join(s.dtypes),
            "call": ", ".join([*map(_spell, s.args), *[f"{k}={_spell(a)}" for k, a in s.kwargs]]),
            "expects": "an error" if s.raises else "values",
        }
        for s in corpus.samples(overload)
    ]


def _spell(arg: Arg) -> str:
    return _SPELLED.get(type(arg), repr)(arg)


def _spell_slot(slot: TensorSlot) -> str:
    dtype = f" {slot.dtype}" if slot.dtype else ""
    same = f" is {slot.same_as}" if slot.same_as else ""
    return f"{slot.name}{list(slot.shape)}{dtype}{same}{'' if slot.pool else ' undefined'}"


_SPELLED: dict[type, Callable[[Any], str]] = {
    TensorSlot: _spell_slot,
    tuple: lambda arg: f"[{', '.join(map(_spell, arg))}]",
    DtypeArg: lambda arg: arg.name or "the cell's dtype",
    DeviceArg: lambda _: "the device",
    EnumArg: lambda arg: arg.name,
    GeneratorArg: lambda arg: f"generator seeded {arg.seed}",
    ComplexArg: lambda arg: f"{arg.real}+{arg.imag}j",
}


def _candidates(recording: Recording, overloads: dict[str, Overload]) -> list[Sample]:
    chosen: list[Sample] = []
    for (name, base), rows in sorted(recording.candidates.items()):
        if name in overloads and not facts(name).cannot:
            most = _most(overloads[name])[base] + SPARE
            chosen += most_different([s for s in rows if not s.raises], most)
            if (name, base) not in KILLS_SOME_TORCH:
                chosen += most_different([s for s in rows if s.raises], 1)
    return chosen


def _most(overload: Overload) -> dict[str, int]:
    return MOST_OF_A_TARGET if overload.is_target else MOST_OF_A_COMPOSITE


def main(argv: Iterable[str] = sys.argv[1:]) -> int:
    """Run ``python -m conformance.corpus.build [DIRECTORY]``."""
    out_dir = Path(next(iter(argv), DATA))
    print(build(out_dir, lambda s: print(s, file=sys.stderr, flush=True)).summary())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
