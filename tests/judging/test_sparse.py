"""Sparse results: differences besides their values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformance.judging import sparse
from conformance.vocabulary import Check
from tests.two_sides import judge

# torch warns once per process that sparse layouts are in beta, and that it does not check indices.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

MATRIX = torch.tensor([[0.0, 2.0, 0.0, 1.0], [3.0, 0.0, 0.0, 0.0]])
LAYOUTS = [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]


def made(layout: torch.layout, matrix: torch.Tensor = MATRIX) -> torch.Tensor:
    blocks = (1, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    return matrix.to_sparse(layout=layout, blocksize=blocks)


def found(want: torch.Tensor, got: torch.Tensor) -> tuple[Check, str, object] | None:
    """Return the check, the part that differs and, for metadata, the differing property; None if nothing differs."""
    differs = sparse.difference(want, got, "result")
    return (differs.check, differs.subject, differs.facts.get("what")) if differs else None


def coo(indices: list[list[int]], *values: float, size: tuple[int, ...] = (2, 4)) -> torch.Tensor:
    return torch.sparse_coo_tensor(torch.tensor(indices), torch.tensor(values, dtype=torch.float32), size)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_equal_results_do_not_differ(layout: torch.layout) -> None:
    assert found(made(layout), made(layout)) is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_another_value_differs(layout: torch.layout) -> None:
    differs = found(made(layout), made(layout, MATRIX * 2))
    assert differs is not None
    assert (differs[0], differs[1].removeprefix("result.").strip("_")) == (Check.VALUE, "values")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_values_elsewhere_differ(layout: torch.layout) -> None:
    differs = found(made(layout), made(layout, MATRIX.roll(2, 1)))
    assert differs is not None
    assert "indices" in differs[1]


def test_the_same_elements_in_a_larger_matrix_differ() -> None:
    indices = [[0, 1], [1, 0]]
    assert found(coo(indices, 1, 2), coo(indices, 1, 2, size=(9, 9))) == (Check.SHAPE, "result", "shape")


def test_another_division_of_the_dimensions_differs() -> None:
    ones = torch.ones(2, 1)
    both, one = ones.to_sparse(2), ones.to_sparse(1)
    assert found(both, one) == (Check.SHAPE, "result", "sparse_dim")


def test_another_dtype_or_layout_differs() -> None:
    assert found(made(torch.sparse_coo), made(torch.sparse_coo, MATRIX.double())) == (Check.DTYPE, "result", "dtype")
    assert found(made(torch.sparse_csr), made(torch.sparse_coo)) == (Check.STRIDE, "result", "layout")
    assert found(made(torch.sparse_csr), MATRIX) == (Check.STRIDE, "result", "layout")


def test_a_result_says_that_it_is_coalesced_where_cpu_says_so_or_where_it_is() -> None:
    said, unsaid = made(torch.sparse_coo), coo([[0, 0, 1], [1, 3, 0]], 2, 1, 3)
    assert found(unsaid, said) is None
    assert found(said, unsaid) == (Check.VALUE, "result", "coalesced")
    for indices in ([[0, 0, 1], [3, 1, 0]], [[0, 0, 1], [1, 1, 0]]):
        plain, wrong = coo(indices, 2, 1, 3), coo(indices, 2, 1, 3)._coalesced_(True)
        assert found(plain, wrong) == (Check.VALUE, "result", "coalesced")


@pytest.mark.parametrize(
    ("op", "checks"),
    [
        (lambda x: x.to_sparse_csr(), []),
        (lambda x: x.flip(1).to_sparse_csr(), [Check.VALUE]),
        (lambda x: torch.cat([x, x * 0]).to_sparse_csr(), [Check.SHAPE]),
    ],
)
def test_a_sparse_result_is_judged(op: Callable[[torch.Tensor], torch.Tensor], checks: list[Check]) -> None:
    assert [m.check for m in judge(lambda x: x.to_sparse_csr(), op).mismatches] == checks
