"""Values for samples of other sizes: drawn from the stored values, and indices that reach the new ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from conformance import ops
from conformance.corpus.calls import HasValues
from conformance.corpus.model import Arg, Sample, TensorSlot
from conformance.corpus.places import Place, with_empty_outputs, with_tensors
from conformance.corpus.vary.arguments import by_name
from conformance.inventory import call_of
from conformance.torch_versions import schema_of


def filled(
    source: Sample, sample: Sample, change: dict[Place, int], values: HasValues, *, repeats: bool = False
) -> Iterator[Sample]:
    """Yield a resized sample with values, in the order in which to try them on CPU.

    First, integers that index a resized dimension reach its new end; then all integers are drawn from the stored ones.
    If either of two writes to one element may win, the indices are distinct, unless ``repeats``: the call adds up the
    writes.
    """
    named = any(indexes(s) for s in sample.tensors)
    if named and ops.facts(sample.overload).last_wins and not repeats:
        dim = by_name(sample, schema_of(call_of(sample.overload))).get("dim")
        for bound in sorted({n for s in sample.tensors for n in s.shape if not indexes(s)}, reverse=True):
            if all(_named_once(s, dim) <= bound for s in sample.tensors if indexes(s)):
                yield with_tensors(
                    sample, [_distinct(s, bound) or refilled(source, s, values, 0) for s in sample.tensors]
                )
        return
    grown = max(change.values(), default=0)
    if grown and named:
        yield with_tensors(sample, [refilled(source, s, values, grown) for s in sample.tensors])
    yield with_tensors(sample, [refilled(source, s, values, 0) for s in sample.tensors])


def of_one_shape(source: Sample, values: HasValues) -> Sample:
    """Return a pointwise sample in which all tensors of several elements have the shape to which they broadcast.

    A hard value in a tensor that is broadcast would share elements of the result with other values.
    """
    free = {s.index for s in source.tensors if s.pool and not s.same_as and s.numel > 1}
    shapes = {source.tensors[i].shape for i in free}
    if len(shapes) < 2:
        return source
    shape = tuple(torch.broadcast_shapes(*shapes))
    slots = [replace(s, shape=shape) if s.index in free else s for s in source.tensors]
    return with_empty_outputs(source, (refilled(source, s, values, 0) if s.index in free else s for s in slots))


def _named_once(slot: TensorSlot, dim: Arg) -> int:
    """Return the number of elements of an index that must differ: along the indexed dimension, if that is known."""
    if isinstance(dim, int) and 0 < len(slot.shape) <= 2 and -len(slot.shape) <= dim < len(slot.shape):
        return slot.shape[dim]
    return max(slot.shape, default=1)


def _distinct(slot: TensorSlot, bound: int) -> TensorSlot | None:
    """Return an index that names no element twice; None if the slot is no index, or the same tensor as another."""
    if not indexes(slot) or slot.same_as:
        return None
    return replace(slot, fill=f"rows/{slot.shape[-1] if slot.shape else 1}/{bound}", source=0)


def indexes(slot: TensorSlot) -> bool:
    return bool(slot.pool) and slot.dtype in ("int64", "int32")


def refilled(source: Sample, slot: TensorSlot, values: HasValues, bound: int) -> TensorSlot:
    """Return the slot with the fill that suits its stored values; an index is drawn below ``bound``, if not 0."""
    named = (s for s in source.tensors if s.name == slot.name)
    stored_there = (s for s in source.tensors if (s.pool, s.start) == (slot.pool, slot.start))  # in a longer list
    old = next(named, None) or next(stored_there, slot)
    if not slot.pool or slot.same_as or not old.numel:
        return slot
    if old.fill:  # it was refilled before
        old = replace(old, shape=(old.source or old.numel,), fill="", source=0)
    stored = values.value(old, slot.dtype or source.base).view(-1)
    kept = "choose" if _is_whole(stored) else "jitter"
    index = indexes(slot) and slot.argument not in ops.facts(source.overload).fixed
    fill = _index_fill(stored, slot.numel, bound) if index else kept
    if slot.numel == old.numel and not (bound and index):
        return replace(slot, fill="", source=0)
    return replace(slot, fill=fill, source=old.numel)


def _is_whole(stored: torch.Tensor) -> bool:
    """Return whether the values are whole numbers. Whole floats are often counts, and must not be moved."""
    if stored.is_complex():
        return False
    wide = stored.double()  # CPU cannot truncate float8
    return bool((wide == wide.trunc()).all())


def _index_fill(stored: torch.Tensor, count: int, bound: int) -> str:
    ascending = stored.numel() > 2 and bool((stored[1:] >= stored[:-1]).all())
    distinct = stored.unique().numel() == stored.numel() > 1
    if bound and int(stored.min()) >= 0 and not ascending:
        return f"distinct/{bound}" if distinct and count <= bound else f"below/{bound}"
    if distinct and not ascending and int(stored.min()) == 0 and int(stored.max()) == stored.numel() - 1:
        return f"distinct/{count}"
    return "sorted" if ascending else "choose"
