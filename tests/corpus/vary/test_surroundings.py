"""Whether results depend on the memory around arguments."""

from __future__ import annotations

import torch

from conformance.corpus.vary.surroundings import ROUNDING, Surrounded, alike


def test_another_order_of_a_sum_is_no_difference() -> None:
    one = torch.linspace(-3, 3, 50)
    other = one.clone()
    other[7] += 4e-7
    assert alike([one], [other], (), ROUNDING)
    assert alike([one.to(torch.complex64)], [other.to(torch.complex64)], (), ROUNDING)
    assert not alike([one], [other], ())


def test_what_was_read_elsewhere_is_a_difference() -> None:
    one = torch.linspace(-3, 3, 50)
    for value in (1.0, torch.nan, torch.inf):
        other = one.clone()
        other[7] = value
        assert not alike([one], [other], (), ROUNDING)
        assert alike([one, one], [one, other], (1,), ROUNDING)


def test_integers_and_special_values_have_to_be_the_same() -> None:
    assert not alike([torch.tensor([1 << 20])], [torch.tensor([(1 << 20) + 1])], (), ROUNDING)
    special = torch.tensor([torch.nan, torch.inf, 1.0])
    assert alike([special], [special + torch.tensor([0, 0, 1e-7])], (), ROUNDING)


def test_what_is_written_before_an_argument_is_seen() -> None:
    moved = Surrounded(torch.zeros(4))
    assert not moved.is_overrun
    torch.as_strided(moved.tensor, (1,), (1,), moved.tensor.storage_offset() - 1).zero_()
    assert moved.is_overrun
