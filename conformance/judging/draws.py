"""The draws of one side: the results of several calls, each under another seed."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from conformance.judging.bits import real


class Draws:
    """Tensors of draws, one for each call, and their values as float64. `add` appends a call and drops cached values.

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
        """Add the draws of one more call. The tensor is not copied, so the caller must not write to it any more."""
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
        """The shape of the results; None if it is not the same in all calls."""
        first = self.results[0].shape
        return first if all(result.shape == first for result in self.results) else None

    @property
    def matrix(self) -> torch.Tensor:
        """All draws, calls x draws. The results must have one shape."""
        if self._matrix is None:
            self._matrix = torch.stack(self.calls)
        return self._matrix

    def joined(self) -> torch.Tensor:
        """Return all draws, one call behind the other."""
        return torch.cat(self.calls)

    def once(self) -> Draws:
        """Return the first call's draws if all calls drew the same, as with a generator as argument; else all."""
        return Draws(self.results[:1]) if self.are_constant else self


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """Return all draws as a flat tensor of float64; complex numbers as pairs."""
    return real(tensor).reshape(-1).to(torch.float64)


def have_one_shape(expected: Draws, actual: Draws) -> bool:
    """Return whether the results of all calls of both sides have one shape."""
    return expected.shape is not None and expected.shape == actual.shape
