"""Device memory around a call: the findings for leaks and damaged blocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from types import SimpleNamespace

import pytest
import torch

from conformance.backends import Capabilities
from conformance.judging import device_memory
from conformance.judging.oracle import CallOutcome
from conformance.judging.twins import CPU, Side
from conformance.records import Mismatch
from conformance.vocabulary import Check
from tests.two_sides import Device, judge


def capabilities(**offered: object) -> Capabilities:
    return Capabilities(SimpleNamespace(name="demo", device="cpu", **offered), "demo")


def test_equal_memory_before_and_after_a_call_is_no_leak() -> None:
    assert device_memory.leak((3, 100), (3, 100)) is None


def test_a_leak_reports_its_blocks_and_bytes() -> None:
    found = device_memory.leak((3, 100), (5, 164))
    assert found is not None
    assert found == Mismatch(Check.LEAK, "", {"kind": "device_leak", "blocks": 2, "bytes": 64})


def test_more_bytes_in_as_many_blocks_are_a_leak() -> None:
    assert device_memory.leak((3, 100), (3, 164)) is not None


def test_a_call_that_frees_memory_of_others_is_reported() -> None:
    found = device_memory.leak((3, 100), (2, 36))
    assert found is not None
    assert (found.facts["blocks"], found.facts["bytes"]) == (-1, -64)


def test_a_backend_without_statistics_has_no_live_memory() -> None:
    assert capabilities().live_memory() == (0, 0)


def test_damage_names_the_result_in_whose_storage_it_is() -> None:
    result = torch.zeros(3)
    address = result.untyped_storage().data_ptr()
    lines = [f"{address:#x} (12 bytes): written past its end", "0x10 (4 bytes): written before its start"]
    backend = capabilities(verify_memory=lambda: lines)
    found = device_memory.damage(backend, CallOutcome(Side(CPU, [], (), {}), [("result", result), ("count", 3)]))
    assert [(m.subject, m.facts["line"]) for m in found] == [("result", lines[0]), ("", lines[1])]
    assert {m.check for m in found} == {Check.REDZONE}


def test_fresh_memory_is_filled_only_inside_the_with_block() -> None:
    fills: list[int | None] = []
    backend = capabilities(fill_fresh=fills.append)
    with backend.fresh_memory(0xFF):
        assert fills == [255]
    assert fills == [255, None]


def test_without_an_adapter_blocks_of_the_sizes_in_question_are_filled_and_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[int, int]] = []
    fill = torch.Tensor.fill_

    def noted(block: torch.Tensor, byte: int) -> torch.Tensor:
        made.append((block.numel(), byte))
        return fill(block, byte)

    monkeypatch.setattr(torch.Tensor, "fill_", noted)
    with capabilities().fresh_memory(0xFF, {24, 0, 1 << 40}):
        assert made.count((24, 255)) == 2
        assert {n for n, _ in made}.isdisjoint({0, 1 << 40})


@pytest.mark.parametrize(
    ("sizes", "filled"), [([100 << 20], [100 << 20]), ([100 << 20, 90 << 20], [90 << 20]), ([129 << 20], [])]
)
def test_large_blocks_are_filled_within_a_bound_of_all_together(
    sizes: list[int], filled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def noted(n: int, **_: object) -> torch.Tensor:
        made.append(n)
        return torch.zeros(1, dtype=torch.uint8)

    monkeypatch.setattr(torch, "empty", noted)
    with capabilities().fresh_memory(0xFF, sizes):
        assert [n for n in made if n > 1 << 20] == [size for size in filled for _ in range(2)]


def test_a_device_whose_fills_are_broken_fills_no_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = capabilities()
    backend.without(["fill"])
    monkeypatch.setattr(torch.Tensor, "fill_", lambda *_: pytest.fail("it was filled"))
    with backend.fresh_memory(0xFF, {24}):
        assert not backend.fills_memory


def test_a_device_that_cannot_fill_bytes_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> torch.Tensor:
        raise RuntimeError("fill_ of bytes")

    monkeypatch.setattr(torch.Tensor, "fill_", refuse)
    backend = capabilities()
    assert backend.fills_memory
    with backend.fresh_memory(0xFF):
        assert not backend.fills_memory


def judged(change: Iterator[int]) -> list[Mismatch]:
    """Judge an op on a device whose number of live blocks changes by the next ``change`` in each call."""
    device = Device(blocks=9)

    def op(x: torch.Tensor) -> torch.Tensor:
        device.blocks += next(change)
        return x + 1

    return judge(lambda x: x + 1, op, device=device).mismatches


def test_a_call_that_frees_what_an_earlier_one_left_is_no_leak() -> None:
    assert judged(chain([-2], repeat(0))) == []


def test_a_call_that_always_frees_what_is_not_its_own_is_reported() -> None:
    (found,) = judged(repeat(-2))
    assert (found.check, found.facts["blocks"]) == (Check.LEAK, -2)


def test_a_leak_behind_memory_that_an_earlier_call_left_is_reported_as_large_as_it_is() -> None:
    (found,) = judged(chain([-2], repeat(1)))
    assert (found.check, found.facts["blocks"]) == (Check.LEAK, 1)
