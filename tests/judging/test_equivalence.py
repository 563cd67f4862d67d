"""Results that are not unique: correct results pass, wrong results do not."""

from __future__ import annotations

import pytest
import torch

from conformance.judging import equivalence
from conformance.ops.family import Equivalence

X = torch.tensor([[3.0, 1.0, 3.0], [2.0, 2.0, 1.0]])


def holds(kind: Equivalence, source: torch.Tensor | None, a: torch.Tensor, b: torch.Tensor) -> bool:
    return equivalence.holds(kind, source, a, b)


def test_any_index_of_an_equal_value_is_equivalent() -> None:
    kind = Equivalence.INDEX_OF_EQUAL
    assert holds(kind, X, torch.tensor([0, 0]), torch.tensor([2, 1]))
    assert not holds(kind, X, torch.tensor([0, 0]), torch.tensor([1, 1]))
    assert not holds(kind, X, torch.tensor([0, 0]), torch.tensor([0, 7]))


def test_a_single_index_refers_to_the_flat_tensor() -> None:
    assert holds(Equivalence.INDEX_OF_EQUAL, X, torch.tensor(0), torch.tensor(2))
    assert not holds(Equivalence.INDEX_OF_EQUAL, X, torch.tensor(0), torch.tensor(1))


def test_an_element_is_taken_once_along_its_dimension() -> None:
    kind, source = Equivalence.INDEX_OF_TAKEN, torch.tensor([[1, 1, 2], [3, 3, 3]])
    expected = torch.tensor([[0, 1, 2], [0, 1, 2]])
    assert holds(kind, source, expected, torch.tensor([[1, 0, 2], [2, 0, 1]]))
    assert holds(kind, source.T, expected.T, torch.tensor([[1, 0, 2], [2, 0, 1]]).T)
    assert not holds(kind, source, expected, torch.tensor([[0, 0, 2], [0, 1, 2]]))
    assert not holds(kind, source, expected, torch.tensor([[0, 1, 2], [1, 1, 1]]))
    assert not holds(kind, source, expected, torch.tensor([[0, 2, 1], [0, 1, 2]]))
    assert not holds(kind, source, expected, torch.tensor([[0, 1, 3], [0, 1, 2]]))


def test_elements_taken_by_a_stable_call_are_in_order() -> None:
    expected, another = torch.tensor([[1, 0, 2], [2, 0, 1]]), torch.tensor([[1, 2, 0], [2, 1, 0]])
    source = torch.tensor([[3.0, 1.0, 3.0], [2.0, 2.0, 1.0]])
    for stable in (False, True):
        found = equivalence.holds(Equivalence.INDEX_OF_TAKEN, source, expected, another, stable=stable)
        assert found is not stable


def test_a_single_element_is_taken_of_a_tensor_without_dimensions() -> None:
    assert holds(Equivalence.INDEX_OF_TAKEN, torch.tensor(2.0), torch.tensor(0), torch.tensor(0))
    assert not holds(Equivalence.INDEX_OF_TAKEN, torch.tensor(2.0), torch.tensor(0), torch.tensor(1))


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64, torch.bfloat16, torch.bool])
def test_equal_values_are_found_in_every_dtype_that_cpu_sorts(dtype: torch.dtype) -> None:
    source = torch.tensor([[0, 1, 1]]).to(dtype)
    for kind in (Equivalence.INDEX_OF_EQUAL, Equivalence.INDEX_OF_TAKEN):
        assert holds(kind, source, torch.tensor([[0, 1, 2]]), torch.tensor([[0, 2, 1]]))
        assert not holds(kind, source, torch.tensor([[0, 1, 2]]), torch.tensor([[1, 0, 2]]))


def test_columns_up_to_phase_may_differ_only_in_sign() -> None:
    q = torch.linalg.qr(torch.arange(9.0).view(3, 3) + torch.eye(3)).Q
    assert holds(Equivalence.UP_TO_PHASE, None, q, q * torch.tensor([1.0, -1.0, 1.0]))
    assert not holds(Equivalence.UP_TO_PHASE, None, q, q[:, [1, 0, 2]])


@pytest.mark.parametrize("factor", [0.0, 0.001, 2.0])
def test_columns_up_to_phase_have_the_length_of_cpu(factor: float) -> None:
    q = torch.linalg.qr(torch.arange(9.0).view(3, 3) + torch.eye(3)).Q
    longer = q * torch.tensor([1.0, factor, -1.0])
    assert not holds(Equivalence.UP_TO_PHASE, None, q, longer)
    assert not holds(Equivalence.ROWS_UP_TO_PHASE, None, q.T, longer.T)


def test_columns_of_zeros_are_equal_up_to_phase() -> None:
    assert holds(Equivalence.UP_TO_PHASE, None, torch.zeros(3, 3), -torch.zeros(3, 3))


def test_unordered_results_are_equivalent_if_their_elements_are_the_same() -> None:
    a = torch.tensor([1, 2, 2])
    assert holds(Equivalence.UNORDERED, None, a, torch.tensor([2, 1, 2]))
    assert not holds(Equivalence.UNORDERED, None, a, torch.tensor([1, 1, 2]))


def test_values_are_compared_unless_they_are_undefined() -> None:
    a, b = torch.tensor([1.0]), torch.tensor([2.0])
    assert holds(Equivalence.METADATA, None, a, b)
    assert not holds(Equivalence.EQUAL, None, a, b)
