"""Huge tensors of known values, and their comparison with CPU, a chunk at a time.

The value of an element depends on its position, with a prime period: an index that lost its upper bits reads other
values. The host never holds more than a chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

# A program uses more elements or bytes than this.
ELEMENTS = 2**31
BYTES = 2**32
# Elements of a chunk.
CHUNK = 1 << 24
_PERIOD = 8191
_VALUES = 11  # from -5 to 5: sums of a row are exact in every dtype
# Tolerances, for floats only: a device may add in another order than CPU.
_RTOL = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float32: 1e-4}

# (first, count) -> the expected values of ``count`` consecutive elements, or rows, from ``first`` on.
Expected = Callable[[int, int], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first wrong element of a result."""

    what: str  # the name of the result
    index: tuple[int, ...]
    expected: str
    actual: str


@dataclass(frozen=True)
class Bench:
    """The device, and the sizes that count as huge there. Tests use smaller sizes."""

    device: torch.device
    elements: int = ELEMENTS
    bytes: int = BYTES
    chunk: int = CHUNK

    def length(self, dtype: torch.dtype) -> int:
        """Return the number of elements of a huge tensor: above the limits of elements and of bytes, and odd."""
        size: int = dtype.itemsize
        return max(self.elements // size, self.bytes // size if size > 1 else 0) + self.chunk // 4 + 3

    def rows(self, columns: int, dtype: torch.dtype) -> int:
        """Return the number of rows of a huge tensor with ``columns`` columns."""
        return self.length(dtype) // columns + 1

    def values(self, first: int, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Return the values of ``count`` elements from the position ``first``. Shape (count,), on CPU."""
        positions = torch.arange(first % _PERIOD, first % _PERIOD + min(count, _PERIOD)) % _PERIOD
        period = ((positions * positions * 31 + positions * 7) % _PERIOD % _VALUES - _VALUES // 2).to(torch.int8)
        repeated = period if count <= _PERIOD else period.repeat(-(-count // _PERIOD))[:count]
        return repeated > 0 if dtype == torch.bool else repeated.to(dtype)

    def of_rows(self, first: int, count: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
        """Return the values of ``count`` rows from row ``first``. Shape (count, columns), on CPU."""
        return self.values(first * columns, count * columns, dtype).view(count, columns)

    def empty(self, *shape: int, dtype: torch.dtype) -> torch.Tensor:
        """Return an uninitialized tensor on the device."""
        return torch.empty(shape, dtype=dtype, device=self.device)

    def tensor(self, *shape: int, dtype: torch.dtype) -> torch.Tensor:
        """Return a tensor on the device in which each element has the value of its position."""
        made = self.empty(*shape, dtype=dtype)
        flat = made.view(-1)
        for first, count in self.chunks(flat.numel()):
            flat[first : first + count].copy_(self.values(first, count, dtype))
        return made

    def chunks(self, count: int, of: int = 1) -> Iterator[tuple[int, int]]:
        """Yield (first, number) of the chunks of ``count`` rows of ``of`` elements each."""
        step = max(1, self.chunk // of)
        for first in range(0, count, step):
            yield first, min(step, count - first)

    def compare(self, what: str, result: torch.Tensor, expected: Expected) -> Difference | None:
        """Return the first difference of a result, along dimension 0. ``expected`` gives rows in the result's shape."""
        of = result[0].numel() if result.dim() > 1 else 1
        for first, count in self.chunks(result.shape[0], of):
            right = expected(first, count)
            actual = result[first : first + count].cpu()
            wrong = _wrong(actual, right)
            if wrong is not None:
                at = torch.nonzero(wrong)[0].tolist()
                return Difference(
                    what, (first + at[0], *at[1:]), str(right[tuple(at)].item()), str(actual[tuple(at)].item())
                )
        return None


def _wrong(actual: torch.Tensor, right: torch.Tensor) -> torch.Tensor | None:
    """Return elementwise where the values differ, None if they are all equal."""
    if actual.shape != right.shape or actual.dtype != right.dtype:
        raise AssertionError(f"the result has {actual.shape}, {actual.dtype}; expected {right.shape}, {right.dtype}")
    if torch.equal(actual, right):
        return None
    if right.dtype not in _RTOL:
        return actual != right
    rtol = _RTOL[right.dtype]
    wrong = ~torch.isclose(actual, right, rtol=rtol, atol=rtol, equal_nan=True)
    return wrong if bool(wrong.any()) else None
