"""The backend's own op with a gradient of its own equals its composition on CPU, forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from builds import needs_faults
from refnpu.testing import fault
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.functional import layer_norm, silu

swiglu = torch.ops.npu.swiglu.default


def pair(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(3, 5, dtype=dtype), torch.randn(5, 3, dtype=dtype).t()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_swiglu_and_its_gradients_equal_silu_times_up_on_cpu(dtype: torch.dtype) -> None:
    gate, up = pair(dtype)
    on_cpu = [t.clone().double().requires_grad_() for t in (gate, up)]
    on_npu = [t.to("npu").requires_grad_() for t in (gate, up)]
    expected, result = silu(on_cpu[0]) * on_cpu[1], swiglu(*on_npu)
    weight = torch.randn(3, 5, dtype=dtype)
    expected.backward(weight.double())
    result.backward(weight.to("npu"))
    pairs = [(result, expected), *((npu.grad, cpu.grad) for npu, cpu in zip(on_npu, on_cpu, strict=True))]
    for npu, cpu in pairs:
        torch.testing.assert_close(npu.detach().cpu(), cpu.detach().to(dtype))


def test_the_gradient_of_swiglu_agrees_with_finite_differences() -> None:
    gate, up = (t.to("npu").requires_grad_() for t in pair())
    assert torch.autograd.gradcheck(swiglu, (gate, up))


def test_swiglu_gives_a_gradient_only_to_arguments_that_require_one() -> None:
    gate, up = (t.to("npu") for t in pair())
    assert not swiglu(gate, up).requires_grad
    swiglu(gate, up.requires_grad_()).sum().backward()
    assert gate.grad is None
    assert up.grad is not None


def test_a_second_derivative_of_swiglu_is_refused() -> None:
    gate, up = (t.to("npu").requires_grad_() for t in pair())
    (first,) = torch.autograd.grad(swiglu(gate, up).sum(), gate, create_graph=True)
    with pytest.raises(RuntimeError, match="derivative for npu::swiglu_backward is not implemented"):
        first.sum().backward()


def test_swiglu_refuses_arguments_of_two_shapes_or_dtypes() -> None:
    gate, up = (t.to("npu") for t in pair())
    with pytest.raises(RuntimeError, match=r"swiglu: expected gate and up of one shape, but got \[3, 5\] and \[5\]"):
        swiglu(gate, up[0])
    with pytest.raises(RuntimeError, match="swiglu: expected gate and up of one dtype, but got Double and Float"):
        swiglu(gate, up.float())


def test_swiglu_of_fake_tensors_has_the_shape_of_the_result() -> None:
    with FakeTensorMode():
        gate = torch.empty(3, 5, device="npu")
        assert swiglu(gate, gate).shape == (3, 5)


def gradient(call: Callable[[torch.Tensor], torch.Tensor], device: str) -> torch.Tensor:
    """Return the gradient of the sum of the first result column of a call with [[0, 1, 2], [3, 4, 5]]."""
    x = torch.arange(6.0, device=device).view(2, 3).requires_grad_()
    call(x)[:, 0].sum().backward()
    assert x.grad is not None
    return x.grad.cpu()


@needs_faults
def test_the_fault_log_softmax_saves_softmax_breaks_the_gradient_alone() -> None:
    x = torch.arange(6.0).view(2, 3)
    expected = gradient(lambda t: t.log_softmax(1), "cpu")
    torch.testing.assert_close(gradient(lambda t: t.log_softmax(1), "npu"), expected)
    with fault("log_softmax_saves_softmax"):
        torch.testing.assert_close(x.to("npu").log_softmax(1).cpu(), x.log_softmax(1))
        assert not torch.allclose(gradient(lambda t: t.log_softmax(1), "npu"), expected)


@needs_faults
def test_the_fault_layer_norm_saves_deviation_breaks_the_gradient_alone() -> None:
    x = torch.arange(6.0).view(2, 3)
    expected = gradient(lambda t: layer_norm(t, (3,)).square(), "cpu")
    torch.testing.assert_close(gradient(lambda t: layer_norm(t, (3,)).square(), "npu"), expected, rtol=1e-4, atol=1e-4)
    with fault("layer_norm_saves_deviation"):
        torch.testing.assert_close(layer_norm(x.to("npu"), (3,)).cpu(), layer_norm(x, (3,)))
        assert not torch.allclose(gradient(lambda t: layer_norm(t, (3,)).square(), "npu"), expected, atol=0.1)
