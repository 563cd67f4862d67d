"""Equality of bytes in host memory."""

from __future__ import annotations

import pytest
import torch

from conformance.judging.host_memory import holds, same_bytes


def data(*values: float) -> torch.Tensor:
    return torch.tensor(values).view(torch.uint8)


def test_a_storage_holds_its_own_bytes_even_if_one_is_nan() -> None:
    nan = float("nan")
    assert holds(torch.tensor([0.0, nan]).untyped_storage(), data(0.0, nan))
    assert holds(torch.empty(0).untyped_storage(), data())


def test_a_storage_does_not_hold_bytes_that_differ_in_one_bit() -> None:
    assert not holds(torch.tensor([0.0, 1.0]).untyped_storage(), data(-0.0, 1.0))
    assert not holds(torch.tensor([1.0, 0.0]).untyped_storage(), data(1.0, -0.0))


def test_a_storage_does_not_hold_bytes_of_another_size() -> None:
    assert not holds(torch.tensor([1.0, 2.0]).untyped_storage(), data(1.0))
    assert not holds(torch.tensor([1.0]).untyped_storage(), data(1.0, 2.0))


def test_a_view_is_compared_by_its_whole_storage() -> None:
    view = torch.tensor([1.0, 2.0])[1:]
    assert holds(view.untyped_storage(), data(1.0, 2.0))
    assert not holds(view.untyped_storage(), data(2.0))


@pytest.mark.parametrize("count", [0, 1, 7, 4096, 100_003])
def test_the_same_bytes_are_found_and_each_other_byte(count: int) -> None:
    a = torch.arange(count).to(torch.uint8)
    b = torch.cat((torch.zeros(3, dtype=torch.uint8), a))[3:]  # not aligned
    assert same_bytes(a, b)
    for position in {0, count // 2, count - 1} if count else ():
        b[position] += 1
        assert not same_bytes(a, b)
        b[position] -= 1


def test_a_prefix_is_not_the_same() -> None:
    a = torch.zeros(5, dtype=torch.uint8)
    assert not same_bytes(a, a[:4])
