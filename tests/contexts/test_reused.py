"""A call with tensors that had other values before: a device that caches values by address uses stale values."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance import contexts
from conformance.contexts.model import How
from conformance.contexts.reused import other_values
from conformance.records import Mismatch
from conformance.vocabulary import CellId, Check
from tests.two_sides import case_of, judge


class Keeping:
    """An op that adds 1 to the values that it first read at the address of its argument."""

    def __init__(self) -> None:
        self._kept: dict[int, torch.Tensor] = {}

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._kept.setdefault(x.data_ptr(), x.clone()) + 1


def plus_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def found(device: Any, layout: str) -> list[Mismatch]:
    case = replace(case_of(), cell=CellId("misc", "neg", "float32", layout))
    result = judge(plus_one, device, case, context=contexts.of(layout))
    assert result.skipped == ""
    return result.mismatches


def test_values_that_a_device_keeps_by_an_address_are_found() -> None:
    assert [m.check for m in found(Keeping(), "reused")] == [Check.VALUE]


def test_a_plain_call_does_not_find_them() -> None:
    assert found(Keeping(), "contiguous") == []


def test_a_right_device_passes() -> None:
    assert found(plus_one, "reused") == []


def test_an_earlier_call_that_raises_is_no_failure() -> None:
    refused: list[int] = []

    def refusing_once(x: torch.Tensor) -> torch.Tensor:
        if not refused:
            refused.append(1)
            raise ValueError("no such values")
        return x + 1

    assert found(refusing_once, "reused") == []
    assert refused


def test_what_the_op_writes_is_another_tensor_in_the_earlier_call() -> None:
    given: list[tuple[torch.Tensor, list[float], torch.Tensor]] = []

    def noting(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        given.append((x, x.tolist(), out))
        return out.copy_(x)

    x, out = torch.tensor([1.0, 2.0, 3.0]), torch.zeros(3)
    how = How("", contexts.of("reused").facts_of("neg.out"), nullcontext)
    device = torch.device("cpu:0")
    assert contexts.of("reused").call(noting, device, how, [x], {"out": out}) is out
    (first, before, other), (again, now, last) = given
    assert first is again is x
    assert (before, now) == ([3.0, 2.0, 1.0], [1.0, 2.0, 3.0])
    assert other is not last
    assert last is out


def test_a_number_on_the_host_has_another_value_before_as_well() -> None:
    seen: list[float] = []
    scalar = torch.tensor(2.0)
    how = How("", "", nullcontext)
    contexts.of("reused").call(lambda t: seen.append(t.item()), torch.device("cpu:0"), how, [scalar], {})
    assert seen == [1.0, 2.0]


@pytest.mark.parametrize(
    ("values", "others"),
    [
        (torch.tensor([1.0, 2.0, 4.0]), torch.tensor([4.0, 2.0, 1.0])),
        (torch.tensor([[1.0 + 1j], [2.0]]), torch.tensor([[2.0], [1.0 + 1j]])),
        (torch.tensor(3.0), torch.tensor(1.5)),
        (torch.tensor([0, 2]), torch.tensor([0, 2])),  # integers may be indices
        (torch.zeros(0), torch.zeros(0)),
    ],
)
def test_other_values_are_of_the_same_domain(values: torch.Tensor, others: torch.Tensor) -> None:
    assert torch.equal(other_values(values), others)
