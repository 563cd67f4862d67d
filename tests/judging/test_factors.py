"""Factors of a matrix: other pivots are correct, and for a matrix without factors the result is undefined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance.corpus.model import DeviceArg, TensorSlot
from conformance.judging.judge import CaseResult
from conformance.judging.reference import NOT_FINITE, PIVOTS
from conformance.ops.family import ITERATED, OpFacts
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Check, Route
from tests.samples import sample, slot
from tests.two_sides import judge

FACTS = OpFacts("linalg", ITERATED, factorizes=True)
LU = torch.ops.aten.linalg_lu_factor_ex.default
CHOLESKY = torch.ops.aten.linalg_cholesky_ex.default
Op = Callable[..., Any]

# LAPACK chooses the second row as pivot: its |re| + |im| is larger, although the modulus of the first row is larger.
COMPLEX = torch.tensor([[5 + 0j, 1 + 2j, 0], [3 + 3j, 2 - 1j, 1], [1, 1j, 4]])
# The second matrix is not positive-definite.
MATRICES = torch.tensor([[[4.0, 1.0], [1.0, 3.0]], [[1.0, 2.0], [2.0, 1.0]]])


def judged(cpu: Op, device: Op, value: torch.Tensor, route: Route = Route.NATIVE) -> CaseResult:
    def value_of(slot: TensorSlot, dtype: str) -> torch.Tensor:
        return value

    dtype = str(value.dtype).removeprefix("torch.")
    one = sample("hand", slot(0, "self", tuple(value.shape)), DeviceArg(), dtypes=(dtype,))
    (case,) = cases(CellId("linalg", "hand", dtype, "contiguous"), [one])
    return judge(cpu, device, case=case, facts=FACTS, values=value_of, route=route)


def lu_by_modulus(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the LU factors, the pivots and ``info``, with the row of the largest modulus as pivot."""
    made, pivots = x.clone(), []
    for k in range(x.shape[-1]):
        row = k + int(made[k:, k].abs().argmax())
        pivots.append(row + 1)
        made[[k, row]] = made[[row, k]]
        made[k + 1 :, k] /= made[k, k]
        made[k + 1 :, k + 1 :] -= made[k + 1 :, k : k + 1] @ made[k : k + 1, k + 1 :]
    return made.mT.contiguous().mT, torch.tensor(pivots, dtype=torch.int32), torch.zeros((), dtype=torch.int32)


def changed(op: Op, change: Callable[..., None]) -> Op:
    """Return ``op``, with its results changed in place by ``change``."""

    def changing(*given: Any) -> tuple[torch.Tensor, ...]:
        results = tuple(t.clone(memory_format=torch.preserve_format) for t in op(*given))
        change(*results)
        return results

    return changing


def test_other_pivots_are_right_if_the_product_is() -> None:
    assert LU(COMPLEX)[1].tolist() != lu_by_modulus(COMPLEX)[1].tolist()
    found = judged(LU, lu_by_modulus, COMPLEX)
    assert (found.mismatches, found.skipped) == ([], PIVOTS)


@pytest.mark.parametrize(
    "change",
    [
        lambda factors, pivots, info: factors[1, 2].mul_(1.01),
        lambda factors, pivots, info: pivots[1].fill_(3),
        lambda factors, pivots, info: pivots[0].fill_(0),
        lambda factors, pivots, info: factors.fill_(0),
    ],
)
def test_other_pivots_with_another_product_are_a_failure(change: Callable[..., None]) -> None:
    found = judged(LU, changed(lu_by_modulus, change), COMPLEX)
    assert Check.VALUE in {m.check for m in found.mismatches}


def test_pivots_of_small_elements_are_a_failure() -> None:
    def last_row_first(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        factors, _, info = lu_by_modulus(x.flip(0) * torch.tensor([1e3, 1, 1])[:, None] / 1e3)
        return factors, torch.tensor([3, 3, 3], dtype=torch.int32), info

    assert judged(LU, last_row_first, COMPLEX).mismatches


def test_what_is_left_of_a_matrix_without_factors_is_not_defined() -> None:
    def other(value: int) -> Op:
        return changed(CHOLESKY, lambda factor, info: factor[value].fill_(7))

    assert CHOLESKY(MATRICES)[1].tolist() == [0, 2]
    found = judged(CHOLESKY, other(1), MATRICES)
    assert (found.mismatches, found.skipped) == ([], PIVOTS)
    assert judged(CHOLESKY, other(0), MATRICES).mismatches


def test_a_device_that_was_wrong_once_is_not_excused() -> None:
    calls = iter(range(99))

    def once(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return changed(CHOLESKY, lambda f, _: f.fill_(7))(x) if next(calls) == 0 else tuple(CHOLESKY(x))

    assert judged(CHOLESKY, once, MATRICES[:1]).mismatches


def test_which_matrix_has_no_factors_is_defined() -> None:
    other = changed(CHOLESKY, lambda factor, info: info.fill_(1))
    assert judged(CHOLESKY, other, MATRICES).mismatches


def test_numbers_that_are_not_finite_may_end_anyhow() -> None:
    nan = MATRICES.clone()
    nan[0, 0, 0] = torch.nan
    other = changed(CHOLESKY, lambda factor, info: factor.fill_(7))
    found = judged(CHOLESKY, other, nan)
    assert (found.mismatches, found.skipped) == ([], NOT_FINITE)


def test_cpus_own_kernel_gives_cpus_bits_whatever_the_matrix() -> None:
    nan = MATRICES.clone()
    nan[0, 0, 0] = torch.nan
    for value in (nan, MATRICES):
        other = changed(CHOLESKY, lambda factor, info: factor[1].fill_(7))
        assert judged(CHOLESKY, other, value, route=Route.FALLBACK).mismatches


def test_numbers_of_a_dtype_without_an_op_for_finite_ones_are_asked_too() -> None:
    def on_cpu(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(CHOLESKY(x.float()))

    def on_device(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        raise RuntimeError("no such factors")

    small = MATRICES.to(torch.float8_e4m3fn)
    assert [m.check for m in judged(on_cpu, on_device, small).mismatches] == [Check.ERROR_PARITY]
    nan = MATRICES.clone()
    nan[0, 0, 0] = torch.nan
    assert judged(on_cpu, on_device, nan.to(torch.float8_e4m3fn)).skipped == NOT_FINITE
