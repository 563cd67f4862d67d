"""Altered arguments of a case on CPU, for the tests whether CPU's result can serve as a reference.

They hold the same values elsewhere in memory, or some of their values differ.
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

# Bytes of room beyond those that a kernel reaches if it takes the tensor for dense or evenly spaced.
MARGIN = 256
ROOM = 0xA5  # each byte of the room in a trial that detects writes to it

#: Layouts whose written arguments get room in a trial: several indices share an element, or strides have any order.
UNUSUAL = frozenset({"expanded", AS_STRIDED})
MOST_ROOM = 1 << 20  # bytes

Filler = Callable[[int, torch.dtype], torch.Tensor]  # (count, dtype) -> bytes to put behind a tensor of the dtype


def roomy(twins: Sides, case: Case, *, usual: bool = False) -> Side:
    """Return the arguments of ``case`` on CPU, with room behind each written argument in one of the `UNUSUAL` layouts.

    A kernel that takes such an argument for dense or evenly spaced writes to the room and damages nothing else. A
    storage with room cannot be resized. ``usual``: add room behind the written arguments in all other layouts, too.
    """
    side = twins.side(case, CPU)
    return _with_room(case, side, lambda a: a.slot.written and (usual or a.placement.layout in UNUSUAL), _margin)


def surrounded(twins: Sides, case: Case, value: float, *, finite: bool = False) -> Side:
    """Return the arguments of ``case`` on CPU, with ``value`` repeated behind the storage of each that has values.

    In a dtype without NaN, NaN becomes 1. A kernel that takes an argument for dense, or for larger than it is, reads
    these bytes, and its results then depend on ``value``. A storage with such bytes cannot be resized. ``finite``:
    replace infinities and NaN in the storages by 1, because in the results they may hide that other bytes were read.
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
    """Return the arguments of ``case`` on CPU, with zeros in the written arguments without a value before."""
    side = twins.side(case, CPU)
    for a in side.arguments:
        if a.slot.written and not a.slot.pool:
            a.tensor.zero_()
    return side


def quieted(twins: Sides, case: Case) -> Side | None:
    """Return the arguments of ``case`` on CPU with its signalling NaN made quiet; None if it has none."""
    side = twins.side(case, CPU)
    found = [make_quiet(a.base, a.tensor.dtype) for a in side.arguments if a.slot.pool]
    return side if any(found) else None


def flushed(twins: Sides, case: Case, kept: Collection[torch.dtype] = ()) -> Side | None:
    """Return the arguments of ``case`` on CPU with zeros in place of subnormal numbers; None if it has none.

    The subnormal numbers of the real dtypes ``kept`` stay.
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
    """Sides with dense arguments on CPU, for the further references of a case in which CPU ignores strides."""

    def __init__(self, twins: Sides) -> None:
        self._twins = twins

    def side(self, case: Case, device: torch.device, dtypes: Callable[[str], str] | None = None) -> Side:
        """Return the dense arguments of a case. ``device`` must be CPU."""
        assert device == CPU
        return dense(self._twins, case, dtypes=dtypes)


def _with_room(case: Case, side: Side, which: Callable[[Argument], bool], filler: Filler) -> Side:
    """Return ``side`` with the storages that ``which`` selects moved to larger buffers. Shared storages stay shared."""
    bases: dict[int, torch.Tensor] = {}
    tensors: dict[int, torch.Tensor] = {}
    old = [(a.base, a.tensor) for a in side.arguments]  # kept alive until the end, so that no id is reused
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
    """Return a copy of ``base``, and the bytes that follow the copy in memory, behind the end of its storage.

    These bytes suffice for a kernel that takes ``tensor`` for dense, or its matrices for evenly spaced by any of its
    strides, as far as :data:`MOST_ROOM` allows.
    """
    matrices = tensor.shape[:-2].numel()
    apart = max(base.numel(), max(tensor.stride(), default=0) * tensor.element_size())
    reach = max(base.numel(), min(apart * matrices, MOST_ROOM))
    room = reach + tensor.numel() * tensor.element_size() + MARGIN
    whole = torch.cat((base, filler(room, tensor.dtype)))
    return torch.frombuffer(whole.numpy(), dtype=torch.uint8, count=base.numel()), whole[base.numel() :]


def _margin(count: int, _: torch.dtype) -> torch.Tensor:
    """Return ``count`` bytes in which a write is visible."""
    return torch.full((count,), ROOM, dtype=torch.uint8)


def _repeated(value: float, count: int, dtype: torch.dtype) -> torch.Tensor:
    """Return about ``count`` bytes of a value in a dtype."""
    has_nan = dtype.is_floating_point or dtype.is_complex
    pattern = torch.tensor([value if has_nan else int(value != 0)]).to(dtype).view(torch.uint8)
    return pattern.repeat(count // len(pattern))
