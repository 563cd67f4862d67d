"""The cases of a cell of sequences: calls after others that differ from them in one thing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.corpus.model import Sample
from conformance.plan.case import Case, movable, placed, plainly, put
from conformance.vocabulary import CellId

# What comes before a call in a sequence, at most so many of each kind.
DTYPES = ("float32", "int64")
SAMPLES = 2
_LAYOUTS_BEFORE = ("transposed", "offset_gap", "expanded")
_VARIANTS_BEFORE = 4
_SIZES_BEFORE = 8  # all of them before one call: more than a small cache holds


def sequences(cell: CellId, samples: Sequence[Sample]) -> Iterator[Case]:
    """The cases of a cell of sequences: each is a sample's call after calls that differ from it in one thing."""
    plain = [s for s in samples if not s.axis and not s.raises and cell.dtype in s.dtypes]
    plain.sort(key=lambda sample: not _variants_of(sample, samples))  # those with variants first
    for sample in plain[:SAMPLES]:
        for label, before in _before(cell, sample, samples):
            yield Case(cell, sample, f"after={label}", put(sample, {}), (), tuple(before))
        # The other way round: a cache may keep what the first call of a shape put there.
        for variant in _variants_of(sample, samples)[:_VARIANTS_BEFORE]:
            if cell.dtype in variant.dtypes:
                yield Case(
                    cell, variant, f"after={sample.name}", put(variant, {}), (), (plainly(cell, cell.dtype, sample),)
                )


def _before(cell: CellId, sample: Sample, samples: Sequence[Sample]) -> Iterator[tuple[str, list[Case]]]:
    for layout in _LAYOUTS_BEFORE:
        moved = {s.index: p for s in movable(sample) if not s.written and (p := placed(s, layout, cell.dtype))}
        if moved:
            yield layout, [Case(cell, sample, layout, put(sample, moved))]
    for dtype in [d for d in sample.dtypes if d != cell.dtype][:2]:
        yield dtype, [plainly(cell, dtype, sample)]
    for variant in _variants_of(sample, samples)[:_VARIANTS_BEFORE]:
        yield variant.name, [plainly(cell, cell.dtype, variant)]
    for variant in [s for s in samples if s.raises and cell.dtype in s.dtypes][:1]:
        yield "error", [plainly(cell, cell.dtype, variant)]
    sizes = [s for s in samples if s.axis == "sizes" and cell.dtype in s.dtypes]
    if sizes:
        yield "sizes", [plainly(cell, cell.dtype, s) for s in sizes[:_SIZES_BEFORE]]


def _variants_of(sample: Sample, samples: Sequence[Sample]) -> list[Sample]:
    """Return the generated samples that replace one argument of a sample, and do not raise."""
    found = [s for s in samples if s.axis == "variants" and not s.raises]
    return [s for s in found if s.name.startswith(f"{sample.name}.")]
