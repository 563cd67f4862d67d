"""Phases of singular vectors, which are right up to phase: both vectors of a singular value must have one phase.

Pure, on CPU tensors and on what :func:`host_copy` reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from conformance.judging import bits
from conformance.judging.equivalence import up_to_phase, wide
from conformance.judging.views import host_copy
from conformance.ops.family import Equivalence, OpFacts

# The difference of two phases, which are numbers of modulus one, that rounding does not explain. A wrong sign makes a
# difference of 2.
FAR = 0.1


@dataclass(frozen=True, slots=True)
class Apart:
    """Two results, by position, whose vectors have different phases. ``index``: of the batch, then of the pair."""

    first: int
    second: int
    index: list[int]


def apart(facts: OpFacts, expected: Sequence[Any], actual: Sequence[Any]) -> Apart | None:
    """Return the first pair of singular vectors that are each right up to phase, but have different phases.

    ``expected`` and ``actual`` are the results of CPU and of the device. The product of such a pair is not CPU's, so
    the factors do not give the matrix. Singular values that are 0 next to the largest one do not count: their two
    vectors are chosen independently.
    """
    if facts.singular_values is None or not are_alike(expected, actual):
        return None
    values = expected[facts.singular_values]
    sides = [(i, kind) for i, kind in facts.equivalence if kind in OF_VECTORS]
    pairs = [(expected[i], host_copy(actual[i])) for i, _ in sides]
    if all(bits.same_bits(a, b) for a, b in pairs):
        return None
    vectors = [columns(kind, *pair) for (_, kind), pair in zip(sides, pairs, strict=True)]
    count = values.shape[-1]
    if not count or any(a.shape[-1] < count or not up_to_phase(a, b) for a, b in vectors):
        return None
    first, second = (phases(a[..., :count], b[..., :count]) for a, b in vectors)
    counted = values > torch.finfo(values.dtype).eps ** 0.5 * values.amax(-1, keepdim=True)
    wrong = ((first - second).abs() > FAR) & counted
    if not bool(wrong.any()):
        return None
    return Apart(sides[0][0], sides[1][0], [int(i) for i in wrong.nonzero()[0]])


OF_VECTORS = (Equivalence.UP_TO_PHASE, Equivalence.ROWS_UP_TO_PHASE)


def are_alike(expected: Sequence[Any], actual: Sequence[Any]) -> bool:
    """Return whether both sides have the same number of results, all tensors, with the same dtypes and sizes."""
    pairs = list(zip(expected, actual, strict=False))
    tensors = len(expected) == len(actual) and all(isinstance(t, torch.Tensor) for pair in pairs for t in pair)
    return tensors and all(a.dtype == b.dtype and a.shape == b.shape for a, b in pairs)


def columns(kind: Equivalence, *vectors: torch.Tensor) -> list[torch.Tensor]:
    """Return the vectors as columns. Vectors in rows are conjugated and transposed."""
    return [t.mH if kind is Equivalence.ROWS_UP_TO_PHASE else t for t in vectors]


def phases(expected: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
    """Return the number of modulus one that each column is multiplied by; NaN for a column of zeros."""
    inner = (wide(expected).conj() * wide(actual)).sum(-2)
    return inner / inner.abs()
