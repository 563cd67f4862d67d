"""Vectors that are right up to phase: the permitted angle between the device's vectors and CPU's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance import ops
from conformance.judging.judge import CaseResult
from conformance.vocabulary import Check
from tests.two_sides import case_of, judge

DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def matrix(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(3))


def eigh(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    values, vectors = torch.linalg.eigh(x + x.mH)
    return values, vectors


def svd(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    return u, s, vh


def turned(vectors: torch.Tensor, angle: float) -> torch.Tensor:
    """Return the vectors with the first two columns rotated in their plane by ``angle`` radians."""
    wide = vectors.to(torch.complex128 if vectors.is_complex() else torch.float64).clone()
    a, b = wide[..., 0].clone(), wide[..., 1].clone()
    wide[..., 0], wide[..., 1] = a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)
    return torch.empty_like(vectors).copy_(wide)


def judged(right: Callable[..., Any], wrong: Callable[..., Any], given: torch.Tensor, op: str) -> CaseResult:
    case = case_of(dtype=str(given.dtype).removeprefix("torch."), shape=tuple(given.shape))
    return judge(right, wrong, case, ops.facts(op), values=lambda slot, _: given)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (3, 4, 4)])
def test_eigenvectors_are_as_accurate_as_their_dtype(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    given, eps = matrix(dtype, *shape), torch.finfo(dtype).eps

    def reordered(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, vectors = eigh(x.flip(-1, -2).contiguous())
        return values, torch.empty_like(vectors).copy_(-vectors.flip(-2))

    def off(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, vectors = eigh(x)
        return values, turned(vectors, eps**0.5)

    assert judged(eigh, reordered, given, "linalg_eigh").mismatches == []
    (found,) = judged(eigh, off, given, "linalg_eigh").mismatches
    assert (found.check, found.subject, found.facts["kind"]) == (Check.VALUE, "result[1]", "turned")
    assert found.facts["distance"] == pytest.approx(eps**0.5, rel=0.1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (4, 7), (2, 7, 4)])
def test_singular_vectors_are_as_accurate_as_their_dtype(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    given, eps = matrix(dtype, *shape), torch.finfo(dtype).eps

    def of_transposed(x: torch.Tensor) -> Any:
        v, s, uh = svd(x.mH.contiguous())
        kept = svd(x)
        return torch.empty_like(kept[0]).copy_(uh.mH), s, torch.empty_like(kept[2]).copy_(v.mH)

    def off(x: torch.Tensor) -> Any:
        u, s, vh = svd(x)
        return u, s, torch.empty_like(vh).copy_(turned(vh.mH, eps**0.5).mH)

    assert judged(svd, of_transposed, given, "linalg_svd").mismatches == []
    (found,) = judged(svd, off, given, "linalg_svd").mismatches
    assert (found.check, found.subject, found.facts["kind"]) == (Check.VALUE, "result[2]", "turned")


def test_vectors_of_float64_are_not_those_of_float32() -> None:
    def by_float32(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, vectors = eigh(x)
        return values, torch.empty_like(vectors).copy_(
            torch.nn.functional.normalize(eigh(x.float())[1].double(), dim=0)
        )

    (found,) = judged(eigh, by_float32, matrix(torch.float64, 5, 5), "linalg_eigh").mismatches
    assert found.facts["kind"] == "turned"


def test_vectors_of_a_large_matrix_differ_more() -> None:
    def reordered(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, vectors = eigh(x.flip(-1, -2).contiguous())
        return values, torch.empty_like(vectors).copy_(-vectors.flip(-2))

    assert judged(eigh, reordered, matrix(torch.float32, 100, 100), "linalg_eigh").mismatches == []


def test_vectors_of_neighbouring_values_are_right_up_to_phase() -> None:
    basis = torch.linalg.qr(matrix(torch.float64, 4, 4)).Q
    given = (basis @ torch.diag(torch.tensor([1.0, 1 + 2e-4, 2.0, 3.0], dtype=torch.float64)) @ basis.mH / 2).float()
    assert judged(eigh, lambda x: (eigh(x)[0], turned(eigh(x)[1], 0.01)), given, "linalg_eigh").mismatches == []
    apart = (basis @ torch.diag(torch.tensor([1.0, 1.5, 2.0, 3.0], dtype=torch.float64)) @ basis.mH / 2).float()
    assert judged(eigh, lambda x: (eigh(x)[0], turned(eigh(x)[1], 0.01)), apart, "linalg_eigh").mismatches != []
