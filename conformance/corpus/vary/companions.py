"""Other forms of tensor arguments that a flag may need: a list for its state, or another order of dimensions.

An optimizer step that keeps the largest averages needs a list of them, and a step that does not keep them takes none. A
product from the right needs as many columns as a product from the left needs rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from conformance.corpus.model import Sample, TensorSlot
from conformance.corpus.places import with_empty_outputs
from conformance.corpus.vary.arguments import Other, by_name, replaced
from conformance.corpus.vary.operands import Form

_EXCHANGED = ((-2, -1), (0, 1))  # dimensions


def companions(sample: Sample, schema: Any) -> Iterator[Form]:
    """Yield the sample with one list of tensors filled or emptied, or with two sizes of one tensor exchanged.

    The samples have not been tried.
    """
    yield from _of_lists(sample, schema)
    for slot in sample.tensors:
        for one, other in _EXCHANGED if slot.pool and not slot.same_as and len(slot.shape) > 1 else ():
            shape = list(slot.shape)
            shape[one], shape[other] = shape[other], shape[one]
            if tuple(shape) != slot.shape:
                slots = (replace(s, shape=tuple(shape)) if s is slot else s for s in sample.tensors)
                yield f"{slot.name}=exchanged{one % len(shape)}", with_empty_outputs(sample, slots)


def _of_lists(sample: Sample, schema: Any) -> Iterator[Form]:
    given = by_name(sample, schema)
    before: tuple[TensorSlot, ...] = ()
    for formal in schema.arguments:
        arg = given.get(formal.name)
        if str(formal.type) != "List[Tensor]" or formal.is_out or not isinstance(arg, tuple):
            continue
        slots = tuple(one for one in arg if isinstance(one, TensorSlot))
        if slots:
            yield f"{formal.name}=empty", replaced(sample, schema, Other(formal, ()))
        elif before:
            written = formal.alias_info is not None and formal.alias_info.is_write
            more = (
                replace(s, index=len(sample.tensors) + i, name=f"{formal.name}[{i}]", written=written)
                for i, s in enumerate(before)
            )
            yield f"{formal.name}=filled", replaced(sample, schema, Other(formal, tuple(more)))
        before = slots or before
