"""Kernels of a device in a dtype that CPU lacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.judging.judge import CaseResult
from conformance.ops.family import OpFacts
from conformance.plan.case import Case
from conformance.vocabulary import Check
from tests.two_sides import case_of, judge, value_of, with_number

FACTS = OpFacts("misc")
Op = Callable[..., Any]


def in_halves(case: Case, dtype: str = "float16") -> Case:
    """Return the case in a dtype that its sample does not have."""
    return replace(case, cell=replace(case.cell, dtype=dtype))


def judged(right: Op, device: Op, case: Case | None = None) -> CaseResult:
    return judge(right, device, in_halves(case or case_of()), FACTS)


def checks(right: Op, device: Op, case: Case | None = None) -> set[Check]:
    result = judged(right, device, case)
    assert not result.skipped
    return {m.check for m in result.mismatches}


def erfcx(x: torch.Tensor) -> torch.Tensor:
    return torch.special.erfcx(x)


def precisely(x: torch.Tensor) -> torch.Tensor:
    """Return the result of a precise kernel for float16: computed in float64, then rounded."""
    return torch.special.erfcx(x.double()).to(x.dtype)


def test_cpu_has_no_kernel_for_halves_of_what_is_tried_here() -> None:
    with pytest.raises(RuntimeError, match="not implemented for"):
        erfcx(torch.ones(2, dtype=torch.float16))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_kernel_for_halves_is_held_against_cpu_in_float32(dtype: str) -> None:
    def off(x: torch.Tensor) -> torch.Tensor:
        return (torch.special.erfcx(x.double()) * 1.05).to(x.dtype)

    case = in_halves(case_of(), dtype)
    assert judge(erfcx, precisely, case, FACTS).mismatches == []
    (found,) = judge(erfcx, off, case, FACTS).mismatches
    assert (found.check, found.facts["cpu_dtype"], found.facts["dtype"]) == (Check.VALUE, "float32", dtype)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_complex_halves_are_held_against_complex64() -> None:
    def exp(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.exp(x), torch.exp(x).abs()

    def on_device(x: torch.Tensor, factor: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        result, magnitude = exp(x.to(torch.complex128))
        return (result * factor).to(torch.complex32), magnitude.to(torch.float16)

    case = in_halves(case_of(dtype="complex64"), "complex32")
    assert judge(exp, on_device, case, FACTS).mismatches == []
    (found,) = judge(exp, lambda x: on_device(x, 1.1), case, FACTS).mismatches
    assert (found.check, found.subject, found.facts["cpu_dtype"]) == (Check.VALUE, "result[0]", "complex64")


def test_a_device_may_refuse_what_cpu_has_no_kernel_for() -> None:
    def refuse(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("erfcx: no halves")

    assert judged(erfcx, refuse).skipped == "RuntimeError: erfcx: no halves"
    assert judge(erfcx, refuse, case_of(), FACTS).mismatches, "of float32, which CPU has"


def test_what_is_written_is_judged() -> None:
    def in_place(x: torch.Tensor) -> torch.Tensor:
        return torch.special.erfcx(x, out=x)

    def on_device(x: torch.Tensor) -> torch.Tensor:
        return x.copy_(precisely(x))

    written = case_of(written=True)
    assert checks(in_place, on_device, written) == set()
    assert checks(in_place, lambda x: x.copy_(x), written) == {Check.VALUE}
    assert checks(in_place, precisely, written) >= {Check.ALIASING}
    assert checks(erfcx, lambda x: (precisely(x), x.zero_())[0]) >= {Check.MUTATION}


def test_an_output_is_resized_and_written_in_its_dtype() -> None:
    def twice(out: torch.Tensor) -> torch.Tensor:
        return torch.special.erfcx(torch.ones(3, 4, dtype=out.dtype, device=out.device), out=out)

    def on_device(out: torch.Tensor, number: float = 1.0) -> torch.Tensor:
        return out.resize_(3, 4).copy_(precisely(torch.full((3, 4), number, dtype=out.dtype)))

    empty = case_of(written=True, defined=False, shape=(0,))
    assert checks(twice, on_device, empty) == set()
    assert checks(twice, lambda out: on_device(out, 2.0), empty) == {Check.VALUE}


def test_the_dtype_of_a_result_is_that_on_meta() -> None:
    assert checks(erfcx, lambda x: precisely(x).float()) == {Check.DTYPE}

    def of_float32(x: torch.Tensor) -> torch.Tensor:
        return erfcx(x).float()

    assert checks(of_float32, lambda x: torch.special.erfcx(x.float())) == set()


def first_of_qr(x: torch.Tensor) -> torch.Tensor:
    return torch.geqrf(x)[0]


def test_without_a_kernel_for_meta_a_result_follows_the_arguments_if_it_does_in_float64() -> None:
    def on_device(x: torch.Tensor) -> torch.Tensor:
        return torch.geqrf(x.double())[0].to(x.dtype)

    with pytest.raises(NotImplementedError):
        first_of_qr(torch.ones(2, 3, device="meta"))
    assert checks(first_of_qr, on_device) == set()
    assert checks(first_of_qr, lambda x: on_device(x) * 2) == {Check.VALUE}
    skipped = judged(lambda x: first_of_qr(x).float(), on_device).skipped
    assert skipped == "CPU: NotServed: a result does not follow the dtype of the arguments"


def test_what_torch_refuses_in_halves_everywhere_is_not_judged() -> None:
    assert judged(torch.linalg.inv, precisely, case_of(shape=(2, 2))).skipped.startswith("CPU: NotServed")


@pytest.mark.parametrize(("number", "text"), [(1e30, "too large"), (0.1, "does not have 0.1")])
def test_a_number_that_halves_do_not_have_is_no_argument_of_a_comparison(number: float, text: str) -> None:
    def over(x: torch.Tensor, number: float) -> torch.Tensor:
        return erfcx(x) > number

    assert text in judged(over, over, with_number(number)).skipped
    assert judged(over, lambda x, n: precisely(x) > n, with_number(0.5)).mismatches == []


def test_the_arguments_are_those_that_the_device_gets() -> None:
    """CPU computes with 0.1 rounded to float16, and not with 0.1."""

    def tenths(slot: Any, dtype: str) -> torch.Tensor:
        return (value_of(slot, "float32") / 10).to(getattr(torch, dtype))

    def difference(x: torch.Tensor) -> torch.Tensor:
        return torch.special.erfcx(x) * 0 + (x.float() - x.float().round(decimals=1)).to(x.dtype)

    def on_device(x: torch.Tensor) -> torch.Tensor:
        return (x.float() - x.float().round(decimals=1)).to(x.dtype)

    assert judge(difference, on_device, in_halves(case_of()), FACTS, values=tenths).mismatches == []
