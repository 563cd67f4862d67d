"""Results in small float dtypes that are all rounded in one direction, or that are computed in the small dtype."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformance import ops
from conformance.judging.judge import CaseResult
from conformance.judging.rounding import directed, may_be_directed
from conformance.vocabulary import Check, Fact
from tests.two_sides import case_of, judge

Op = Callable[[torch.Tensor], torch.Tensor]

NUMBERS = torch.randn(64, 17, generator=torch.Generator().manual_seed(5))
HALVES = (torch.bfloat16, torch.float16)


def judged(right: Op, wrong: Op, op: str, dtype: torch.dtype, numbers: torch.Tensor = NUMBERS) -> CaseResult:
    case = case_of(dtype=str(dtype).removeprefix("torch."), shape=tuple(numbers.shape))
    return judge(right, wrong, case, ops.facts(op), values=lambda slot, _: numbers.to(dtype))


def cut(op: Op) -> Op:
    """Return the op with its float32 result truncated to the dtype of the argument."""

    def cutting(x: torch.Tensor) -> torch.Tensor:
        return down_to(op(x.float()), x.dtype)

    return cutting


def down_to(wide: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the nearest numbers of ``dtype`` that are not larger in magnitude."""
    near = wide.to(dtype)
    return torch.where(near.double().abs() > wide.double().abs(), torch.nextafter(near, torch.zeros_like(near)), near)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(("name", "op"), [("exp", torch.exp), ("silu", torch.nn.functional.silu)])
def test_a_result_that_is_cut_fails_and_one_that_is_rounded_passes(name: str, op: Op, dtype: torch.dtype) -> None:
    (found,) = judged(op, cut(op), name, dtype).mismatches
    assert (found.check, found.kind, found.facts["direction"]) == (Check.VALUE, Fact.ROUNDING, "toward zero")
    assert 0.4 < found.facts["mean"] < 0.6
    assert abs(found.facts["cpu"]) < 0.1
    assert not judged(op, lambda x: op(x.double()).to(x.dtype), name, dtype).mismatches


@pytest.mark.parametrize("op", [torch.exp, torch.tanh, torch.sigmoid], ids=lambda op: op.__name__)
def test_results_that_are_cut_are_found_among_many_that_need_no_rounding(op: Op) -> None:
    """Of all bit patterns, most give 0, 1, NaN, an infinity or nearly the argument."""
    every = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    cpu, wide = op(every.float()).bfloat16(), op(every.double())
    off = cut(op)(every)
    assert (off != cpu).float().mean() < 0.1
    assert may_be_directed(cpu, off)
    found = directed(cpu, off, wide)
    assert found
    assert found["direction"] == "toward zero"
    assert not may_be_directed(cpu, cpu)
    assert directed(cpu, cpu, wide) is None


def test_a_result_in_float32_may_lie_on_one_side() -> None:
    assert not judged(torch.exp, lambda x: torch.exp(x) * (1 - 2**-23), "exp", torch.float32).mismatches


@pytest.mark.parametrize("seed", range(8))
def test_results_with_an_error_of_a_unit_in_both_directions_are_not_directed(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    true = torch.randn(4096, dtype=torch.float64, generator=draw)
    off = (true * (1 + 2**-8 * (torch.rand(4096, dtype=torch.float64, generator=draw) * 2 - 1))).bfloat16()
    assert directed(true.bfloat16(), off, true) is None


def test_numbers_that_are_not_rounded_or_that_repeat_are_not_judged() -> None:
    whole = torch.arange(1.0, 257).double()
    assert directed(whole.bfloat16(), (whole - 1).bfloat16(), whole) is None
    true = torch.full((4096,), 1 + 2**-9, dtype=torch.float64)
    assert directed(true.bfloat16(), (true + 2**-7).bfloat16(), true) is None


def test_no_reference_is_asked_where_elements_differ_in_both_directions() -> None:
    cpu = torch.arange(1.0, 1025).bfloat16()
    off = cpu * (1 + 2**-7 * (2 * (torch.arange(1024) % 2) - 1))
    assert not may_be_directed(cpu, off.bfloat16())
    assert may_be_directed(cpu, (cpu * (1 - 2**-7)).bfloat16())


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def forgetful_softmax(x: torch.Tensor) -> torch.Tensor:
    """Return softmax without its small terms."""
    found = softmax(x)
    return torch.where(found < found.amax(-1, keepdim=True) / 20, 0, found)


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    return torch.layer_norm(x, [x.shape[-1]])


def unbiased_norm(x: torch.Tensor) -> torch.Tensor:
    x = x.float()
    return ((x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt()).bfloat16()


def product(x: torch.Tensor) -> torch.Tensor:
    return x @ x.mT


def product_of_float8(x: torch.Tensor) -> torch.Tensor:
    return product(x.to(torch.float8_e4m3fn).to(x.dtype))


def gelu_by_sigmoid(x: torch.Tensor) -> torch.Tensor:
    return (x.float() * torch.sigmoid(1.702 * x.float())).to(x.dtype)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("softmax", softmax, forgetful_softmax),
        ("layer_norm", layer_norm, unbiased_norm),
        ("mm", product, product_of_float8),
        ("gelu", torch.nn.functional.gelu, gelu_by_sigmoid),
    ],
)
def test_a_small_float_is_computed_in_float32(name: str, right: Op, wrong: Op) -> None:
    assert judged(right, wrong, name, torch.bfloat16).mismatches
    assert not judged(right, lambda x: right(x.float()).bfloat16(), name, torch.bfloat16).mismatches


def test_a_long_product_is_not_summed_in_the_small_float() -> None:
    def squares(x: torch.Tensor) -> torch.Tensor:
        return x.T @ x

    def summed_in_bfloat16(x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(x.shape[1], x.shape[1], dtype=x.dtype)
        for row in x:
            total += row.unsqueeze(-1) * row
        return total

    columns = torch.rand(2000, 5, generator=torch.Generator().manual_seed(1))
    assert judged(squares, summed_in_bfloat16, "mm", torch.bfloat16, columns).mismatches
    assert not judged(squares, lambda x: squares(x.float()).bfloat16(), "mm", torch.bfloat16, columns).mismatches


def test_a_few_steps_may_be_rounded_to_the_small_float() -> None:
    def in_steps(x: torch.Tensor) -> torch.Tensor:
        x = (x - x.float().mean(-1, keepdim=True)).bfloat16()
        return x * (x.float().square().mean(-1, keepdim=True) + 1e-5).rsqrt().bfloat16()

    assert not judged(layer_norm, in_steps, "layer_norm", torch.bfloat16).mismatches
