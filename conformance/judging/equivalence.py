"""Equivalence of results that are not unique, so that two different results may both be right. Pure, on CPU tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from conformance.ops.family import Equivalence


def index_of_equal(source: torch.Tensor | None, expected: torch.Tensor, actual: torch.Tensor) -> bool:
    """Return whether both index tensors point at equal values of ``source``: along a dimension, flat, or in a plane."""
    if source is None or actual.dtype != torch.int64:
        return False
    source = _gathered(source)
    return any(_points_alike(source, expected, actual, pick) for pick in _picks(source, expected))


def index_of_taken(source: torch.Tensor | None, expected: torch.Tensor, actual: torch.Tensor) -> bool:
    """Return whether both index tensors name equal values of ``source`` along one dimension, and none of them twice."""
    if source is None or actual.dtype != torch.int64 or expected.dim() != source.dim():
        return False
    if not source.dim():
        return index_of_equal(source, expected, actual)
    source = _gathered(source)
    return any(
        _is_distinct(expected, dim) and _is_distinct(actual, dim)
        and _points_alike(source, expected, actual, partial(_along, dim))
        for dim in range(source.dim())
    )  # fmt: skip


def _is_distinct(index: torch.Tensor, dim: int) -> bool:
    """Return whether no number occurs twice along a dimension."""
    return not bool((index.sort(dim).values.diff(dim=dim) == 0).any())


# Dtypes that CPU cannot gather, and dtypes of the same width that it can.
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def _gathered(source: torch.Tensor) -> torch.Tensor:
    """Return the source as a tensor that CPU can gather from, whose elements are equal where the source's are."""
    source = source.resolve_conj().resolve_neg()
    return source.view(_SIGNED[source.dtype]) if source.dtype in _SIGNED else source


Pick = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _picks(source: torch.Tensor, index: torch.Tensor) -> list[Pick]:
    """Return the ways in which an index tensor of this shape can address the source."""
    picks: list[Pick] = [_flat]
    if index.dim() == source.dim():
        picks += [partial(_along, dim) for dim in range(source.dim())]
    elif index.dim() == source.dim() - 1:
        picks += [partial(_along_reduced, dim) for dim in range(source.dim())]
    return picks + [partial(_in_plane, outer) for outer in range(1, min(source.dim(), index.dim()))]


def _flat(source: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return source.reshape(-1)[index]


def _along(dim: int, source: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return source.gather(dim, index)


def _along_reduced(dim: int, source: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return source.gather(dim, index.unsqueeze(dim))


def _in_plane(outer: int, source: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return source.flatten(outer).gather(-1, index.flatten(outer))


def _points_alike(source: torch.Tensor, expected: torch.Tensor, actual: torch.Tensor, pick: Pick) -> bool:
    try:
        a, b = pick(source, expected), pick(source, actual)
    except (IndexError, RuntimeError):
        return False  # this way of addressing does not fit the shapes
    return bool(((a == b) | ((a != a) & (b != b))).all())


def up_to_phase(expected: torch.Tensor, actual: torch.Tensor) -> bool:
    """Return whether each pair of columns is equal up to a factor of modulus one, to half the digits of the dtype."""
    if expected.dim() < 2:
        return False
    a, b = wide(expected), wide(actual)
    near = partial(torch.allclose, rtol=torch.finfo(expected.dtype).eps ** 0.5, atol=0.0)
    lengths = a.norm(dim=-2), b.norm(dim=-2)
    inner = (a.conj() * b).sum(-2).abs()
    return bool(near(lengths[1], lengths[0]) and near(inner, lengths[0] * lengths[1]))


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of floating numbers in double precision."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def unordered(expected: torch.Tensor, actual: torch.Tensor) -> bool:
    """Return whether both hold the same elements, in any order."""
    if expected.is_complex():
        expected, actual = torch.view_as_real(expected), torch.view_as_real(actual)
    return bool(torch.equal(expected.reshape(-1).sort().values, actual.reshape(-1).sort().values))


def holds(
    kind: Equivalence, source: torch.Tensor | None, expected: torch.Tensor, actual: torch.Tensor, *,
    stable: bool = False,
) -> bool:  # fmt: skip
    """Return whether ``actual`` is as right as ``expected`` under ``kind``. ``source``: the op's first tensor argument.

    ``stable``: the call requires that equal elements keep their order, so that the elements taken are unique.
    """
    if not kind.is_of_values:
        return True
    if kind is Equivalence.INDEX_OF_TAKEN:
        return not stable and index_of_taken(source, expected, actual)
    if kind is Equivalence.INDEX_OF_EQUAL:
        return index_of_equal(source, expected, actual)
    if kind is Equivalence.UP_TO_PHASE:
        return up_to_phase(expected, actual)
    if kind is Equivalence.ROWS_UP_TO_PHASE:
        return expected.dim() >= 2 and up_to_phase(expected.mT, actual.mT)
    return kind is Equivalence.UNORDERED and unordered(expected, actual)
