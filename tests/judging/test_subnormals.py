"""Whether a device keeps subnormal numbers: the probes, and the adapter's own answer, which comes first."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from conformance import backends
from conformance.judging import subnormals
from conformance.judging.oracle import call
from conformance.judging.tolerances import Criteria
from conformance.judging.twins import CPU, Twins
from conformance.ops.family import OpFacts
from tests.two_sides import case_of, judge, value_of

WITH_ARITHMETIC = ("float16", "bfloat16", "float32", "float64")


@pytest.fixture
def cpu() -> backends.Capabilities:
    return backends.find("torch:cpu")


@pytest.mark.parametrize("dtype", WITH_ARITHMETIC)
def test_cpu_keeps_the_subnormal_numbers_of_each_dtype_with_arithmetic(cpu: backends.Capabilities, dtype: str) -> None:
    assert dtype in subnormals.asked(cpu)
    assert subnormals.keeps(cpu, dtype)


@pytest.mark.parametrize("asked", ["float32", "float16"])
@pytest.mark.parametrize("op", ["contiguous", "__mul__", "sum"])
def test_a_device_that_flushes_them_in_one_op_keeps_those_of_other_dtypes_alone(
    cpu: backends.Capabilities, monkeypatch: pytest.MonkeyPatch, op: str, asked: str
) -> None:
    right = getattr(torch.Tensor, op)

    def flushing(self: torch.Tensor, *args: object) -> torch.Tensor:
        result: torch.Tensor = right(self, *args)
        small = result.abs() < torch.finfo(result.dtype).tiny
        return torch.where(small & (result.dtype == torch.float16), torch.zeros_like(result), result)

    monkeypatch.setattr(torch.Tensor, op, flushing)
    assert subnormals.keeps(cpu, asked) is (asked == "float32")


def test_a_device_without_one_of_the_ops_is_taken_for_one_that_flushes(
    cpu: backends.Capabilities, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(self: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("Could not run 'aten::sum'")

    monkeypatch.setattr(torch.Tensor, "sum", lacking)
    assert not subnormals.keeps(cpu, "float32")


@pytest.mark.parametrize("says", [True, False])
def test_a_device_is_not_asked_if_its_adapter_says_what_it_does(says: bool) -> None:
    backend = backends.Capabilities(SimpleNamespace(name="hand", device="cpu", keeps_subnormals=says), "hand")
    assert subnormals.asked(backend) == ()
    backend.subnormals = ("float16",)
    assert (torch.float32 in subnormals.kept(backend), torch.float16 in subnormals.kept(backend)) == (says, says)


def test_without_an_answer_no_subnormal_number_is_counted_on(cpu: backends.Capabilities) -> None:
    assert subnormals.kept(cpu) == frozenset()
    cpu.subnormals = ("float16",)
    assert subnormals.kept(cpu) == {torch.float16}


@pytest.mark.parametrize(
    ("dtype", "kept", "wrong"),
    [("float16", "float16", True), ("float16", "float32", False), ("float32", "float32", True)],
)
def test_a_kernel_that_loses_them_is_found_where_the_device_keeps_those_of_its_dtype(
    dtype: str, kept: str, wrong: bool
) -> None:
    scale = torch.finfo(getattr(torch, dtype)).tiny / 10

    def small(x: torch.Tensor) -> torch.Tensor:
        return (x.double() * scale).to(x.dtype)

    criteria = Criteria(OpFacts("misc"), frozenset({getattr(torch, kept)}))
    found = judge(small, torch.zeros_like, case_of(dtype=dtype), criteria)
    assert bool(found.mismatches) is wrong


@pytest.mark.parametrize(
    ("dtype", "computed_in", "kept"),
    [("float32", "", True), ("complex64", "", True), ("float64", "", False), ("float32", "bfloat16", False)],
)
def test_a_bound_reaches_to_subnormal_numbers_if_those_of_each_dtype_on_the_way_are_kept(
    dtype: str, computed_in: str, kept: bool
) -> None:
    criteria = Criteria(OpFacts("misc", computed_in=computed_in), frozenset({torch.float32}))
    found = call(torch.abs, Twins(value_of).side(case_of(dtype=dtype), CPU))
    assert criteria.closeness(found, torch.ones(2, dtype=getattr(torch, dtype))).subnormals is kept
