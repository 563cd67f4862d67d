"""Dtypes in which CPU lacks an overload: a backend's own kernel is judged there by CPU's in a wider dtype. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from conformance.corpus.model import DtypeArg, Sample
from conformance.corpus.values import kind_of
from conformance.layouts import LAYOUTS
from conformance.ops import facts
from conformance.plan import cases as cases_
from conformance.plan.case import Case
from conformance.plan.tiers import Tier
from conformance.vocabulary import CellId

#: The dtype in which CPU computes in place of one that it lacks.
WIDER = {"float16": "float32", "bfloat16": "float32", "complex32": "complex64"}

#: The layouts of the cells in dtypes that CPU lacks.
TRIED = ("contiguous", "values")

_ORDER = {layout: i for i, layout in enumerate(LAYOUTS)}


def dtype_on_cpu(case: Case) -> str:
    """Return the wider dtype in which CPU's side of a case is computed, "" if that is the dtype of the cell."""
    cell, dtypes = case.cell, case.sample.dtypes
    wide = WIDER.get(cell.dtype, "") if cell.layout in TRIED else ""
    return wide if wide in dtypes and cell.dtype not in dtypes else ""


def lacking(recorded: Iterable[Sample], generated: Mapping[str, Collection[str]]) -> list[str]:
    """Return the dtypes in which no sample of an overload runs on CPU, though some do in the wider dtype.

    ``generated``: the dtypes of generated samples, by layout.
    """
    there = {d for s in recorded if not s.raises for d in s.dtypes}.union(*generated.values())
    return [dtype for dtype, wide in WIDER.items() if dtype not in there and wide in there]


def cells(known: Sequence[CellId], samples: Sequence[Sample], tier: Tier, dtypes: Sequence[str]) -> list[CellId]:
    """Return the ``known`` cells of one overload, with those in the ``dtypes`` that CPU lacks, in their order."""
    found = set(known)
    fitting = [s for s in samples if _has_one_dtype(s)]
    layouts = frozenset(TRIED) if tier.layouts is None else tier.layouts.intersection(TRIED)
    for dtype in dtypes if fitting else ():
        if tier.dtypes is None or dtype in tier.dtypes:
            of_wide = replace(tier, dtypes=frozenset({WIDER[dtype]}), layouts=layouts, chosen=frozenset())
            overload = fitting[0].overload
            more = cases_.cells(facts(overload).family, overload, fitting, of_wide)
            found |= {replace(cell, dtype=dtype) for cell in more}
    return sorted(found, key=lambda c: (c.dtype, _ORDER[c.layout]))


def cases(cell: CellId, samples: Iterable[Sample], most: int | None, pointwise: bool) -> list[Case]:
    """Return the cases of a cell in a dtype that CPU lacks: those of the wider dtype."""
    fitting = (s for s in samples if _has_one_dtype(s))
    found = cases_.cases(replace(cell, dtype=WIDER[cell.dtype]), fitting, most, pointwise)
    return [replace(case, cell=cell) for case in found]


def _has_one_dtype(sample: Sample) -> bool:
    """Return whether a sample returns on CPU, and the cell's dtype is the only floating dtype of its arguments."""
    named = [slot.dtype for slot in sample.tensors]
    named += [a.name for a in (*sample.args, *(arg for _, arg in sample.kwargs)) if isinstance(a, DtypeArg)]
    fixed = {kind_of(dtype) for dtype in named if dtype}
    is_taken = any(slot.dtype is None for slot in sample.tensors)
    return is_taken and not sample.raises and fixed.isdisjoint(("float", "complex"))
