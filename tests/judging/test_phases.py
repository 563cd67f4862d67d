"""Singular vectors: each is right up to phase, and both vectors of a singular value have the same phase."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from conformance import ops
from conformance.judging.judge import CaseResult
from conformance.vocabulary import Check
from tests.two_sides import case_of, judge

Factors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

MATRIX = torch.tensor([[4.0, 1.0, 2.0], [1.0, 3.0, 0.5], [2.0, 0.0, -1.0], [0.0, 1.0, 1.0]])
COMPLEX = torch.complex(MATRIX, MATRIX.flip(0))
OF_RANK_2 = MATRIX[:, :2] @ torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
PAIRS = torch.stack([MATRIX, MATRIX.flip(0)])


def svd(x: torch.Tensor) -> Factors:
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    return u, s, vh


def svd_with_v(x: torch.Tensor) -> Factors:
    u, s, v = torch.ops.aten.svd(x)
    return u, s, v.resolve_conj()


def times(vectors: torch.Tensor, *phases: complex) -> torch.Tensor:
    """Return the columns, each multiplied by a number, in the strides of ``vectors``."""
    return torch.empty_like(vectors).copy_(vectors * torch.tensor(phases).to(vectors.dtype))


def turned(left: Sequence[complex], right: Sequence[complex]) -> Callable[[torch.Tensor], Factors]:
    """Return an ``svd`` that multiplies the columns of U by ``left`` and those of V by ``right``."""

    def op(x: torch.Tensor) -> Factors:
        u, s, vh = svd(x)
        return times(u, *left), s, times(vh.mH, *right).mH.resolve_conj()

    return op


def judged(
    wrong: Callable[..., Any], matrix: torch.Tensor = MATRIX, right: Callable[..., Any] = svd, op: str = "linalg_svd"
) -> CaseResult:
    case = case_of(dtype=str(matrix.dtype).removeprefix("torch."), shape=tuple(matrix.shape))
    return judge(right, wrong, case, ops.facts(op), values=lambda slot, _: matrix)


SIGNS = (1, -1, -1)
PHASES = (1j, -1, 0.6 - 0.8j)


@pytest.mark.parametrize(("matrix", "phases"), [(MATRIX, SIGNS), (PAIRS, SIGNS), (COMPLEX, PHASES)])
def test_pairs_of_singular_vectors_may_have_any_phase(matrix: torch.Tensor, phases: Sequence[complex]) -> None:
    assert judged(turned(phases, phases), matrix).mismatches == []


@pytest.mark.parametrize(
    ("matrix", "left", "right", "index"),
    [
        (MATRIX, SIGNS, (1, 1, -1), [1]),
        (MATRIX, (1, 1, 1), (1, 1, -1), [2]),
        (PAIRS, (-1, 1, 1), (1, 1, 1), [0, 0]),
        (COMPLEX, PHASES, [p.conjugate() for p in map(complex, PHASES)], [0]),
    ],
)
def test_both_vectors_of_a_singular_value_have_one_phase(
    matrix: torch.Tensor, left: Sequence[complex], right: Sequence[complex], index: list[int]
) -> None:
    (found,) = judged(turned(left, right), matrix).mismatches
    assert (found.check, found.subject) == (Check.VALUE, "result[2]")
    assert found.facts == {"kind": "phases", "other": "result[0]", "index": index}


def test_vectors_of_a_singular_value_of_zero_have_phases_of_their_own() -> None:
    assert judged(turned(SIGNS, (1, -1, 1)), OF_RANK_2).mismatches == []
    assert judged(turned(SIGNS, (-1, -1, 1)), OF_RANK_2).mismatches != []


def test_columns_of_v_are_compared_as_rows_of_its_conjugate_transpose_are() -> None:
    def both(x: torch.Tensor) -> Factors:
        u, s, v = svd_with_v(x)
        return times(u, *PHASES), s, times(v, *PHASES)

    def one(x: torch.Tensor) -> Factors:
        u, s, v = svd_with_v(x)
        return times(u, *PHASES), s, v

    assert judged(both, COMPLEX, svd_with_v, "svd").mismatches == []
    assert [m.facts["kind"] for m in judged(one, COMPLEX, svd_with_v, "svd").mismatches] == ["phases"]


def test_the_vectors_of_a_full_matrix_without_a_singular_value_count_by_themselves() -> None:
    def full(x: torch.Tensor) -> Factors:
        u, s, vh = torch.linalg.svd(x)
        return u, s, vh

    def turned_last(x: torch.Tensor) -> Factors:
        u, s, vh = full(x)
        return times(u, 1, 1, 1, -1), s, vh

    assert judged(turned_last, MATRIX, full).mismatches == []


def test_an_op_that_decomposes_otherwise_is_right() -> None:
    def by_eigenvectors(x: torch.Tensor) -> Factors:
        """Decompose the conjugate transpose, which gives other signs."""
        u, s, vh = svd(x.double().mH.contiguous())
        of_u, of_v = torch.empty_like(svd(x)[0]), torch.empty_like(svd(x)[2])
        return of_u.copy_(-vh.mH), s.float(), of_v.copy_(-u.mH)

    for matrix in (MATRIX, PAIRS, torch.diag(torch.tensor([2.0, 1.0, 1e-6]))):
        assert judged(by_eigenvectors, matrix).mismatches == []
