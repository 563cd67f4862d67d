"""Samples in which one tensor has one batch, or none, beside others that have several."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.corpus.model import Sample
from conformance.corpus.vary import broadcasting, sizes
from tests.generated import corpus, failing, made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(broadcasting.generate, overload)


@pytest.mark.parametrize("overload", ["cholesky_solve", "linalg_solve_triangular", "_cdist_forward"])
def test_each_tensor_has_one_batch_or_none_beside_several(overload: str) -> None:
    found = [[slot.shape for slot in s.tensors][:2] for s in made(overload)]
    assert any(len(a) == len(b) > 2 and a[0] == 1 < b[0] for a, b in found)
    assert any(len(a) == len(b) > 2 and b[0] == 1 < a[0] for a, b in found)
    assert any(len(a) > len(b) for a, b in found)
    assert any(len(b) > len(a) for a, b in found)


def test_values_stay_those_of_the_first_batch() -> None:
    assert all(not slot.fill for s in made("cholesky_solve") for slot in s.tensors)


def test_ops_whose_batches_have_to_agree_have_none() -> None:
    assert not made("bmm")
    assert not made("convolution")


def test_ops_without_results_have_none() -> None:
    assert not made("_cummax_helper")


def test_pointwise_and_composite_ops_have_none() -> None:
    assert not made("add.Tensor")
    assert not made("einsum")


def of_first_batch(b: torch.Tensor, factor: torch.Tensor, upper: bool = False) -> torch.Tensor:
    """``cholesky_solve`` that steps through the one batch of its right side with those of the other."""
    found = torch.cholesky_solve(b, factor, upper=upper)
    if b.dim() < factor.dim() or b.shape[0] < factor.shape[0]:
        found[1:] = 0
    return found


def test_a_kernel_that_gives_the_first_batch_alone_is_found_by_these_alone() -> None:
    op: Any = torch.cholesky_solve
    others = [*corpus().recorded("cholesky_solve"), *made_by(sizes.generate, "cholesky_solve")]
    assert not failing(op, of_first_batch, [s for s in others if not s.raises])
    assert failing(op, of_first_batch, made("cholesky_solve"))
    assert not failing(op, op, made("cholesky_solve"))
