"""Functions of one tensor agree with CPU in every dtype and layout."""

from __future__ import annotations

import itertools

import pytest
import refnpu  # noqa: F401  # brings up the device
import torch
from against_cpu import check
from pointwise import EVERY, LAYOUTS, Op, assert_same, name_of, values

aten = torch.ops.aten
PLAIN = """abs acos acosh asin asinh atan atanh bitwise_not ceil conj_physical cos cosh erf erfc exp exp2 expm1 floor
frac isneginf isposinf isnan isfinite isinf log log10 log1p log2 logical_not logit nan_to_num neg reciprocal
relu round rsqrt sgn sigmoid sign signbit sin sinh sqrt square tan tanh trunc silu mish hardswish hardsigmoid
leaky_relu elu hardtanh softplus softshrink hardshrink""".split()
OPS: dict[str, Op] = {name: getattr(aten, name) for name in PLAIN}
OPS |= {
    "logit_eps": lambda x: aten.logit(x, 0.1),
    "threshold": lambda x: aten.threshold(x, 1, 2),
    "round_up": lambda x: torch.round(x, decimals=1),
    "round_down": lambda x: torch.round(x, decimals=-1),
    "clamp": lambda x: torch.clamp(x, 1, 2),
    "clamp_floats": lambda x: torch.clamp(x, -0.5, 0.5),
    "clamp_crossed": lambda x: torch.clamp(x, 3, 1),
    "clamp_nan": lambda x: torch.clamp(x, float("nan"), 0.5),
    "clamp_min": lambda x: torch.clamp_min(x, 1),
    "clamp_max": lambda x: torch.clamp_max(x, 1),
    **{f"pow_{e}": (lambda x, e=e: torch.pow(x, e)) for e in (0, 1, 2, 3, 0.5, -0.5, -1, -2, 2.5, 4)},
    "power_of_2": lambda x: torch.pow(2, x),
    "power_of_1": lambda x: torch.pow(1, x),
    "exp_": lambda x: x.clone().exp_(),
    "neg_": lambda x: x.clone().neg_(),
    "abs_": lambda x: x.clone().abs_(),
    "relu_": lambda x: x.clone().relu_(),
}


@pytest.mark.parametrize("dtype", EVERY, ids=name_of)
@pytest.mark.parametrize("name", OPS)
def test_unary_ops_equal_cpu(name: str, dtype: torch.dtype) -> None:
    for layout in LAYOUTS.values():
        assert_same(OPS[name], layout(values(dtype)), slack=64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=name_of)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_is_as_near_to_float64_as_cpu(approximate: str, dtype: torch.dtype) -> None:
    x = torch.linspace(-6, 6, 200).to(dtype)
    exact = aten.gelu(x.to(torch.float64), approximate=approximate)
    theirs = (aten.gelu(x, approximate=approximate).double() - exact).abs()
    ours = (aten.gelu(x.to("npu"), approximate=approximate).cpu().double() - exact).abs()
    assert ours.max() <= 2 * theirs.max() + 4 * torch.finfo(dtype).eps


def test_a_strided_out_of_another_dtype_equals_cpu() -> None:
    x, out = values(torch.float32)[:24].reshape(4, 6), torch.full((4, 12), 7.0, dtype=torch.float64)
    device_out = out.to("npu")
    torch.exp(x, out=out[:, ::2])
    torch.exp(x.to("npu"), out=device_out[:, ::2])
    torch.testing.assert_close(device_out.cpu(), out, equal_nan=True, rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64], ids=str)
def test_clamp_takes_and_refuses_bounds_past_the_dtype_as_cpu_does(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 8, 100, 127]).to(dtype)
    bounds = (None, -1000, -5, -1, 3, 300, 2**40, 2**63 - 1, 2**63)
    for low, high in itertools.product(bounds, bounds):
        if low is not None or high is not None:
            check(torch.clamp, x, low, high)
    for bound in bounds[1:]:
        check(torch.clamp_min, x, bound)
        check(torch.clamp_max, x, bound)
