"""The draws of one side: results of one call after the other, each under another seed."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from conformance.judging.bits import real


class Draws:
    """Tensors of draws, one a call, and the same as float64. Grows by `add`; what is asked often is kept until then.

    ``results``: the tensors as they came. ``calls``: each of them flat, in float64; complex numbers as pairs.
    """

    def __init__(self, results: Iterable[torch.Tensor] = ()) -> None:
        self.results: list[torch.Tensor] = []
        self.calls: list[torch.Tensor] = []
        self.are_constant = True  # whether all calls gave the same
        self._matrix: torch.Tensor | None = None
        for result in results:
            self.add(result)

    def add(self, result: torch.Tensor) -> None:
        """Add the draws of one more call. Kept as they are, so the caller does not write them any more."""
        self.results.append(result)
        self.calls.append(flat(result))
        self.are_constant = self.are_constant and torch.equal(self.calls[0], self.calls[-1])
        self._matrix = None

    def __len__(self) -> int:
        return len(self.calls)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the results."""
        return self.results[0].dtype

    @property
    def shape(self) -> torch.Size | None:
        """The shape of the results; None if it is not that of the first in all calls."""
        first = self.results[0].shape
        return first if all(result.shape == first for result in self.results) else None

    @property
    def matrix(self) -> torch.Tensor:
        """All draws, calls x draws. Of results of one shape."""
        if self._matrix is None:
            self._matrix = torch.stack(self.calls)
        return self._matrix

    def joined(self) -> torch.Tensor:
        """Return all draws, one call behind the other."""
        return torch.cat(self.calls)

    def once(self) -> Draws:
        """Return the first call's if the others repeat them, as with a generator among the arguments; else all."""
        return Draws(self.results[:1]) if self.are_constant else self


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """Return every draw as a float64."""
    return real(tensor).reshape(-1).to(torch.float64)


def have_one_shape(expected: Draws, actual: Draws) -> bool:
    """Whether the results of all calls of both sides have one shape."""
    return expected.shape is not None and expected.shape == actual.shape
