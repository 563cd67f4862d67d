"""Copies to targets in which several indices share an element, and copies with a broken conjugate bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance import backends
from conformance.scenarios import transfers
from conformance.scenarios.model import BROKEN_PRIMITIVES, NotOffered, Program
from tests.scenarios.altered import different

Copy = Callable[..., torch.Tensor]


def _accepted(copy: Copy) -> Copy:
    def copied(target: torch.Tensor, source: torch.Tensor, *how: Any) -> torch.Tensor:
        first = tuple(slice(0, 1) for _ in range(target.dim()))
        copy(target[first], source[first], *how)
        return target

    return copied


def _refused_too_late(copy: Copy) -> Copy:
    def copied(target: torch.Tensor, source: torch.Tensor, *how: Any) -> torch.Tensor:
        _accepted(copy)(target, source, *how)
        return copy(target, source, *how)

    return copied


@pytest.mark.parametrize("wrong", [_accepted, _refused_too_late])
def test_a_copy_that_writes_to_overlapping_elements_is_found(
    wrong: Callable[[Copy], Copy], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, copy = transfers.targets_that_overlap, torch.Tensor.copy_
    names = {*program("cpu")}
    assert not different(program, lambda: None)
    assert different(program, lambda: monkeypatch.setattr(torch.Tensor, "copy_", wrong(copy))) == names


def test_all_copies_to_overlapping_elements_are_refused_on_cpu() -> None:
    assert all(torch.equal(one, torch.tensor(True)) for one in transfers.targets_that_overlap("cpu").values())


@pytest.mark.forked
@pytest.mark.parametrize(
    ("program", "kept"), [(transfers.to_the_device, True), (transfers.to_the_host, False)], ids=["up", "down"]
)
def test_a_broken_bit_of_the_device_leaves_out_no_copy_of_a_conjugated_tensor_of_the_host(
    program: Program, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends.find("refnpu")
    monkeypatch.setitem(BROKEN_PRIMITIVES, "npu", frozenset({"conjugate"}))
    assert isinstance(program("npu:0")["complex64_conjugated"], NotOffered) is not kept
