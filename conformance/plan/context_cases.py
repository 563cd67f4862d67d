"""The cases of a cell of a context, and the contexts in which an overload has cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.corpus.model import Sample
from conformance.corpus.places import with_tensors
from conformance.layouts import CONTEXTS, Placement
from conformance.plan.case import Case, movable, placed, plainly, put
from conformance.plan.other_numbers import with_other_numbers
from conformance.plan.tiers import Tier
from conformance.vocabulary import CellId

# The most samples of a cell of a context. The effect of a context rarely depends on the values of the arguments.
SAMPLES = 6
# The dtype of an overload's cells of a context: the first of these that its samples have, else their first.
DTYPES = ("float32", "int64", "bool")
# Contexts with cells of other dtypes.
OTHER_DTYPES = {"gradcheck": ("float64",), "default_dtype": ("int64",)}
# Contexts with cells of more dtypes.
MORE_DTYPES = {
    "autocast": ("bfloat16", "float64"),
    "backward": ("bfloat16", "complex64"),
    "forward_ad": ("bfloat16", "complex64"),
}
# Contexts in which a sample has several cases.
VARIANTS = {
    "autocast": ("bfloat16", "float16"),
    "backward": ("dense", "strided", "expanded", "accumulate", "first", "last", "each", "equal"),
    "forward_ad": ("all", "one", "last"),
    "vmap": ("0", "-1", "nested"),
    "deterministic": ("", "strided+transposed", "warn_only"),
    "no_grad": ("no_grad", "grad"),
    "copied": ("deepcopy", "pickle"),
    "compiled": ("eager", "aot_eager"),
    "inductor": ("inductor", "inductor+offset1"),
}
# Contexts that depend on the dtypes of arguments, with the number of generated samples that have other dtypes.
MIXED_SAMPLES = {"autocast": 6, "backward": 6}
# Contexts of derivatives, whose formulas use the numbers among the arguments. They have samples with further numbers,
# in the first variant.
OF_DERIVATIVES = ("backward", "forward_ad", "gradcheck", "gradgrad", "jacrev")
# Contexts that may choose the widest dtype of all operands. In cells of a dtype, the last operand has this other dtype.
LAST_WIDER = {"autocast": {"bfloat16": "float32"}}
# Contexts in which a case takes seconds, with fewer samples.
FEWER_SAMPLES = {"decomposed": 3, "compiled": 2, "inductor": 2}


def in_context(cell: CellId, samples: Sequence[Sample]) -> Iterator[Case]:
    """Yield the cases of a cell of a context: contiguous calls of some of the overload's samples."""
    own = [s for s in samples if not s.axis and cell.dtype in s.dtypes]
    refused = [s for s in own if s.raises][:2]
    most = FEWER_SAMPLES.get(cell.layout, SAMPLES)
    mixed = _of_other_dtypes(samples, cell.dtype)[: MIXED_SAMPLES.get(cell.layout, 0)]
    returning = [s for s in own if not s.raises][:most]
    for sample in returning + mixed + _with_last_wider(returning, LAST_WIDER.get(cell.layout, {}).get(cell.dtype)):
        for variant in VARIANTS.get(cell.layout, ("",)):
            layout = variant.partition("+")[2]
            placements = _in_layout(sample, layout, cell.dtype)
            if not layout or any(p.layout == layout for p in placements):  # else it is the case without the layout
                yield Case(cell, sample, variant, placements)
        for other in refused if cell.layout == "after_error" else []:
            yield Case(cell, sample, f"after={other.name}", put(sample, {}), (), (plainly(cell, cell.dtype, other),))
    for sample in with_other_numbers(returning, samples, cell.dtype) if cell.layout in OF_DERIVATIVES else ():
        yield Case(cell, sample, VARIANTS.get(cell.layout, ("",))[0], put(sample, {}))
    for sample in refused if cell.layout == "second_device" else []:
        yield Case(cell, sample, "", put(sample, {}))


def _of_other_dtypes(samples: Sequence[Sample], dtype: str) -> list[Sample]:
    """Return generated samples with a set of tensor dtypes that no recorded sample has, one sample for each set."""
    recorded = {_dtypes_by_argument(s) for s in samples if not s.axis}
    varied = [s for s in samples if s.axis == "variants" and not s.raises and dtype in s.dtypes]
    found = {_dtypes_by_argument(s): s for s in reversed(varied) if not any(t.on_host for t in s.tensors)}
    return [found[key] for key in sorted(found.keys() - recorded)]


def _with_last_wider(samples: Sequence[Sample], dtype: str | None) -> list[Sample]:
    """Return samples of three or more operands with the last operand in ``dtype``; none if that is None."""
    found = []
    for sample in samples if dtype else ():
        operands = [t for t in sample.tensors if t.pool and t.dtype is None and not t.same_as]
        if len(operands) > 2 and not operands[-1].written:
            last = operands[-1]
            changed = (replace(t, dtype=dtype) if t is last else t for t in sample.tensors)
            found.append(replace(with_tensors(sample, changed), name=f"{sample.name}.{last.name}={dtype}"))
    return found


def _dtypes_by_argument(sample: Sample) -> tuple[tuple[str, str], ...]:
    return tuple((t.argument, t.dtype or "") for t in sample.tensors)


def _in_layout(sample: Sample, layout: str, dtype: str) -> tuple[Placement, ...]:
    """Return the placements of a sample, with a layout for every argument that can have it; "" for contiguous ones."""
    return put(sample, {s.index: p for s in movable(sample) if layout and (p := placed(s, layout, dtype))})


def of_contexts(overload: str, samples: Sequence[Sample], tier: Tier) -> dict[str, set[str]]:
    """Return the contexts in which an overload has cells, by dtype. The tier's dtypes do not affect their choice."""
    known = {dtype for s in samples if not s.axis and not s.raises for dtype in s.dtypes}
    wanted = [name for name in CONTEXTS if tier.has_context(name, overload)]
    found: dict[str, set[str]] = {}
    for name in wanted if known else ():
        first = next((d for d in DTYPES if d in known), min(known))
        others = OTHER_DTYPES.get(name, (first, *MORE_DTYPES.get(name, ())))
        for dtype in {*others} & known:
            if tier.dtypes is None or dtype in tier.dtypes:
                found.setdefault(dtype, set()).add(name)
    return found
