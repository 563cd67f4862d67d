"""Samples in which one tensor has one batch, or no batch dimension, and others have several batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.corpus import reader
from conformance.corpus.model import Sample
from conformance.corpus.vary import broadcasting, sizes
from tests.by_hand import found_by
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
    small = [s for s in made("cholesky_solve") if ".all=" not in s.name]
    assert small
    assert all(not slot.fill for s in small for slot in s.tensors)


def test_ops_whose_batches_have_to_agree_have_none() -> None:
    assert not made("bmm")
    assert not made("convolution")


def test_ops_without_results_have_none() -> None:
    assert not made("_cummax_helper")


def test_pointwise_and_composite_ops_have_none() -> None:
    assert not made("add.Tensor")
    assert not made("einsum")


def of_first_batch(b: torch.Tensor, factor: torch.Tensor, upper: bool = False) -> torch.Tensor:
    """Return ``cholesky_solve``, but zeros after the first batch if ``b`` has fewer batches than ``factor``."""
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


def of_tiled_bias(bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor, **factors: float) -> torch.Tensor:
    """Return ``addmm``, but if ``bias`` is one row, repeat its first 1,024 elements."""
    if bias.dim() == 1 or (bias.dim() == 2 and bias.shape[0] == 1):
        bias = bias[..., torch.arange(bias.shape[-1]) % 1024]
    return torch.addmm(bias, a, b, **factors)


def test_a_row_that_is_repeated_past_a_tile_is_found_by_these_alone() -> None:
    op: Any = torch.addmm
    others = [*corpus().recorded("addmm"), *made_by(sizes.generate, "addmm")]
    assert not failing(op, of_tiled_bias, [s for s in others if not s.raises])
    found = failing(op, of_tiled_bias, made("addmm"))
    assert found
    assert all(".all=" in name for name in found)
    assert not failing(op, op, made("addmm"))


def test_attention_with_a_kernel_of_its_own_has_batches_that_broadcast() -> None:
    op: Any = torch.ops.aten.scaled_dot_product_attention.default

    def of_first_key(query: torch.Tensor, key: torch.Tensor, *more: Any, **how: Any) -> Any:
        found = op(query, key, *more, **how)
        if key.dim() < query.dim() or key.shape[0] < query.shape[0]:
            found[1:] = 0
        return found

    every = [s for s in reader.load().samples("scaled_dot_product_attention") if not s.raises]
    every = [s for s in every if dict(s.kwargs).get("dropout_p", 0.0) == 0.0 and "float32" in s.dtypes]
    broadcast = [s for s in every if ".batch=" in s.name]
    assert all(s.own_kernel for s in broadcast)
    assert not found_by([s for s in every if s not in broadcast], op, of_first_key, "float32")[1]
    found = found_by(broadcast, op, of_first_key, "float32")[1]
    assert {name.rpartition(".key.")[2] for name in found} == {"batch=one", "batch=none"}
    assert not found_by(broadcast, op, op, "float32")[1]
