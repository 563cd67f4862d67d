"""Comparison of sparse results by their layout, their sizes, and the strided tensors that they consist of."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller

import torch

from conformance.judging import compare, facts
from conformance.judging.views import host_copy
from conformance.records import Mismatch
from conformance.vocabulary import Check, Fact

_indices = methodcaller("_indices")

# The methods that give the strided tensors of each layout.
_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}

# The compared properties of a sparse tensor besides these tensors. The block size follows from the size of the
# values.
_METADATA: tuple[tuple[str, Check, Callable[[torch.Tensor], object]], ...] = (
    ("dtype", Check.DTYPE, lambda t: t.dtype),
    ("shape", Check.SHAPE, lambda t: tuple(t.shape)),
    ("sparse_dim", Check.SHAPE, torch.Tensor.sparse_dim),
    ("dense_dim", Check.SHAPE, torch.Tensor.dense_dim),
)


def difference(want: torch.Tensor, got: torch.Tensor, name: str) -> Mismatch | None:
    """Return the first difference of two results, at least one of them sparse. Values are compared bit for bit."""
    if want.layout != got.layout:
        return _metadata(Check.STRIDE, name, "layout", want.layout, got.layout)
    parts = _PARTS.get(want.layout, ())
    for what, check, of in _METADATA if parts else _METADATA[:2]:
        if of(want) != of(got):
            return _metadata(check, name, what, of(want), of(got))
    for part in parts:
        a: torch.Tensor = getattr(want, part)()
        b: torch.Tensor = getattr(got, part)()
        differs = compare.metadata(a, b, f"{name}.{part}") or compare.exact(a, host_copy(b), f"{name}.{part}")
        if differs:
            return differs
    if want.layout == torch.sparse_coo and want.is_coalesced() != got.is_coalesced() and not _is_ordered(want):
        return _metadata(Check.VALUE, name, "coalesced", want.is_coalesced(), got.is_coalesced())
    return None


def _is_ordered(tensor: torch.Tensor) -> bool:
    """Return whether a tensor without the coalesced flag is coalesced: its indices are unique and in order."""
    return not tensor.is_coalesced() and torch.equal(_indices(tensor.coalesce()), _indices(tensor))


def _metadata(check: Check, name: str, what: str, cpu: object, device: object) -> Mismatch:
    found = {"kind": Fact.METADATA.value, "what": what, "device": facts.value(device), "cpu": facts.value(cpu)}
    return Mismatch(check, name, found)
