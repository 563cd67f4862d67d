"""Arithmetic, comparison and choice of two tensors agree with CPU in every dtype, mix of dtypes, and layout."""

from __future__ import annotations

import pytest
import refnpu  # noqa: F401  # brings up the device
import torch
from against_cpu import check
from pointwise import COMPLEX, EVERY, FLOAT8, LAYOUTS, Op, assert_same, name_of, values

aten = torch.ops.aten
PLAIN = """add sub rsub mul div floor_divide remainder fmod pow atan2 hypot copysign maximum minimum fmax fmin eq ne lt
le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift
bitwise_right_shift clamp_min clamp_max __lshift__ __rshift__""".split()
OPS: dict[str, Op] = {name: getattr(aten, name) for name in PLAIN}
OPS |= {
    "div_floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "div_trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "clamp": lambda x, y: torch.clamp(x, y, y),
    "lerp": lambda x, y: torch.lerp(x, y, x),
    "lerp_scalar": lambda x, y: torch.lerp(x, y, 0.7),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=2),
    "addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=2),
    "add_": lambda x, y: x.clone().add_(y),
    "mul_": lambda x, y: x.clone().mul_(y),
    "eq_": lambda x, y: x.clone().eq_(y),
    "where": lambda x, y: torch.where(torch.arange(6, device=x.device) % 2 == 0, x, y),
}
BACKWARD: dict[str, Op] = {
    "sigmoid": aten.sigmoid_backward,
    "tanh": aten.tanh_backward,
    "silu": aten.silu_backward,
    "mish": aten.mish_backward,
    "threshold": lambda g, x: aten.threshold_backward(g, x, 0),
    "leaky_relu": lambda g, x: aten.leaky_relu_backward(g, x, 0.1, False),
    "elu": lambda g, x: aten.elu_backward(g, 2.0, 3.0, 1.5, False, x),
    "elu_result": lambda g, x: aten.elu_backward(g, 2.0, 3.0, 1.5, True, x),
    "hardtanh": lambda g, x: aten.hardtanh_backward(g, x, -1, 1),
    "hardswish": aten.hardswish_backward,
    "softplus": lambda g, x: aten.softplus_backward(g, x, 1, 20),
    "softshrink": lambda g, x: aten.softshrink_backward(g, x, 0.5),
    "hardshrink": lambda g, x: aten.hardshrink_backward(g, x, 0.5),
    "logit": lambda g, x: aten.logit_backward(g, x, 0.1),
}
PAIRS = ["dense dense", "transposed stepped", "expanded offset", "overlapping dense", "zero_dim dense", "empty empty"]
MIXED = ["add", "mul", "div", "eq", "lt", "where", "maximum", "add_", "pow", "logical_and", "atan2", "bitwise_and"]


def laid_out(pair: str, first: torch.Tensor, second: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    one, other = pair.split()
    return LAYOUTS[one](first), LAYOUTS[other](second)


@pytest.mark.parametrize("dtype", EVERY, ids=name_of)
@pytest.mark.parametrize("name", OPS)
def test_binary_ops_equal_cpu(name: str, dtype: torch.dtype) -> None:
    for pair in PAIRS:
        assert_same(OPS[name], *laid_out(pair, values(dtype, seed=3), values(dtype, seed=11)), slack=64)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.float16, torch.float32, torch.complex64], ids=name_of)
@pytest.mark.parametrize("name", BACKWARD)
def test_gradients_of_activations_equal_cpu(name: str, dtype: torch.dtype) -> None:
    finite = values(dtype, seed=11).nan_to_num(0.25)  # at NaN, CPU's answer depends on contiguity
    for pair in PAIRS:
        assert_same(BACKWARD[name], *laid_out(pair, values(dtype, seed=3), finite), slack=64)


@pytest.mark.parametrize("dtype", EVERY, ids=name_of)
@pytest.mark.parametrize("name", MIXED)
def test_binary_ops_promote_dtypes_as_cpu_does(name: str, dtype: torch.dtype) -> None:
    for other in EVERY:
        if FLOAT8[-1] in (dtype, other) or (COMPLEX[0] in (dtype, other) and name == "pow"):
            continue
        if name == "where" and torch.bfloat16 in (dtype, other) and (dtype.is_complex or other.is_complex):
            continue  # a complex dtype of bfloat16 from torch 2.14 on, which the device lacks
        for pair in ("dense transposed", "dense zero_dim"):
            assert_same(OPS[name], *laid_out(pair, values(dtype, seed=3), values(other, seed=5)), slack=64)


@pytest.mark.parametrize("number", [1.5 - 0.5j, 1 + 0j, 1.001 + 0j, 1 + 1e-9j, 2j])
@pytest.mark.parametrize("call", [torch.eq, torch.ne, torch.lt])
def test_comparisons_of_bfloat16_with_a_complex_number_equal_cpu(call: Op, number: complex) -> None:
    x = torch.tensor([1, 1.5, -1, 0, 2], dtype=torch.bfloat16)
    check(call, x, number)
    check(call, x, torch.tensor(number))
    check(call, x[::2], number, out=torch.empty(3))


@pytest.mark.parametrize("scalar", [2, 0, 300, -1, 1.5, 70000.0, 1j], ids=str)
@pytest.mark.parametrize("name", ["add", "mul", "div", "eq", "lt", "ge", "remainder", "floor_divide", "rsub"])
def test_binary_ops_with_a_number_equal_cpu(name: str, scalar: complex) -> None:
    for dtype in EVERY:
        assert_same(lambda x: getattr(aten, name)(x, scalar), values(dtype)[:24].reshape(4, 6), slack=64)


def test_only_a_zero_dim_host_tensor_mixes_with_device_tensors() -> None:
    x = values(torch.float16)[:8]
    assert torch.equal((x.to("npu") * torch.tensor(3)).cpu().nan_to_num(), (x * torch.tensor(3)).nan_to_num())
    with pytest.raises(RuntimeError, match="same device"):
        x.to("npu") + x


@pytest.mark.parametrize("op", [torch.floor_divide, torch.remainder, torch.fmod], ids=lambda op: op.__name__)
def test_integer_division_by_zero_is_an_error(op: Op) -> None:
    x = torch.tensor([4, 5, 6], device="npu")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        op(x, torch.tensor([1, 0, 1], device="npu"))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        op(x, 0)


@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_the_quotient_by_a_number_is_not_that_by_the_rounded_number(mode: str) -> None:
    for dtype in (torch.bfloat16, torch.float16):
        x = torch.linspace(-50, 50, 4001).to(dtype)
        for divisor in (0.3, 1.1, 3.14):
            theirs = torch.div(x, divisor, rounding_mode=mode)
            assert torch.equal(torch.div(x.to("npu"), divisor, rounding_mode=mode).cpu(), theirs), (dtype, divisor)
