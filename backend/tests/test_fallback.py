"""The boxed fallback: it has the CPU op's effects on arguments and memory on the device too."""

from __future__ import annotations

import pytest
import refnpu.testing
import torch

aten = torch.ops.aten


def on_npu(storage: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return a device tensor in a copy of `storage`, with the size, stride and offset of `like`."""
    copy = torch.empty(like.untyped_storage().nbytes() // like.itemsize, dtype=like.dtype, device="npu")
    copy.copy_(storage)
    return copy.as_strided(like.size(), like.stride(), like.storage_offset())


def fallbacks(overload: str) -> int:
    return refnpu.counters()["fallback"].get(overload, 0)


@pytest.mark.usefixtures("no_leak")
def test_the_fallback_copies_back_written_arguments_without_their_gaps() -> None:
    storage = torch.arange(24.0)
    view = storage.as_strided((3, 2), (8, 3), 1)
    device = on_npu(storage, view)
    before = fallbacks("erfinv.out")
    torch.erfinv(view / 100, out=view)
    torch.erfinv(device / 100, out=device)
    whole = torch.empty(0, device="npu").set_(device.untyped_storage())
    assert torch.equal(whole.cpu(), storage)
    assert fallbacks("erfinv.out") == before + 1


def test_arguments_of_the_fallback_share_storages_as_on_the_device() -> None:
    cpu = torch.arange(6.0)
    npu = cpu.npu()
    torch.lgamma(cpu[:3], out=cpu[3:])
    torch.lgamma(npu[:3], out=npu[3:])
    assert torch.equal(npu.cpu(), cpu)


def test_a_view_made_by_the_fallback_aliases_the_device_tensor() -> None:
    x = torch.arange(6.0, device="npu")
    y = aten.unfold.default(x, 0, 2, 2)
    assert y.data_ptr() == x.data_ptr()
    y.fill_(7)
    assert x.tolist() == [7.0] * 6


def test_an_in_place_op_through_the_fallback_returns_its_argument() -> None:
    x = torch.rand(4, device="npu")
    assert x.erfinv_() is x


def test_the_fallback_resizes_an_empty_out() -> None:
    x, out = torch.rand(3, 3), torch.empty(0, device="npu")
    result = torch.linalg.inv(x.npu(), out=out)
    assert result is out
    assert torch.equal(out.cpu(), torch.linalg.inv(x))
    assert out.stride() == torch.linalg.inv(x, out=torch.empty(0)).stride()


def test_results_of_the_fallback_have_the_strides_and_storage_size_of_cpu() -> None:
    x = torch.randn(3, 4).t()
    cpu, npu = torch.erfinv(x), torch.erfinv(x.npu())
    assert npu.stride() == cpu.stride()
    assert npu.untyped_storage().nbytes() == cpu.untyped_storage().nbytes()


def test_the_fallback_takes_lists_and_optional_and_undefined_tensors() -> None:
    x = torch.randn(4, 3)
    left, right = aten.native_group_norm(x.npu().view(1, 4, 3), None, None, 1, 4, 3, 2, 1e-5)[:2]
    assert left.device == right.device == torch.device("npu:0")
    assert torch.equal(torch.block_diag(x.npu(), x.npu()).cpu(), torch.block_diag(x, x))
    _, grad_weight, none = aten.convolution_backward(
        *(t.npu() for t in (torch.ones(1, 1, 2), torch.ones(1, 1, 3), torch.ones(1, 1, 2))),
        None, [1], [0], [1], False, [0], 1, [False, True, False],
    )  # fmt: skip
    assert grad_weight.device.type == "npu"
    assert none is None


def test_batch_norm_through_the_fallback_updates_its_statistics() -> None:
    cpu = torch.nn.BatchNorm1d(3)
    npu = torch.nn.BatchNorm1d(3).npu()
    x = torch.randn(5, 3)
    cpu(x), npu(x.npu())
    assert torch.equal(npu.running_mean.cpu(), cpu.running_mean)
    assert torch.equal(npu.running_var.cpu(), cpu.running_var)


@pytest.mark.usefixtures("no_leak")
def test_the_fallback_raises_the_exception_type_of_cpu() -> None:
    x = torch.ones(3)
    for call in (
        lambda t: torch.lgamma(t, out=torch.empty(3, dtype=torch.int64, device=t.device)),
        torch.linalg.inv,
        lambda t: torch.unique(t, dim=4),
    ):
        with pytest.raises((RuntimeError, IndexError)) as cpu:
            call(x)
        with pytest.raises(type(cpu.value)):
            call(x.npu())
        del cpu


def test_the_fallback_copies_back_what_an_op_did_before_it_raised() -> None:
    wrong = torch.zeros(2, 2)
    outs = torch.empty(0), torch.empty(0, device="npu")
    for x, out in ((wrong, outs[0]), (wrong.npu(), outs[1])):
        with pytest.raises(RuntimeError):
            torch.linalg.inv(x, out=out)
    assert outs[0].shape == outs[1].shape == (2, 2)


def test_the_fallback_refuses_tensors_of_two_devices() -> None:
    with pytest.raises(RuntimeError, match=r"Expected all tensors to be on the same device.*npu:0.*npu:1"):
        torch.dist(torch.ones(3, device="npu:0"), torch.ones(3, device="npu:1"))


def test_the_fallback_takes_a_zero_dim_cpu_tensor_with_device_tensors() -> None:
    result = torch.heaviside(torch.tensor([-1.0, 0.0], device="npu"), torch.tensor(0.5))
    assert result.device.type == "npu"
    assert result.tolist() == [0.0, 0.5]


def test_the_fallback_refuses_a_sparse_result_with_advice() -> None:
    with pytest.raises(NotImplementedError, match=r"the result is a sparse or opaque tensor.*run the op on CPU"):
        torch.eye(3, device="npu").to_sparse()


def test_the_fallback_refuses_a_quantized_result() -> None:
    with pytest.raises(NotImplementedError, match="the result is a quantized tensor"):
        torch.quantize_per_tensor(torch.ones(3, device="npu"), 0.1, 0, torch.qint8)


def test_results_of_the_fallback_are_on_the_device_of_its_arguments() -> None:
    x = torch.rand(3, device="npu:1")
    assert torch.erfinv(x).device == torch.device("npu:1")
    assert torch.erfinv(x).cpu().tolist() == torch.erfinv(x.cpu()).tolist()


def test_the_fallback_passes_conj_bits_to_cpu() -> None:
    x = torch.tensor([1 + 2j, 3 - 4j])
    assert torch.equal(torch.linalg.vander(x.npu().conj()).cpu(), torch.linalg.vander(x.conj()))


def test_the_fallback_keeps_the_conj_bit_that_cpu_gives_an_out() -> None:
    a, b = torch.randn(2, 3, 3, dtype=torch.complex64)
    factors, pivots = torch.linalg.lu_factor(a)
    expected = torch.linalg.lu_solve(factors, pivots, b, left=False, adjoint=True)
    result = torch.linalg.lu_solve(factors.npu(), pivots.npu(), b.npu(), left=False, adjoint=True)
    assert result.is_conj() == expected.is_conj()
    assert torch.equal(result.cpu(), expected)


def test_gradients_flow_through_the_fallback() -> None:
    x = torch.rand(3, requires_grad=True)
    y = x.detach().npu().requires_grad_()
    torch.erfinv(x).sum().backward()
    torch.erfinv(y).sum().backward()
    # The gradient's formula calls exp, whose native kernel may round differently from CPU's vectorized one.
    torch.testing.assert_close(y.grad.cpu(), x.grad)
    assert y.grad.device.type == "npu"


def test_the_fallback_increments_the_version_of_a_written_argument() -> None:
    x = torch.rand(3, device="npu")
    before = x._version
    x.erfinv_()
    assert x._version == before + 1


def test_a_random_op_draws_from_the_generator_of_the_device() -> None:
    rates = torch.full((50,), 3.0, device="npu")
    torch.npu.manual_seed_all(1)
    first = torch.poisson(rates)
    torch.npu.manual_seed_all(1)
    assert torch.equal(torch.poisson(rates).cpu(), first.cpu())
    assert not torch.equal(torch.poisson(rates).cpu(), first.cpu())


def test_dropout_draws_from_the_generator_of_the_device_alone() -> None:
    host_state = torch.get_rng_state()
    x = torch.ones(64, device="npu")
    torch.npu.manual_seed_all(1)
    first = torch.native_dropout(x, 0.5, True)[0]
    torch.npu.manual_seed_all(1)
    assert torch.equal(torch.native_dropout(x, 0.5, True)[0].cpu(), first.cpu())
    assert torch.equal(torch.get_rng_state(), host_state)


def test_a_cpu_generator_is_refused_for_a_device_tensor() -> None:
    with pytest.raises(RuntimeError, match="Expected a 'npu' device type for generator but found 'cpu'"):
        torch.poisson(torch.ones(2, device="npu"), generator=torch.Generator())


def test_convolutions_and_their_gradients_equal_cpu() -> None:
    cpu = torch.nn.Conv2d(2, 3, 3)
    npu = torch.nn.Conv2d(2, 3, 3).npu()
    npu.load_state_dict(cpu.state_dict())
    x = torch.randn(1, 2, 6, 6)
    cpu(x).sum().backward()
    result = npu(x.npu())
    result.sum().backward()
    assert torch.equal(result.cpu(), cpu(x))
    assert torch.equal(npu.weight.grad.cpu(), cpu.weight.grad)
    assert torch.equal(npu.bias.grad.cpu(), cpu.bias.grad)
