"""Results that a scenario leaves out because the device does not offer them, and results that it keeps."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import (
    busy_streams,
    defaults,
    flat_tensors,
    handles,
    loading,
    operands,
    python_values,
    serialization,
    shared_memory,
    transfers,
)
from conformance.scenarios.model import BROKEN_PRIMITIVES, NotOffered, Program, holds, laid_out, on

TO = torch.Tensor.to


def refuse(monkeypatch: pytest.MonkeyPatch, refused: Any) -> None:
    """Make ``to("cpu")`` raise a backend's error for the tensors for which ``refused`` is true."""

    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if args == ("cpu",) and refused(self):
            raise RuntimeError("Type not supported")
        return TO(self, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "to", to)


def test_a_dtype_that_no_tensor_can_have_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, lambda t: t.dtype in (torch.complex32, torch.complex64))
    assert [holds("cpu", dtype) for dtype in (torch.complex64, torch.complex128)] == [False, True]
    with pytest.raises(NotOffered, match=r"complex64: Type not supported"):
        on("cpu", torch.ones(2, dtype=torch.complex64))


def test_a_device_that_refuses_some_tensors_of_a_dtype_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, lambda t: t.numel() == 3)
    with pytest.raises(RuntimeError, match=r"Type not supported"):
        on("cpu", torch.ones(3))


def test_a_call_whose_result_has_a_dtype_that_the_device_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(wanted: str, made: torch.dtype) -> Any:
        def call(device: str) -> torch.Tensor:
            if device == wanted:
                raise RuntimeError("Type not supported")
            return torch.zeros(2, dtype=made)

        return call

    monkeypatch.setattr(defaults, "CALLS", {"made": lacking("meta", torch.float16)})  # meta has no values to copy back
    assert isinstance(defaults.default_dtype("meta")["made_0"], NotOffered)
    monkeypatch.setattr(defaults, "CALLS", {"made": lacking("cpu:0", torch.float16)})
    with pytest.raises(RuntimeError, match=r"Type not supported"):
        defaults.default_dtype("cpu:0")


def test_strides_are_left_out_on_a_device_that_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = laid_out("cpu", 3, 1)
    assert isinstance(found, torch.Tensor)
    assert found.tolist() == [3, 1]
    monkeypatch.setattr(torch.Tensor, "t", lambda self: torch.empty(3, 2))
    assert isinstance(laid_out("cpu", 3, 1), NotOffered)


def test_memory_is_pinned_and_waited_for_where_torch_has_the_device_as_its_accelerator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    for program in (loading.pinned_memory, loading.copies_that_do_not_block, busy_streams.synchronize):
        with pytest.raises(NotOffered, match=r"a device that is torch's accelerator"):
            program("xla:0")


@pytest.mark.parametrize("said", [f"{flat_tensors.FOR_OTHER_DEVICES} on another device", "no kernel"])
def test_an_implementation_that_torch_has_for_other_devices_is_left_out(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step(self: Any) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(torch.optim.SGD, "step", step)
    monkeypatch.setattr(flat_tensors, "OPTIMIZERS", {"sgd": (torch.optim.SGD, {})})
    if said == "no kernel":
        with pytest.raises(RuntimeError, match=said):
            flat_tensors.optimizer_steps("cpu")
    else:
        assert isinstance(flat_tensors.optimizer_steps("cpu")["sgd_fused"], NotOffered)


@pytest.mark.parametrize(
    "program",
    [
        handles.items_of_lazy_views, operands.made_on_another_device, python_values.text,
        serialization.saved_and_loaded, shared_memory.copied_within_a_storage, transfers.to_the_host,
        transfers.to_the_device, transfers.into_tensors_of_the_host, transfers.into_tensors_of_the_device,
        transfers.without_blocking,
    ],
    ids=lambda program: program.__name__,
)  # fmt: skip
def test_lines_that_need_a_bit_that_the_gate_found_broken_are_left_out(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking() -> set[str]:
        return {name for name, found in program("cpu").items() if isinstance(found, NotOffered)}

    before = lacking()
    monkeypatch.setitem(BROKEN_PRIMITIVES, "cpu", frozenset({"grow_storage"}))
    assert lacking() == before
    monkeypatch.setitem(BROKEN_PRIMITIVES, "cpu", frozenset({"conjugate", "negative"}))
    left = lacking() - before
    assert left
    assert all("conjugate" in name or "negated" in name for name in left)
