"""Trials of whether an op is elementwise: a result's element depends only on the same elements of the arguments.

torch tags elementwise ops as ``pointwise``, but many gradients and ``out=`` forms lack the tag.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import torch

from conformance.corpus.fills import mixed
from conformance.corpus.vary.surroundings import ROUNDING, alike

Call = Callable[[list[torch.Tensor]], Sequence[torch.Tensor]]

_ENOUGH = 4  # elements of an argument; trials of a sweep, which has many more, check it again
_DRAWS = 4


def is_elementwise(
    call: Call, tensors: Sequence[torch.Tensor], read: Collection[int], undefined: Collection[int] = ()
) -> bool | None:
    """Return whether a call on tensors is elementwise; None if the call cannot show it.

    ``read``: the indices of the tensors that are not outputs. ``undefined``: the indices of results without defined
    values.
    The call can show it if all read tensors and all results have one shape, without dimensions of size 1, along which a
    reduction would change nothing, and if the results are not constant. In each draw, about half of the elements of
    every argument take the values of other elements. The results of these elements must then be those of the other
    elements, up to rounding, since a vector loop may end elsewhere. All other elements must keep their bits.
    """
    given = [tensors[i].clone() for i in read]  # the call may write to them
    first = call([t.clone() for t in tensors])
    shapes = {t.shape for t in (*given, *first)}
    if not (given and first) or len(shapes) > 1 or not _tells(given[0].shape):
        return None
    read, changed, count = set(read), False, given[0].numel()
    for draw in range(_DRAWS):
        moved = mixed(count, 2 * draw) % 2 == 0
        source = torch.where(moved, mixed(count, 2 * draw + 1) % count, torch.arange(count))
        again = call([_taken(t, source) if i in read else t.clone() for i, t in enumerate(tensors)])
        expected = [_taken(t, source) for t in first]
        kept = [[t.reshape(-1)[~moved] for t in results] for results in (again, expected)]
        if not alike(kept[0], kept[1], undefined) or not alike(again, expected, undefined, ROUNDING):
            return False
        changed |= not alike(again, first, undefined)
    return changed or None


def are_copies(call: Call, tensors: Sequence[torch.Tensor], read: Collection[int]) -> bool:
    """Return whether each result of a call equals a tensor that the call reads, so that nothing is computed.

    A mean of one element is a copy, except for the sign of a zero.
    """
    given = [tensors[i].clone() for i in read]
    results = call([t.clone() for t in tensors])
    return all(any(_are_equal(r, t) for t in given) for r in results)


def _are_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def _tells(shape: torch.Size) -> bool:
    return 1 not in shape and shape.numel() >= _ENOUGH


def _taken(tensor: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1)[at].view(tensor.shape)
