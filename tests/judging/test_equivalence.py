"""Results that are not unique: right ones pass, wrong ones do not."""

from __future__ import annotations

import torch

from conformance.judging import equivalence
from conformance.ops.family import Equivalence

X = torch.tensor([[3.0, 1.0, 3.0], [2.0, 2.0, 1.0]])


def holds(kind: Equivalence, source: torch.Tensor | None, a: torch.Tensor, b: torch.Tensor) -> bool:
    return equivalence.holds(kind, source, a, b)


def test_any_index_of_an_equal_value_will_do() -> None:
    kind = Equivalence.INDEX_OF_EQUAL
    assert holds(kind, X, torch.tensor([0, 0]), torch.tensor([2, 1]))
    assert not holds(kind, X, torch.tensor([0, 0]), torch.tensor([1, 1]))
    assert not holds(kind, X, torch.tensor([0, 0]), torch.tensor([0, 7]))


def test_an_index_may_address_the_flat_tensor() -> None:
    assert holds(Equivalence.INDEX_OF_EQUAL, X, torch.tensor(0), torch.tensor(2))
    assert not holds(Equivalence.INDEX_OF_EQUAL, X, torch.tensor(0), torch.tensor(1))


def test_columns_may_differ_by_a_sign_but_not_by_more() -> None:
    q = torch.linalg.qr(torch.arange(9.0).view(3, 3) + torch.eye(3)).Q
    assert holds(Equivalence.UP_TO_PHASE, None, q, q * torch.tensor([1.0, -1.0, 1.0]))
    assert not holds(Equivalence.UP_TO_PHASE, None, q, q[:, [1, 0, 2]])


def test_an_unordered_result_has_the_same_elements() -> None:
    a = torch.tensor([1, 2, 2])
    assert holds(Equivalence.UNORDERED, None, a, torch.tensor([2, 1, 2]))
    assert not holds(Equivalence.UNORDERED, None, a, torch.tensor([1, 1, 2]))


def test_undefined_content_is_not_looked_at_and_defined_content_is() -> None:
    a, b = torch.tensor([1.0]), torch.tensor([2.0])
    assert holds(Equivalence.METADATA, None, a, b)
    assert not holds(Equivalence.EQUAL, None, a, b)
