"""The backend's kernels for torch's transforms: tangents, batches, functionalized mutations, and fake tensors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from builds import needs_faults
from refnpu.testing import fault
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad

# torch scripts its formulas of tangents at the first use of a tangent.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")

aten = torch.ops.aten
DEVICES = ("cpu", "npu")
X, Y = torch.tensor([[0.5, -1.0, 2.0], [3.0, -0.25, 1.5]]), torch.tensor([[1.0, 2.0, -0.5], [0.75, 4.0, 1.0]])


def tangent(call: Callable[..., torch.Tensor], device: str, *primals: torch.Tensor) -> torch.Tensor:
    """Return the tangent of a call's result. The tangents of each argument are 1, 2, 3, ..."""
    with forward_ad.dual_level():
        along = [torch.arange(1.0, t.numel() + 1).view(t.shape).to(device) for t in primals]
        duals = [forward_ad.make_dual(t.to(device), d) for t, d in zip(primals, along, strict=True)]
        found = forward_ad.unpack_dual(call(*duals)).tangent
        assert found is not None
        return found.cpu()


def celu(x: torch.Tensor) -> torch.Tensor:
    return torch.celu(x, 0.5)


TANGENTS: list[tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]] = [
    (torch.hypot, (X, Y)), (torch.hypot, (X, Y[0])), (celu, (X,)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "arguments"), TANGENTS)
def test_tangents_are_those_of_cpu(call: Callable[..., torch.Tensor], arguments: tuple[torch.Tensor, ...]) -> None:
    cpu, npu = (tangent(call, device, *arguments) for device in DEVICES)
    torch.testing.assert_close(npu, cpu)


def test_a_tangent_of_one_argument_is_that_of_cpu() -> None:
    cpu, npu = (tangent(lambda x, d=device: torch.hypot(Y.to(d), x), device, X) for device in DEVICES)
    torch.testing.assert_close(npu, cpu)


def test_the_product_with_a_zero_tangent_without_memory_is_zero() -> None:
    def products(x: torch.Tensor) -> torch.Tensor:
        return torch.dot(x, torch.ones(3, device=x.device)) + torch.vdot(torch.ones(3, device=x.device), x)

    assert tangent(products, "npu", X[0]) == tangent(products, "cpu", X[0]) == 12


def test_gradients_of_ops_with_tangents_of_the_backend_are_those_of_torch() -> None:
    gradients = []
    for device in DEVICES:
        x, y = (t.detach().to(device).requires_grad_() for t in (X, Y))
        (torch.hypot(x, y) * celu(x)).sum().backward()
        gradients.append([t.grad.cpu() for t in (x, y) if t.grad is not None])
    torch.testing.assert_close(*gradients)


def summed(x: torch.Tensor) -> torch.Tensor:
    return aten._logcumsumexp(x, 0)


def gamma_gradients(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return aten._standard_gamma_grad(x.abs(), y.abs())


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_a_batch_gives_what_its_members_give(dim: int) -> None:
    for call, arguments in ((summed, (X,)), (gamma_gradients, (X, Y))):
        members = [call(*pair) for pair in zip(*(t.unbind(dim) for t in arguments), strict=True)]
        found = torch.vmap(call, dim)(*(t.to("npu") for t in arguments))
        torch.testing.assert_close(found.cpu(), torch.stack(members))


def test_a_batch_with_an_argument_for_all_members_and_a_batch_of_batches() -> None:
    x, y = X.to("npu"), Y.to("npu")
    one = torch.vmap(gamma_gradients, (0, None))(x, y[0])
    torch.testing.assert_close(one.cpu(), torch.stack([gamma_gradients(row, Y[0]) for row in X]))
    nested = torch.vmap(torch.vmap(gamma_gradients))(x, y)
    torch.testing.assert_close(nested.cpu(), gamma_gradients(X, Y))


def functional(call: Callable[..., object], *arguments: torch.Tensor) -> list[torch.Tensor]:
    """Return the values of the arguments on the device after a functionalized call."""
    on_npu = [t.to("npu") for t in arguments]
    torch.func.functionalize(call)(*on_npu)
    return [t.cpu() for t in on_npu]


def cummax(x: torch.Tensor, values: torch.Tensor, indices: torch.Tensor) -> None:
    aten._cummax_helper(x, values, indices, 1)


EMPTIES = (torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.int64))


