"""One case on both sides: the route of the call, and cases that cannot be judged."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from conformance.corpus.model import DeviceArg, GeneratorArg
from conformance.judging import judge as module
from conformance.judging import storages, views
from conformance.judging.views import Unreadable
from conformance.ops.family import OpFacts, Random
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Check, Fact, Route
from tests.samples import sample, slot
from tests.two_sides import case_of, judge


def third(x: torch.Tensor) -> torch.Tensor:
    return x / 3


def test_a_registered_fallback_that_did_not_run_is_reported() -> None:
    def natively(x: torch.Tensor) -> torch.Tensor:
        return third(x)

    assert judge(third, natively, route=Route.FALLBACK).mismatches == []
    facts = {"kind": "route", "registered": "fallback", "native": 1, "fallback": 0}
    assert [m.facts for m in module.route_taken(Route.FALLBACK, (3, 1), (4, 1))] == [facts]


def test_a_backend_without_call_counters_has_no_route_mismatch() -> None:
    assert module.route_taken(Route.NATIVE, None, None) == []


def test_a_dtype_without_a_cpu_kernel_is_skipped() -> None:
    def lacking(x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError('"hand" not implemented for Float')

    found = judge(lacking, third)
    assert found.skipped.startswith("CPU: NotImplementedError")
    assert found.mismatches == []


def test_not_implemented_fails_only_for_a_registered_kernel() -> None:
    def lacking(x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("this kernel is for another day")

    assert judge(third, lacking, route=Route.UNSUPPORTED).skipped.startswith("NotImplementedError")
    assert [m.check for m in judge(third, lacking, route=Route.NATIVE).mismatches] == [Check.ERROR_PARITY]


@pytest.mark.parametrize(
    ("named", "route", "lacks"),
    [
        ("_foo.out", Route.NATIVE, "_foo.out"),
        ("hand", Route.NATIVE, ""),  # the overload itself, for tensors of another layout
        ("_foo.out", Route.COMPOSITE, ""),
    ],
)
def test_a_skipped_case_names_the_overload_without_a_kernel_that_a_native_kernel_calls(
    named: str, route: Route, lacks: str
) -> None:
    def lacking(x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError(f"Could not run 'aten::{named}' with arguments from the 'PrivateUse1' backend. This")

    found = judge(third, lacking, route=route)
    assert (found.lacks, found.mismatches, bool(found.skipped)) == (lacks, [], True)


@pytest.mark.parametrize("axis", ["sizes", "variants"])
def test_draws_of_a_generated_sample_are_compared_by_their_distribution(axis: str) -> None:
    made = replace(sample("hand", slot(0, "self", (64,)), DeviceArg(), dtypes=("float32",)), axis=axis)
    (case,) = cases(CellId("misc", "hand", "float32", axis), [made])
    facts = OpFacts("misc", random=Random("uniform"))
    assert not judge(torch.rand_like, case=case, facts=facts).mismatches
    found = judge(torch.rand_like, lambda x: torch.rand_like(x) / 2, case=case, facts=facts)
    assert [m.check for m in found.mismatches] == [Check.DISTRIBUTION]


def test_a_device_that_raises_when_an_argument_is_read_back_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(base: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        raise Unreadable from RuntimeError("buffer is deleted")

    assert not judge(torch.neg).mismatches
    monkeypatch.setattr(storages, "device_bytes", unreadable)
    found = judge(torch.neg)
    (mismatch,) = found.mismatches
    assert (mismatch.check, found.skipped) == (Check.ERROR_PARITY, "")
    assert mismatch.facts == {
        "kind": Fact.UNREADABLE.value,
        "device": {"type": "RuntimeError", "message": "buffer is deleted"},
    }


def test_a_device_without_generators_is_not_asked_to_draw_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    real = torch.Generator

    def generator(device: torch.device) -> torch.Generator:
        if device.index is not None:
            raise RuntimeError("not an accelerator")
        return real(device)

    monkeypatch.setattr(torch, "Generator", generator)
    one = sample("hand", slot(0, "self", (2,)), DeviceArg(), GeneratorArg(7))
    (case,) = cases(CellId("misc", "hand", "float32", "contiguous"), [one])
    assert judge(torch.neg, case=case).skipped == "the device has no generators: RuntimeError: not an accelerator"
    assert judge(torch.neg).skipped == ""


@pytest.mark.parametrize("holds_bytes", [True, False])
def test_a_dtype_that_a_device_cannot_hold_is_unsupported_unless_it_holds_no_bytes_either(
    holds_bytes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refused = torch.Tensor.to, {torch.float32} if holds_bytes else {torch.float32, torch.uint8}

    def to(tensor: torch.Tensor, target: object, **more: bool) -> torch.Tensor:
        if tensor.dtype in refused and target == torch.device("cpu:0"):
            raise ValueError("refused")
        return real(tensor, target, **more)

    monkeypatch.setattr(torch.Tensor, "to", to)
    monkeypatch.setattr(views, "_broken", frozenset({"view_as_dtype"}))  # arguments are sent in their own dtype
    if holds_bytes:
        assert judge(torch.neg).skipped == "the device has no tensors of float32: ValueError: refused"
    else:
        with pytest.raises(ValueError, match="refused"):
            judge(torch.neg)


def test_a_call_with_a_dtype_that_does_not_come_back_is_unsupported_unless_it_copies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def complex_of(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.complex128)

    def other(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.complex128) + 1

    assert judge(complex_of, other).mismatches
    monkeypatch.setattr(views, "_broken", frozenset({"copy_complex128"}))
    assert judge(complex_of, other).skipped == "copies of complex128 do not come back from the device as they were"
    assert judge(torch.neg, torch.abs).mismatches, "no complex128 in sight"
    (copying,) = cases(
        CellId("copying", "clone", "float32", "contiguous"), [sample("hand", slot(0, "self", (2,)), DeviceArg())]
    )
    assert judge(complex_of, other, case=copying).mismatches


def test_a_kernel_for_cpu_memory_alone_is_called_if_the_backend_registers_one() -> None:
    def crash(x: torch.Tensor) -> torch.Tensor:
        raise AssertionError("reads memory of the device")

    facts = OpFacts("misc", cpu_alone=True)
    assert judge(torch.neg, crash, facts=facts, route=Route.COMPOSITE).skipped == module.CPU_ALONE
    assert judge(torch.neg, crash, facts=facts, route=Route.NATIVE).mismatches


def test_a_call_that_would_return_a_dtype_that_the_device_has_not_got_is_unsupported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def narrow(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float16)

    def refuse(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no float16")

    real = torch.Tensor.to

    def to(tensor: torch.Tensor, target: object, **more: bool) -> torch.Tensor:
        if tensor.dtype is torch.float16 and target == torch.device("cpu:0"):
            raise ValueError("refused")
        return real(tensor, target, **more)

    (mismatch,) = judge(narrow, refuse).mismatches
    assert mismatch.check is Check.ERROR_PARITY
    monkeypatch.setattr(torch.Tensor, "to", to)
    assert judge(narrow, refuse).skipped == "the device has no tensors of float16: RuntimeError: no float16"
    assert judge(torch.neg, refuse).mismatches


class TestADtypeThatADeviceLacks:
    """A device that refuses copies of complex64 from CPU."""

    @pytest.fixture(autouse=True)
    def no_complex(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = torch.Tensor.to

        def to(tensor: torch.Tensor, target: object, **more: bool) -> torch.Tensor:
            if tensor.dtype is torch.complex64 and target == torch.device("cpu:0"):
                raise ValueError("refused")
            return real(tensor, target, **more)

        monkeypatch.setattr(torch.Tensor, "to", to)

    @staticmethod
    def refuse(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("not here")

    @staticmethod
    def through_complex(x: torch.Tensor) -> torch.Tensor:
        return torch.complex(x, x).abs()

    def test_an_argument_that_is_a_view_of_bytes_may_have_it(self) -> None:
        found = judge(torch.neg, self.refuse, case=case_of(dtype="complex64"))
        assert found.skipped == "the device has no tensors of complex64: RuntimeError: not here"

    def test_an_op_that_torch_composes_may_need_it(self) -> None:
        found = judge(self.through_complex, self.refuse, route=Route.COMPOSITE)
        assert found.skipped == "the device has no tensors of complex64: RuntimeError: not here"

    def test_a_kernel_of_the_backend_does_not_need_what_torch_uses(self) -> None:
        assert judge(self.through_complex, self.refuse).mismatches

    def test_a_composed_op_that_needs_another_dtype_fails(self) -> None:
        assert judge(torch.neg, self.refuse, route=Route.COMPOSITE).mismatches

    def test_values_are_judged_if_the_device_returns(self) -> None:
        assert judge(self.through_complex, torch.neg, route=Route.COMPOSITE).mismatches
