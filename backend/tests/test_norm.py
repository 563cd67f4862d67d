"""Layer norm and RMS norm, and their gradients, equal CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from against_cpu import FLOATS, LAYOUTS, check, values
from test_reduce import compare

aten: Any = torch.ops.aten


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layer_norm_equals_cpu(dtype: torch.dtype, layout: str) -> None:
    place = LAYOUTS[layout]
    for shape, normal in (((2, 3, 5), [5]), ((2, 3, 5), [3, 5]), ((4,), [4]), ((0, 3), [3]), ((3, 0), [0])):
        self, weight, bias = place(values(*shape, dtype=dtype)), values(*normal, dtype=dtype), values(*normal).to(dtype)
        for w, b in ((weight, bias), (weight, None), (None, bias), (None, None)):
            compare(aten.native_layer_norm, self, normal, w, b, 1e-3)
            compare(torch.nn.functional.layer_norm, self, normal, w, b)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradient_of_layer_norm_equals_cpu(dtype: torch.dtype, layout: str) -> None:
    self, grad = (LAYOUTS[layout](values(2, 3, 5, dtype=dtype, seed=s)) / 4 for s in (0, 5))
    weight, bias = values(5, dtype=dtype), values(5, dtype=dtype, seed=2)
    mean, rstd = aten.native_layer_norm(self, [5], weight, bias, 1e-3)[1:]
    for mask in ([True, True, True], [True, False, False], [False, True, True]):
        args = (grad, self, [5], mean, rstd, weight, bias, mask)
        compare(lambda *a: [t for t in aten.native_layer_norm_backward(*a) if t is not None], *args)
    compare(
        lambda *a: aten.native_layer_norm_backward(*a)[0], grad, self, [5], mean, rstd, None, None, [True] + [False] * 2
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_layer_norm_of_half_input_with_float_parameters_equals_cpu(dtype: torch.dtype) -> None:
    compare(aten.native_layer_norm, values(3, 4, dtype=dtype), [4], values(4), values(4), 1e-5)
    check(aten.native_layer_norm, values(3, 4, dtype=dtype), [4], values(4, dtype=torch.float64), None, 1e-5)


def test_layer_norm_of_wrong_shapes_raises_as_on_cpu() -> None:
    check(aten.native_layer_norm, values(3, 4), [3], None, None, 1e-5)
    check(aten.native_layer_norm, values(3, 4), [], None, None, 1e-5)
    check(aten.native_layer_norm, values(3, 4), [4], values(3), None, 1e-5)
    check(aten.native_layer_norm, values(4), [2, 4], None, None, 1e-5)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex64], ids=str)
def test_rms_norm_and_its_gradient_equal_cpu(dtype: torch.dtype) -> None:
    def gradients(x: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        out = torch.nn.functional.rms_norm(x, [4], w, 1e-3)
        out.abs().sum().backward()
        return [out.detach(), x.grad, w.grad]  # type: ignore[list-item]

    compare(gradients, values(3, 4, dtype=dtype, seed=1), values(4, dtype=dtype))
