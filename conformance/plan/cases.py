"""Cells (inventory × corpus × dtype × layout) and the cases in each, under stable ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice

from conformance import layouts
from conformance.corpus.model import Sample
from conformance.layouts import ALIASED, AS_STRIDED, BROADCAST, CHANNEL_SLICE, CONTEXTS, GENERATED, MIXED, SEQUENCE
from conformance.plan import context_cases, kinds, layout_cases, sequence_cases
from conformance.plan.case import Case, movable, slot_dtype
from conformance.plan.tiers import TIERS, Tier
from conformance.vocabulary import CellId


def axis_of(layout: str) -> str:
    """Return the axis of the generated samples that a layout's cells have; "" if they have recorded samples."""
    return GENERATED[layout][0] if layout in GENERATED else ""


def _taken(cell: CellId, samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield the samples that have cases in a cell. The axis is checked first: most samples have another axis."""
    axis, is_drawn = axis_of(cell.layout), cell.layout == AS_STRIDED
    in_channels = cell.layout in GENERATED and GENERATED[cell.layout][1] == CHANNEL_SLICE
    for sample in samples:
        if sample.axis != axis and not (is_drawn and layout_cases.has_many_dimensions(sample)):
            continue
        if cell.dtype in _dtypes_in(cell.layout, sample) and (not in_channels or layout_cases.has_channels(sample)):
            yield sample


def cases_of_sample(cell: CellId, sample: Sample, pointwise: bool) -> Iterator[Case]:
    """Return every case of one sample in a cell."""
    if cell.layout in GENERATED:
        return layout_cases.generated(cell, sample)
    if cell.layout == ALIASED:
        return layout_cases.aliased(cell, sample, pointwise)
    if cell.layout == MIXED:
        return layout_cases.mixed(cell, sample)
    if cell.layout == BROADCAST:
        return layout_cases.broadcast(cell, sample)
    if cell.layout == AS_STRIDED:
        return layout_cases.as_strided(cell, sample)
    return layout_cases.in_one_layout(cell, sample, pointwise)


def cases(cell: CellId, samples: Iterable[Sample], most: int | None = None, pointwise: bool = False) -> list[Case]:
    """Return the cases of ``cell``, in the order in which they run. There are none if the layout fits no sample.

    ``most``: the number of samples to which to limit the cases. ``pointwise``: the overload broadcasts its arguments.
    """
    if cell.layout == SEQUENCE:
        return list(sequence_cases.sequences(cell, list(samples)))
    if cell.layout in CONTEXTS:
        return list(context_cases.in_context(cell, list(samples)))
    fit: Iterable[Sample] = _taken(cell, samples)
    if most is not None and (cell.layout in GENERATED or cell.layout == AS_STRIDED):
        fit = kinds.spread(fit)
    each = (found for sample in fit if (found := list(cases_of_sample(cell, sample, pointwise))))
    return list(chain.from_iterable(islice(each, most)))


def cells(
    family: str,
    overload: str,
    samples: Iterable[Sample],
    tier: Tier = TIERS["wide"],
    generated: Mapping[str, Iterable[str]] | None = None,
    pointwise: bool = False,
    broadcasts: bool = False,
) -> list[CellId]:
    """Return the cells of one overload: the dtypes of its samples, and for each dtype the layouts that fit a sample.

    ``generated``: the dtypes of generated samples that are not in ``samples``, by layout as in :func:`of_generated`.
    ``pointwise``: torch's tag says that the overload broadcasts its arguments. ``broadcasts``: the tag says so of the
    overload or of another form.
    """
    samples = list(samples)
    fits = context_cases.of_contexts(overload, samples, tier)
    for sample in samples:
        for dtype, names in _fitting(sample, tier, pointwise, broadcasts).items():
            fits.setdefault(dtype, set()).update(names)
    for name, dtypes in (generated or {}).items():
        if tier.layouts is None or name in tier.layouts:
            for dtype in dtypes:
                if tier.dtypes is None or dtype in tier.dtypes:
                    fits.setdefault(dtype, set()).add(name)
    return [
        CellId(family, overload, dtype, layout)
        for dtype in sorted(fits)
        for layout in layouts.LAYOUTS
        if layout in fits[dtype]
    ]


def _fitting(sample: Sample, tier: Tier, pointwise: bool, broadcasts: bool) -> dict[str, set[str]]:
    """Return the layouts that fit a sample, by dtype. Layouts that depend only on shapes are tried once for all."""
    dtypes = [d for d in sample.dtypes if tier.dtypes is None or d in tier.dtypes]
    if not dtypes:
        return {}
    if sample.axis:
        of = of_generated(sample)
        wanted = of if tier.layouts is None else of.keys() & tier.layouts
        return {d: {n for n in wanted if d in of[n]} for d in dtypes}
    shaped = {name for name in layouts.PLACERS if name not in ("conj", "neg") and _fits(sample, name)}
    shaped.add("contiguous")
    result = {}
    for dtype in dtypes:
        names = set(shaped)
        names.update(bit for bit in ("conj", "neg") if _bit_fits(sample, bit, dtype))
        probe = CellId("", sample.overload, dtype, ALIASED)
        if next(layout_cases.aliased(probe, sample, pointwise), None):
            names.add(ALIASED)
        if next(layout_cases.mixed(probe, sample), None):
            names.add(MIXED)
        if broadcasts and next(layout_cases.broadcast(probe, sample), None):
            names.add(BROADCAST)
        if _has_elements(sample):
            names.add(AS_STRIDED)
        if dtype in sequence_cases.DTYPES and sample.tensors and not sample.raises:
            names.add(SEQUENCE)
        result[dtype] = names if tier.layouts is None else names & tier.layouts
    return result


def of_generated(sample: Sample) -> dict[str, tuple[str, ...]]:
    """Return the layouts of ``GENERATED`` that fit a generated sample, with the dtypes of their cells."""
    of_axis = ((name, layout) for name, (axis, layout) in GENERATED.items() if axis == sample.axis)
    fitting = [name for name, layout in of_axis if layout == "contiguous" or _fits(sample, layout)]
    return {name: dtypes for name in fitting if (dtypes := _dtypes_in(name, sample))}


def _dtypes_in(layout: str, sample: Sample) -> tuple[str, ...]:
    """Return the dtypes in which the cells of a layout have cases of a sample."""
    if layout in layouts.OF_TWO_DTYPES:
        floating = [d for d in sample.dtypes if d in layouts.NEG_DTYPES and not d.startswith("complex")]
        return tuple(dict.fromkeys(d for d in (*floating[:1], layouts.HALF) if d in floating))
    return sample.dtypes[:1] if layout in layouts.OF_FIRST_DTYPE else sample.dtypes


def _has_elements(sample: Sample) -> bool:
    return any(s.numel for s in movable(sample))


def _fits(sample: Sample, layout: str) -> bool:
    if layout == AS_STRIDED:
        return _has_elements(sample)
    if layout == CHANNEL_SLICE:
        return layout_cases.has_channels(sample)
    return any(layouts.place(layout, s.shape, s.written) for s in movable(sample))


def _bit_fits(sample: Sample, bit: str, dtype: str) -> bool:
    return any(layouts.carries(bit, slot_dtype(s, dtype)) for s in movable(sample))
