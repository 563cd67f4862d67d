"""Table lookups and the table's gradient equal CPU in every dtype and layout."""

from __future__ import annotations

import pytest
import torch
from against_cpu import ALL, LAYOUTS, check, values


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_embedding_and_its_gradient_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    place = LAYOUTS[layout]
    table, indices = place(values(5, 3, dtype=dtype)), place(torch.tensor([[1, 4, 1], [0, 1, 4]]))
    check(torch.ops.aten.embedding, table, indices)
    check(torch.ops.aten.embedding, table, indices[0].int())
    grad = place(values(2, 3, 3, dtype=dtype, seed=2))
    for padding, by_frequency in ((-1, False), (1, False), (-1, True)):
        check(torch.ops.aten.embedding_dense_backward, grad, indices, 5, padding, by_frequency, rtol=1e-2)


def test_embedding_of_wrong_and_empty_indices_equals_cpu() -> None:
    table = values(5, 3)
    for indices in (
        torch.tensor(2),
        torch.tensor([5]),
        torch.tensor([-1]),
        torch.tensor([1.0]),
        torch.empty(0, 2).long(),
    ):
        check(torch.ops.aten.embedding, table, indices)
    check(torch.ops.aten.embedding, values(3), torch.tensor([0]))
    check(torch.ops.aten.embedding_dense_backward, torch.empty(0, 3), torch.empty(0).long(), 4, -1, False)