def test_functionalized_mutations_arrive() -> None:
    torch.testing.assert_close(functional(lambda t: t.polygamma_(1), X)[0], X.polygamma(1))
    torch.testing.assert_close(functional(lambda t: t[0].polygamma_(1), X)[0][0], X[0].polygamma(1))
    _, values, indices = functional(cummax, X, *EMPTIES)
    assert [values.tolist(), indices.tolist()] == [t.tolist() for t in X.cummax(1)]


def test_a_functionalized_polygamma_of_integers_is_refused() -> None:
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        functional(lambda t: t.polygamma_(1), torch.ones(2, dtype=torch.int64))


def predicted(call: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> tuple[object, ...]:
    """Return the size, stride, dtype and device of the result of a call with fake tensors of the device."""
    FakeTensorMode.cache_clear()  # drops predictions from before a fault was awake
    with FakeTensorMode(allow_fallback_kernels=False):
        fakes = [torch.empty(t.shape, dtype=t.dtype, device="npu") for t in arguments]
        found = call(*fakes)
        return found.shape, found.stride(), found.dtype, found.device.type


@pytest.mark.parametrize(("call", "arguments"), [(summed, (X,)), (gamma_gradients, (X, Y[0]))])
def test_fake_tensors_predict_the_result(
    call: Callable[..., torch.Tensor], arguments: tuple[torch.Tensor, ...]
) -> None:
    real = call(*(t.to("npu") for t in arguments))
    assert predicted(call, *arguments) == (real.shape, real.stride(), real.dtype, "npu")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_a_generator_goes_on_where_it_was(copied: Callable[[torch.Generator], torch.Generator]) -> None:
    generator = torch.Generator("npu").manual_seed(7)
    torch.rand(5, device="npu", generator=generator)
    other = copied(generator)
    first, second = (torch.rand(5, device="npu", generator=g).cpu() for g in (generator, other))
    assert torch.equal(first, second)


@needs_faults
def test_faults_of_tangents_change_tangents_alone() -> None:
    for name, call, arguments in (
        ("hypot_jvp_of_first_argument", torch.hypot, (X, Y)),
        ("hypot_jvp_of_second_alone", lambda y: torch.hypot(X.to(y.device), y), (Y,)),
        ("celu_jvp_of_negative_side", celu, (X,)),
    ):  # fmt: skip
        with fault(name):
            torch.testing.assert_close(call(*(t.to("npu") for t in arguments)).cpu(), call(*arguments))
            assert not torch.allclose(tangent(call, "npu", *arguments), tangent(call, "cpu", *arguments))


def gradients(
    call: Callable[..., torch.Tensor], device: str, x: torch.Tensor, y: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradient of a call with respect to its first argument, and that of the squares of this gradient."""
    x, y = x.detach().to(device).requires_grad_(), y.to(device)
    (first,) = torch.autograd.grad(call(x, y).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), x)
    return first.detach().cpu(), second.cpu()


def batch_of_gradients(
    call: Callable[..., torch.Tensor], device: str, x: torch.Tensor, y: torch.Tensor
) -> torch.Tensor:
    """Return the gradients of a call with respect to its first argument, for a batch of two gradients of its result."""
    x, y = x.detach().to(device).requires_grad_(), y.to(device)
    result = call(x, y)
    given = torch.stack([torch.ones_like(result), torch.full_like(result, 2)])
    (found,) = torch.autograd.grad(result, x, given, is_grads_batched=True)
    return found.cpu()


def celu_times(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return celu(x) * (x + y)


@pytest.mark.parametrize("call", [torch.hypot, celu_times])
def test_second_gradients_and_batches_of_gradients_are_those_of_cpu(call: Callable[..., torch.Tensor]) -> None:
    torch.testing.assert_close(gradients(call, "npu", X, Y), gradients(call, "cpu", X, Y))
    torch.testing.assert_close(batch_of_gradients(call, "npu", X, Y), batch_of_gradients(call, "cpu", X, Y))


@needs_faults
@pytest.mark.parametrize(
    ("name", "call"), [("celu_gradient_of_detached", celu_times), ("hypot_gradient_of_detached", torch.hypot)]
)
def test_faults_of_second_gradients_leave_first_gradients_right(name: str, call: Callable[..., torch.Tensor]) -> None:
    right = gradients(call, "cpu", X, Y)
    with fault(name):
        first, second = gradients(call, "npu", X, Y)
    torch.testing.assert_close(first, right[0])
    assert not torch.allclose(second, right[1])


@needs_faults
@pytest.mark.parametrize(
    ("name", "call", "message"),
    [
        ("celu_gradient_written_in_place", celu_times, "vmap: aten::copy_"),
        ("hypot_gradient_asks_number", torch.hypot, "aten::item"),
    ],
)
def test_faults_of_batches_of_gradients_leave_other_gradients_right(
    name: str, call: Callable[..., torch.Tensor], message: str
) -> None:
    with fault(name):
        torch.testing.assert_close(gradients(call, "npu", X, Y), gradients(call, "cpu", X, Y))
        with pytest.raises(RuntimeError, match=message):
            batch_of_gradients(call, "npu", X, Y)


@needs_faults
def test_faults_of_batching_rules_change_batches_alone() -> None:
    x, y = X.to("npu"), Y.to("npu")
    with fault("logcumsumexp_batch_dim_counted"):
        torch.testing.assert_close(summed(x).cpu(), summed(X))
        assert not torch.allclose(torch.vmap(summed)(x).cpu(), torch.stack([summed(row) for row in X]))
    with fault("gamma_grad_batch_in_front"):
        torch.testing.assert_close(torch.vmap(gamma_gradients)(x, y).cpu(), gamma_gradients(X, Y))
        with pytest.raises(RuntimeError, match="size of tensor"):
            torch.vmap(gamma_gradients, 1)(x, y)


@needs_faults
def test_faults_of_functionalized_ops_lose_a_mutation() -> None:
    with fault("polygamma_mutation_lost"):
        assert torch.equal(functional(lambda t: t.polygamma_(1), X)[0], X)
        torch.testing.assert_close(X.to("npu").polygamma_(1).cpu(), X.polygamma(1))
    with fault("cumulative_indices_not_functional"):
        _, values, indices = functional(cummax, X, *EMPTIES)
        assert torch.equal(values, X.cummax(1)[0])
        assert not indices.any()


@needs_faults
def test_faults_of_kernels_for_meta_change_the_prediction() -> None:
    with fault("logcumsumexp_meta_transposed"):
        assert predicted(summed, X)[1] == (1, 2)
    with fault("gamma_grad_meta_in_double"):
        assert predicted(gamma_gradients, X, Y)[2] is torch.float64


@needs_faults
def test_faults_of_modes_of_autograd_show_under_no_grad() -> None:
    leaf = X.to("npu").requires_grad_()
    with torch.no_grad():
        assert not celu(leaf).requires_grad
        assert leaf.fill_(1.0) is leaf
        with fault("celu_records_without_grad_mode"):
            assert celu(leaf).requires_grad
        with fault("fill_refuses_leaf"), pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            leaf.fill_(1.0)


@needs_faults
def test_faults_of_storages_that_are_set_show_in_copies() -> None:
    number, nothing = torch.tensor(2.0, device="npu"), torch.empty(0, 3, device="npu")
    with fault("set_storage_of_number_as_row"):
        assert copy.deepcopy(number).shape == (1,)
    with fault("set_storage_empty_keeps_size"):
        assert pickle.loads(pickle.dumps(nothing)).shape == (0,)
