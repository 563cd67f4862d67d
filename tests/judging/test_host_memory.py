"""Equality of bytes in host memory."""

from __future__ import annotations

import torch

from conformance.judging.host_memory import holds


def data(*values: float) -> torch.Tensor:
    return torch.tensor(values).view(torch.uint8)


def test_a_storage_holds_its_own_bytes_whatever_they_mean() -> None:
    nan = float("nan")
    assert holds(torch.tensor([0.0, nan]).untyped_storage(), data(0.0, nan))
    assert holds(torch.empty(0).untyped_storage(), data())


def test_one_bit_makes_a_difference() -> None:
    assert not holds(torch.tensor([0.0, 1.0]).untyped_storage(), data(-0.0, 1.0))
    assert not holds(torch.tensor([1.0, 0.0]).untyped_storage(), data(1.0, -0.0))


def test_a_storage_of_another_size_holds_other_bytes() -> None:
    assert not holds(torch.tensor([1.0, 2.0]).untyped_storage(), data(1.0))
    assert not holds(torch.tensor([1.0]).untyped_storage(), data(1.0, 2.0))


def test_all_of_a_view_s_storage_counts() -> None:
    view = torch.tensor([1.0, 2.0])[1:]
    assert holds(view.untyped_storage(), data(1.0, 2.0))
    assert not holds(view.untyped_storage(), data(2.0))
