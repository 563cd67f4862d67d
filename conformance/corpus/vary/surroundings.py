"""Arguments with other memory around their elements, and whether results depend on it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

# The units of the largest element by which two calls may differ: a sum may have another order at another address.
ROUNDING = 64
_BEFORE = 64  # elements before an argument
_BEHIND = 64  # elements behind an argument, besides as many as it has itself


def with_gaps(tensor: torch.Tensor, content: int) -> torch.Tensor:
    """Return the tensor with one element of ``content`` after each of its own, in each dimension.

    A tensor that is empty or not contiguous is returned unchanged.
    """
    if not tensor.numel() or not tensor.is_contiguous():
        return tensor
    wide = torch.tensor(content).to(tensor.dtype).expand([2 * n for n in tensor.shape]).contiguous()
    return wide[tuple(slice(None, None, 2) for _ in tensor.shape)].copy_(tensor)


def alike(
    one: Sequence[torch.Tensor], other: Sequence[torch.Tensor], undefined: Collection[int], units: int = 0
) -> bool:
    """Return whether results have the same bits, or differ by ``units`` of the largest element at most.

    Results in ``undefined`` are not compared.
    """
    pairs = enumerate(zip(one, other, strict=True))
    return all(i in undefined or (a.shape == b.shape and _same(a, b, units)) for i, (a, b) in pairs)


def _same(a: torch.Tensor, b: torch.Tensor, units: int) -> bool:
    if _same_bits(a, b):
        return True
    if not units or a.dtype != b.dtype or not (a.is_floating_point() or a.is_complex()):
        return False
    wide = torch.complex128 if a.is_complex() else torch.float64
    a, b, eps = a.to(wide), b.to(wide), torch.finfo(a.dtype).eps
    largest = float(a.abs().nan_to_num(0, 0).max())
    return bool(torch.allclose(a, b, rtol=0, atol=units * eps * largest, equal_nan=True))


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    dense = (t.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format) for t in (a, b))
    a, b = (t.view(-1).view(torch.uint8) for t in dense)
    return bool(torch.equal(a, b))


class Surrounded:
    """A tensor with ones before and behind it in the same storage. A tensor that is not contiguous stays as it is."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self._before = tensor.new_empty(0)
        if tensor.numel() and tensor.is_contiguous():
            n = tensor.numel()
            parts = _ones(_BEFORE, tensor.dtype), tensor.view(-1).view(torch.uint8), _ones(n + _BEHIND, tensor.dtype)
            wide = torch.cat(parts).view(tensor.dtype)
            self.tensor = wide[_BEFORE : _BEFORE + n].view(tensor.shape)
            self._before = wide[:_BEFORE]

    @property
    def is_overrun(self) -> bool:
        """Whether a call wrote before the tensor. An ``out=`` that grows may write behind it."""
        before = self._before.view(torch.uint8)
        return not torch.equal(before, _ones(self._before.numel(), self._before.dtype))


def _ones(count: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor(1).to(dtype).expand(count).clone(memory_format=torch.contiguous_format).view(torch.uint8)
