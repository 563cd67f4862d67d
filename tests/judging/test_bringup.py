"""The bringup gate: each primitive passes on a correct device, and the gate names a broken one."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

from conformance import backends
from conformance.bare_device import BareDevice
from conformance.judging import bringup
from conformance.scenarios.model import BROKEN_PRIMITIVES, works
from conformance.vocabulary import CellId


@pytest.fixture
def cpu() -> backends.Capabilities:
    return backends.find("torch:cpu")


def test_a_correct_device_passes_the_bringup_gate(cpu: backends.Capabilities) -> None:
    assert [bringup.failing(cpu, index) for index in range(len(bringup.GATE))] == [""] * len(bringup.GATE)
    assert bringup.names()[1] == "copy_bytes (Bytes sent to the device come back the same)"


def _short(*args: object, **kwargs: object) -> torch.Tensor:
    return torch.zeros(3)


def _wrong_bytes(self: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
    return torch.zeros_like(self)


def _none(self: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
    return self[:0]


def _silent(*args: object, **kwargs: object) -> torch.Tensor:
    raise RuntimeError


def _dense(self: torch.Tensor, size: tuple[int, ...], *args: object) -> torch.Tensor:
    return torch.zeros(size)


@pytest.mark.parametrize(
    ("owner", "name", "broken", "said"),
    [
        (torch, "empty", _short, r"allocate \(.*\): 0 bytes asked for, 3 given"),
        (torch, "empty", _silent, r"allocate \(.*\): RuntimeError"),
        (
            torch.Tensor,
            "cpu",
            _wrong_bytes,
            r"copy_bytes \(.*\): 7 bytes came back changed, first byte 1: 0x00, expected 0x1f",
        ),
        (
            torch.Tensor,
            "cpu",
            _none,
            r"copy_bytes \(.*\): 1 bytes came back changed: their shape is \(0,\), not \(1,\)",
        ),
        (torch.Tensor, "as_strided", _dense, r"as_strided \(.*\): size, .* \(\(3, 2\), \(2, 1\), 0\), expected .*"),
    ],
)
def test_the_bringup_gate_names_a_broken_primitive(
    cpu: backends.Capabilities,
    monkeypatch: pytest.MonkeyPatch,
    owner: object,
    name: str,
    broken: Callable[..., torch.Tensor],
    said: str,
) -> None:
    monkeypatch.setattr(owner, name, broken)
    index = next(i for i, name in enumerate(bringup.names()) if re.match(said.partition(" ")[0], name))
    assert re.fullmatch(said, bringup.failing(cpu, index))


@pytest.mark.parametrize(
    ("method", "answer", "said"),
    [
        ("route_counters", (1, 2, 3), "route_counters gave (1, 2, 3), expected two numbers of calls"),
        ("memory_stats", {"live_blocks": ..., "live_bytes": 0}, "memory_stats gave Ellipsis live_blocks, expected a n"),
        ("memory_stats", {}, "KeyError: 'live_blocks'"),
        ("verify_memory", ["a canary is dead"], "finds damage before any op was called: a canary is dead"),
    ],
)
def test_the_bringup_gate_names_a_wrong_answer_of_the_adapter(method: str, answer: object, said: str) -> None:
    adapter = type("Adapter", (), {"name": "hand", "device": "cpu", method: lambda self: answer})()
    backend = backends.Capabilities(adapter, "hand")
    broken = bringup.failing(backend, len(bringup.GATE) - 1)
    assert bringup.blocks(backend, len(bringup.GATE) - 1)
    assert broken.startswith("adapter (What the backend's adapter offers answers as the suite asks): ")
    assert said in broken


def test_memory_that_torch_cannot_count_is_not_the_fault_of_an_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BROKEN_PRIMITIVES, "cpu", frozenset())

    def uncounted() -> dict[str, int]:
        raise RuntimeError("not a DeviceAllocator")

    device = BareDevice("hand", "cpu")
    vars(device)["memory_stats"] = uncounted
    backend = backends.Capabilities(device, "hand")
    broken = {i: said for i in range(len(bringup.GATE)) if (said := bringup.failing(backend, i))}
    ((index, said),) = broken.items()
    assert re.fullmatch(r"count_memory \(.*\): RuntimeError: not a DeviceAllocator", said)
    assert not bringup.blocks(backend, index)
    assert works("cpu:0", "count_memory")
    bringup.without(backend, ["count_memory"])
    assert backend.live_memory() == (0, 0)
    assert not works("cpu:0", "count_memory")  # scenarios ask this


@pytest.mark.parametrize(
    ("layout", "needs"),
    [
        *((name, False) for name in ("contiguous", "transposed", "values", "variants", "sizes", "thread", "conj")),
        *((name, True) for name in ("step2", "offset1", "mixed", "sizes_gap", "values_strided", "sequence", "aliased")),
    ],
)
def test_cells_need_as_strided_for_arguments_that_other_views_do_not_make(layout: str, needs: bool) -> None:
    cell = CellId("misc", "add", "float32", layout)
    assert bringup.needed(cell, "native", ["as_strided"]) == ("as_strided" if needs else "")


def test_a_program_needs_no_as_strided_of_the_suite() -> None:
    assert bringup.needed(CellId.of_scenario("masks:masked_fill"), "", ["as_strided"]) == ""


class TestCopiesOfADtype:
    """A device whose copies to CPU lose the imaginary part of complex128."""

    @pytest.fixture
    def broken(self, cpu: backends.Capabilities, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        def real_part(self: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
            return torch.complex(self.real, self.imag * 0) if self.dtype is torch.complex128 else self.clone()

        monkeypatch.setattr(torch.Tensor, "cpu", real_part)
        return [said for index in range(len(bringup.GATE)) if (said := bringup.failing(cpu, index))]

    def test_the_gate_names_the_dtype_and_the_elements(self, broken: list[str]) -> None:
        (said,) = broken
        assert said.startswith("copy_complex128 (Elements of complex128 sent to the device come back the same): ")
        assert said.endswith(": element 0 came back as (1-0j), expected (1-0.5j)")

    def test_cells_of_the_dtype_need_it_except_those_of_ops_that_copy(self) -> None:
        add, clone = CellId("misc", "add", "complex128", "conj"), CellId("copying", "clone", "complex128", "conj")
        other = CellId("misc", "add", "complex64", "conj")
        needed = [bringup.needed(cell, "native", ["copy_complex128"]) for cell in (add, clone, other)]
        assert needed == ["copy_complex128", "", ""]

    def test_a_device_without_the_dtype_passes(
        self, cpu: backends.Capabilities, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(self: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no complex128")

        monkeypatch.setattr(torch.Tensor, "cpu", refuse)
        index = next(i for i, primitive in enumerate(bringup.GATE) if primitive.name == "copy_complex128")
        assert bringup.failing(cpu, index) == ""
