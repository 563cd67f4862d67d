"""Results that are not unique: right ones pass, wrong ones do not."""

from __future__ import annotations

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


def test_columns_up_to_phase_may_differ_only_in_sign() -> None:
    q = torch.linalg.qr(torch.arange(9.0).view(3, 3) + torch.eye(3)).Q
    assert holds(Equivalence.UP_TO_PHASE, None, q, q * torch.tensor([1.0, -1.0, 1.0]))
    assert not holds(Equivalence.UP_TO_PHASE, None, q, q[:, [1, 0, 2]])


def test_unordered_results_are_equivalent_if_their_elements_are_the_same() -> None:
    a = torch.tensor([1, 2, 2])
    assert holds(Equivalence.UNORDERED, None, a, torch.tensor([2, 1, 2]))
    assert not holds(Equivalence.UNORDERED, None, a, torch.tensor([1, 1, 2]))


def test_values_are_compared_unless_they_are_undefined() -> None:
    a, b = torch.tensor([1.0]), torch.tensor([2.0])
    assert holds(Equivalence.METADATA, None, a, b)
    assert not holds(Equivalence.EQUAL, None, a, b)
