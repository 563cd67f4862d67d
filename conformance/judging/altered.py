"""The arguments of a case on CPU, changed for one of the questions whether CPU's result is worth comparing with.

They lie elsewhere in memory with the same values, or some of their values are others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import torch

from conformance.judging.bits import flush, make_finite, make_quiet
from conformance.judging.subnormals import real
from conformance.judging.twins import CPU, Argument, Side, Sides, side_of
from conformance.judging.views import over
from conformance.layouts import AS_STRIDED
from conformance.plan.case import Case

# Bytes behind a storage that has room, more than its arguments would take if they were dense.
MARGIN = 256
ROOM = 0xA5  # each byte behind a storage, where writing there is to be seen

#: Layouts whose written arguments have room in a trial: several indices for one element, and strides in any order.
UNUSUAL = frozenset({"expanded", AS_STRIDED})
MOST_ROOM = 1 << 20  # bytes

Filler = Callable[[int, torch.dtype], torch.Tensor]  # so many bytes, for what lies behind a tensor of this dtype


def roomy(twins: Sides, case: Case, *, usual: bool = False) -> Side:
    """Return the arguments of ``case`` on CPU, with room behind each that the op writes and that lies in no usual way.

    A kernel that takes it for dense, or for evenly spaced, writes there, and damages nothing. Such a storage cannot
    be resized. ``usual``: room also behind the written arguments that lie in usual ways.
    """
    side = twins.side(case, CPU)
    return _with_room(case, side, lambda a: a.slot.written and (usual or a.placement.layout in UNUSUAL), _margin)


def surrounded(twins: Sides, case: Case, value: float, *, finite: bool = False) -> Side:
    """Return the arguments of ``case`` on CPU, each that has values with ``value`` in its dtype behind its storage.

    NaN is 1 in a dtype that has none. A kernel that takes an argument for dense, or for larger than it is, reads
    there, and a call with another ``value`` gives other results. Such a storage cannot be resized. ``finite``: with 1
    in place of infinities and NaN in the storages, which may hide in the results what else was read.
    """
    side = twins.side(case, CPU)
    if finite:
        for a in side.arguments:
            make_finite(a.base, a.tensor.dtype)
    return _with_room(case, side, lambda a: bool(a.slot.pool), partial(_repeated, value))


def dense(
    twins: Sides, case: Case, memory_format: torch.memory_format = torch.contiguous_format,
    dtypes: Callable[[str], str] | None = None,
) -> Side:  # fmt: skip
    """Return the arguments of ``case`` on CPU with the same values, each in a dense tensor of its own.

    With ``preserve_format`` the dimensions lie in the order of the argument's strides, as in a copy by ``to()``.
    """
    side = twins.side(case, CPU, dtypes)
    for a in side.arguments:
        a.tensor = a.tensor.resolve_conj().resolve_neg().clone(memory_format=memory_format)
        a.base = torch.empty(0, dtype=torch.uint8).set_(a.tensor.untyped_storage())
    return side_of(case, CPU, side.arguments)


def zeroed(twins: Sides, case: Case) -> Side:
    """Return the arguments of ``case`` on CPU, with zeros in those that the op writes and that have no value before."""
    side = twins.side(case, CPU)
    for a in side.arguments:
        if a.slot.written and not a.slot.pool:
            a.tensor.zero_()
    return side


def quieted(twins: Sides, case: Case) -> Side | None:
    """Return the arguments of ``case`` on CPU with quiet NaN in place of signalling ones; None where it has none."""
    side = twins.side(case, CPU)
    found = [make_quiet(a.base, a.tensor.dtype) for a in side.arguments if a.slot.pool]
    return side if any(found) else None


def flushed(twins: Sides, case: Case, kept: Collection[torch.dtype] = ()) -> Side | None:
    """Return the arguments of ``case`` on CPU with zeros in place of subnormal numbers; None where it has none.

    Those of the real dtypes ``kept`` stay.
    """
    side = twins.side(case, CPU)
    may_be = (a for a in side.arguments if a.slot.pool and real(a.tensor.dtype) not in kept)
    found = [flush(a.base, a.tensor.dtype) for a in may_be]
    return side if any(found) else None


def spaced(twins: Sides, case: Case) -> Side:
    """Return the arguments of ``case`` on CPU with the same values, each in every second element of its storage."""
    side = twins.side(case, CPU)
    for a in side.arguments:
        tensor = a.tensor.resolve_conj().resolve_neg()
        a.tensor = tensor.new_empty((*tensor.shape, 2))[..., 0].copy_(tensor)
    return side_of(case, CPU, side.arguments)


class DenseTwins:
    """Makes dense arguments on CPU, for the references of a case in which CPU ignores strides."""

    def __init__(self, twins: Sides) -> None:
        self._twins = twins

    def side(self, case: Case, device: torch.device, dtypes: Callable[[str], str] | None = None) -> Side:
        """Return the arguments of a case. ``device``: CPU."""
        assert device == CPU
        return dense(self._twins, case, dtypes=dtypes)


def _with_room(case: Case, side: Side, which: Callable[[Argument], bool], filler: Filler) -> Side:
    """Return the side with some arguments' storages moved to where more memory follows; what was shared stays so."""
    bases: dict[int, torch.Tensor] = {}
    tensors: dict[int, torch.Tensor] = {}
    old = [(a.base, a.tensor) for a in side.arguments]  # alive until the end, so that no id is given twice
    for a, (base, tensor) in zip(side.arguments, old, strict=True):
        if not which(a) or not base.numel():
            continue
        if id(base) not in bases:
            bases[id(base)], a.room = _roomy(base, tensor, filler)
            a.room_before = a.room.clone()
        if id(tensor) not in tensors:
            tensors[id(tensor)] = over(bases[id(base)], tensor)
        a.base, a.tensor = bases[id(base)], tensors[id(tensor)]
    return side_of(case, CPU, side.arguments)


def _roomy(base: torch.Tensor, tensor: torch.Tensor, filler: Filler) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the same bytes, all that the storage knows of; and those behind it.

    They are enough if ``tensor`` is taken for dense, or its matrices for evenly spaced by any of its strides.
    """
    matrices = tensor.shape[:-2].numel()
    apart = max(base.numel(), max(tensor.stride(), default=0) * tensor.element_size())
    reach = max(base.numel(), min(apart * matrices, MOST_ROOM))
    room = reach + tensor.numel() * tensor.element_size() + MARGIN
    whole = torch.cat((base, filler(room, tensor.dtype)))
    return torch.frombuffer(whole.numpy(), dtype=torch.uint8, count=base.numel()), whole[base.numel() :]


def _margin(count: int, _: torch.dtype) -> torch.Tensor:
    """Return bytes that show whether somebody writes there."""
    return torch.full((count,), ROOM, dtype=torch.uint8)


def _repeated(value: float, count: int, dtype: torch.dtype) -> torch.Tensor:
    """Return about ``count`` bytes of a value in a dtype."""
    has_nan = dtype.is_floating_point or dtype.is_complex
    pattern = torch.tensor([value if has_nan else int(value != 0)]).to(dtype).view(torch.uint8)
    return pattern.repeat(count // len(pattern))
