"""Elements that one call writes several times: a device may keep any of the written values, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.corpus.model import DeviceArg, TensorSlot
from conformance.judging.judge import CaseResult
from conformance.judging.reference import ORDER
from conformance.ops.family import EXACT, OpFacts
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Check
from tests.samples import sample, slot
from tests.two_sides import judge

FACTS = OpFacts("indexing", EXACT, last_wins=True)
Op = Callable[..., Any]

# The call writes row 1 twice, and row 3 once.
INDEX = (1, 3, 1)


def value_of(slot: TensorSlot, dtype: str) -> torch.Tensor:
    if slot.name == "index":
        return torch.tensor(INDEX)
    start = 100 if slot.name == "source" else 0
    return torch.arange(start, start + slot.numel).reshape(slot.shape).to(getattr(torch, dtype))


def judged(cpu: Op, device: Op, arguments: tuple[Any, ...], dtype: str = "float32") -> CaseResult:
    tensors = (a[0] if isinstance(a, tuple) else a for a in arguments)
    slots = tuple(a for a in tensors if isinstance(a, TensorSlot))
    one = replace(sample("hand", *arguments, DeviceArg(), dtypes=(dtype,)), tensors=slots)
    (case,) = cases(CellId("indexing", "hand", dtype, "contiguous"), [one])
    return judge(cpu, device, case=case, facts=FACTS, values=value_of)


SELF = slot(0, "self", (4, 2), written=True)
ROWS = slot(1, "index", (3,), dtype="int64")
SOURCE = slot(2, "source", (3, 2))


def index_copy(change: Callable[[torch.Tensor], None] = lambda x: None, *, dims: tuple[int, ...] = ()) -> Op:
    """Return ``index_copy_`` in the reverse order along ``dims``, followed by ``change``."""

    def op(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        x.index_copy_(dim, index.flip(dims), source.flip(dims))
        change(x)
        return x

    return op


@pytest.mark.parametrize("dtype", ["float32", "bool", "complex64", "int8"])
def test_another_of_the_values_is_right(dtype: str) -> None:
    cpu = torch.ops.aten.index_copy_.default
    found = judged(cpu, index_copy(dims=(0,)), (SELF, 0, ROWS, SOURCE), dtype)
    assert (found.mismatches, found.skipped) == ([], ORDER if dtype != "bool" else "")


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x[1].fill_(7),  # not a written value
        lambda x: x[3].fill_(100),  # a written value, but row 3 is written once
        lambda x: x[0].fill_(100),  # row 0 is not written
    ],
)
def test_whatever_else_differs_is_a_failure(change: Callable[[torch.Tensor], None]) -> None:
    cpu = torch.ops.aten.index_copy_.default
    (mismatch,) = judged(cpu, index_copy(change, dims=(0,)), (SELF, 0, ROWS, SOURCE)).mismatches
    assert mismatch.check is Check.VALUE


def test_a_device_that_was_wrong_once_is_not_excused() -> None:
    calls = iter(range(99))

    def once(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        x.index_copy_(dim, index, source)
        return x.fill_(7) if next(calls) == 0 else x

    assert judged(torch.ops.aten.index_copy_.default, once, (SELF, 0, ROWS, SOURCE)).mismatches


def test_values_that_are_added_up_have_no_order() -> None:
    def drops(x: torch.Tensor, indices: list[torch.Tensor], source: torch.Tensor, accumulate: bool) -> torch.Tensor:
        return x.index_put_(indices, source)

    cpu = torch.ops.aten.index_put_.default
    for accumulate, right in ((True, False), (False, True)):
        found = judged(cpu, drops, (SELF, (ROWS,), SOURCE, accumulate))
        assert (found.mismatches == []) is right


def reversed_put(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool) -> torch.Tensor:
    return x.put_(index.flip(0), source.flip(0))


def reversed_index_put(
    x: torch.Tensor, indices: list[torch.Tensor], source: torch.Tensor, accumulate: bool
) -> torch.Tensor:
    return x.index_put_([index.flip(0) for index in indices], source.flip(0))


def reversed_scatter(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return x.scatter_(dim, index.flip(0), source.flip(0))


FLAT = slot(0, "self", (4,), written=True)
FLAT_SOURCE = slot(2, "source", (3,))


@pytest.mark.parametrize(
    ("cpu", "device", "arguments"),
    [
        (torch.ops.aten.put_.default, reversed_put, (FLAT, ROWS, FLAT_SOURCE, False)),
        (torch.ops.aten.index_put_.default, reversed_index_put, (SELF, (ROWS,), SOURCE, False)),
        (torch.ops.aten.scatter_.src, reversed_scatter, (FLAT, 0, ROWS, FLAT_SOURCE)),
    ],
    ids=["put_", "index_put_", "scatter_"],
)
def test_the_order_is_open_in_every_op_that_writes_by_index(cpu: Op, device: Op, arguments: tuple[Any, ...]) -> None:
    found = judged(cpu, device, arguments)
    assert (found.mismatches, found.skipped) == ([], ORDER)
