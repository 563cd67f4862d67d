"""A greedy search for smaller calls that still fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import torch

from conformance.calls.model import Call, RecordedTwins
from conformance.corpus.drafts import with_slots
from conformance.corpus.model import Arg, TensorSlot
from conformance.judging.twins import CPU
from conformance.judging.views import poison, torch_dtype
from conformance.layouts import Placement, contiguous_stride
from conformance.plan.case import Case

T = TypeVar("T")
Fails = Callable[[Call], bool]
Resize = Callable[[tuple[int, ...]], tuple[int, ...]]


def shrink(call: Call, fails: Fails, tries: int = 80) -> list[Call]:
    """Return ``call``, then each smaller call that fails, the smallest last. ``tries``: most calls of ``fails``."""
    return smaller_that_fail(call, candidates, fails, tries)


def smaller_that_fail(
    whole: T, candidates: Callable[[T], Iterator[T]], fails: Callable[[T], bool], tries: int
) -> list[T]:
    """Return ``whole``, then smaller values that fail, each a candidate of the previous value, the smallest last.

    ``tries``: most calls of ``fails``.
    """
    found = [whole]
    left = tries
    progress = True
    while progress and left > 0:
        progress = False
        for candidate in candidates(found[-1]):
            left -= 1
            if left < 0:
                break
            if fails(candidate):
                found.append(candidate)
                progress = True
                break
    return found


def candidates(call: Call) -> Iterator[Call]:
    """Yield simpler calls: with smaller tensors, without gaps and offset, contiguous, or with simple values."""
    sizes = sorted({n for s in call.case.sample.tensors for n in s.shape if n > 1}, reverse=True)
    for old in sizes:
        for new in dict.fromkeys((1, 2, 3, old // 2)):
            if new < old:
                yield from _made(call, partial(_everywhere, old, new), "as_it_lies", sizes=(old, new))
    for depth in range(max((len(s.shape) for s in call.case.sample.tensors), default=0)):
        yield from _made(call, partial(_first_alone, depth), "as_it_lies")
    for slot in call.case.sample.tensors:
        lies = call.case.placements[slot.index]
        for how in ("contiguous", "dense"):
            if lies.layout != "contiguous" and lies != placed(lies, lies.size, how):
                yield from _made(call, _as_it_is, how, slot.index)
    for slot in call.case.sample.tensors:
        yield from _plain(call, slot)


def placed(old: Placement, size: tuple[int, ...], how: str) -> Placement:
    """Return a placement of ``size``: contiguous, or with the dimension order and the expanded dimensions of ``old``.

    ``how``: "contiguous", "dense", or "as_it_lies", which also keeps the offset and the innermost dimension's step.
    """
    if how == "contiguous":
        return Placement("contiguous", size, contiguous_stride(size), 0, _numel(size))
    inner = min((s for n, s in zip(old.size, old.stride, strict=True) if n > 1 and s > 0), default=1)
    step = inner if how == "as_it_lies" else 1
    offset = old.offset if how == "as_it_lies" else 0
    stride = [0] * len(size)
    for d in sorted(range(len(size)), key=lambda d: (old.stride[d], -d)):
        if old.stride[d] or old.size[d] == 1:
            stride[d] = step
            step *= max(size[d], 1)
    extent = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if _numel(size) else 0
    return Placement(
        "recorded" if old.layout == "contiguous" else old.layout, size, tuple(stride), offset, offset + extent, old.bit
    )


def _everywhere(old: int, new: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(new if n == old else n for n in shape)


def _first_alone(depth: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape with only the first index of one dimension, counted from the last."""
    at = len(shape) - 1 - depth
    return tuple(min(n, 1) if d == at else n for d, n in enumerate(shape))


def _as_it_is(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape


def _made(
    call: Call, resize: Resize, how: str, only: int | None = None, sizes: tuple[int, int] = (0, 0)
) -> Iterator[Call]:
    """Yield the call with resized tensors, or nothing if no placement changes.

    ``how``: see :func:`placed`. ``only``: the index of a slot that gets a new placement even if its size stays.
    ``sizes``: (old, new), also replaced in lists of integers.
    """
    if call.case.shared:
        return  # tensors that share a storage cannot be moved separately
    side = RecordedTwins(call.storages).side(call.case, CPU)
    slots, placements, storages = [], [], {}
    for slot, a in zip(call.case.sample.tensors, side.arguments, strict=True):
        size = resize(slot.shape)
        lies = call.case.placements[slot.index]
        changed = size != slot.shape or only == slot.index
        now = placed(lies, size, how) if changed else lies
        values = a.tensor.resolve_conj().resolve_neg()[tuple(slice(n) for n in size)]
        storages[slot.pool] = _stored(values, now, str(slot.dtype)) if changed else call.storages[slot.pool]
        slots.append(replace(slot, shape=size))
        placements.append(now)
    if placements != list(call.case.placements):
        yield _with(call, slots, placements, storages, sizes)


def _plain(call: Call, slot: TensorSlot) -> Iterator[Call]:
    """Yield the call with the values 0, 1, 2, … in the slot's storage."""
    dtype = torch_dtype(str(slot.dtype))
    count = call.storages[slot.pool].numel() // dtype.itemsize
    plain = counting(count, dtype)
    if not torch.equal(plain, call.storages[slot.pool][: plain.numel()]):
        yield Call(call.case, {**call.storages, slot.pool: plain})


def counting(count: int, dtype: torch.dtype) -> torch.Tensor:
    """Return 0, 1, 2, … as bytes; for bool, every third is true."""
    numbers = torch.arange(count)
    return (numbers % 3 == 0 if dtype == torch.bool else numbers % 120).to(dtype).view(torch.uint8)


def _stored(values: torch.Tensor, placement: Placement, dtype: str) -> torch.Tensor:
    """Return a storage with ``values`` at ``placement`` and poison elsewhere."""
    base = poison(placement.storage * torch_dtype(dtype).itemsize, dtype)
    if placement.bit == "conj":
        values = values.conj().resolve_conj()
    elif placement.bit == "neg":
        values = -values
    seen = base.view(torch_dtype(dtype)).as_strided(placement.size, placement.stride, placement.offset)
    stepped = tuple(slice(1) if s == 0 else slice(None) for s in placement.stride)
    seen[stepped].copy_(values[stepped])
    return base


def _with(
    call: Call,
    slots: list[TensorSlot],
    placements: list[Placement],
    storages: dict[str, torch.Tensor],
    sizes: tuple[int, int],
) -> Call:
    sample = with_slots(call.case.sample, tuple(slots))
    sample = replace(sample, args=tuple(_resized(a, *sizes) for a in sample.args))
    layout = "contiguous" if all(p.layout == "contiguous" for p in placements) else "recorded"
    case = Case(replace(call.case.cell, layout=layout), sample, "", tuple(placements))
    return Call(case, storages)


def _resized(arg: Arg, old: int, new: int) -> Arg:
    """Return the argument with ``new`` in place of ``old`` if it is a list of integers, such as the size of a view."""
    if isinstance(arg, tuple) and arg and all(type(a) is int for a in arg):
        return tuple(new if a == old and old > 1 else a for a in arg)
    return arg


def _numel(size: tuple[int, ...]) -> int:
    n = 1
    for s in size:
        n *= s
    return n
