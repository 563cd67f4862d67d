"""Tensors bit for bit."""

from __future__ import annotations

import pytest
import torch

from conformance.judging import bits


@pytest.mark.parametrize("count", [0, 1, 7, 4096, 100_003])
def test_the_same_bytes_are_found_and_each_other_byte(count: int) -> None:
    a = torch.arange(count).to(torch.uint8)
    b = torch.cat((torch.zeros(3, dtype=torch.uint8), a))[3:]  # not aligned
    assert bits.same_bytes(a, b)
    for position in {0, count // 2, count - 1} if count else ():
        b[position] += 1
        assert not bits.same_bytes(a, b)
        b[position] -= 1


def test_a_prefix_is_not_the_same() -> None:
    a = torch.zeros(5, dtype=torch.uint8)
    assert not bits.same_bytes(a, a[:4])
