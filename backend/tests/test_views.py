"""Views and metadata: no element is touched, and nothing falls back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import refnpu
import torch

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "view": lambda x: x.view(4, 6),
    "view_dtype": lambda x: x.view(torch.int32),
    "as_strided": lambda x: x.as_strided((2, 2), (3, 1), 5),
    "transpose": lambda x: x.transpose(0, 2),
    "permute": lambda x: x.permute(2, 0, 1),
    "expand": lambda x: x[:1].expand(5, 3, 4),
    "select": lambda x: x[1],
    "slice": lambda x: x[:, 1:, ::2],
    "unfold": lambda x: x.unfold(2, 2, 1),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x[:1].squeeze(0),
    "split": lambda x: x.split(1, 1)[2],
    "chunk": lambda x: x.chunk(2)[1],
    "reshape": lambda x: x.reshape(24),
    "movedim": lambda x: x.movedim(0, 2),
    "detach": torch.detach,
    "alias": torch.ops.aten.alias,
    "reshape_alias": lambda x: torch.ops.aten._reshape_alias(x, (6, 4), (4, 1)),
    "view_as_complex": lambda x: torch.view_as_complex(x.view(12, 2)),
    "real_of_complex": lambda x: torch.view_as_real(torch.view_as_complex(x.view(12, 2))),
    "conj": lambda x: torch.view_as_complex(x.view(12, 2)).conj(),
    "neg_view": torch._neg_view,
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "unbind": lambda x: x.unbind(1)[1],
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_the_geometry_and_storage_that_it_has_on_cpu(name: str) -> None:
    cpu = torch.arange(24.0).view(2, 3, 4)
    npu = cpu.npu()
    refnpu.reset_counters()
    expected, view = VIEWS[name](cpu), VIEWS[name](npu)
    assert refnpu.counters()["fallback"] == {}
    assert (view.size(), view.stride(), view.storage_offset()) == (
        expected.size(), expected.stride(), expected.storage_offset()
    )  # fmt: skip
    assert view.dtype == expected.dtype
    assert (view.is_conj(), view.is_neg()) == (expected.is_conj(), expected.is_neg())
    assert view.untyped_storage().data_ptr() == npu.untyped_storage().data_ptr()


def test_resize_grows_a_storage_and_keeps_its_contents() -> None:
    x = torch.arange(4.0, device="npu")
    x.resize_(2, 4)
    assert x.untyped_storage().nbytes() == 32
    assert x.flatten()[:4].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_resize_to_fewer_elements_keeps_the_storage() -> None:
    x = torch.ones(8, device="npu")
    pointer = x.data_ptr()
    x.resize_(2)
    assert (x.data_ptr(), x.untyped_storage().nbytes()) == (pointer, 32)


def test_resize_accepts_a_memory_format() -> None:
    x = torch.empty(0, device="npu").resize_(1, 2, 3, 4, memory_format=torch.channels_last)
    assert x.is_contiguous(memory_format=torch.channels_last)


def test_set_makes_a_tensor_share_another_storage() -> None:
    x = torch.arange(6.0, device="npu")
    y = torch.empty(0, device="npu").set_(x.untyped_storage(), 2, (2, 2), (2, 1))
    assert y.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert torch.empty(0, device="npu").set_(x).is_set_to(x)
    assert x.set_().untyped_storage().nbytes() == 0


WRITES: dict[str, Callable[[torch.Tensor], object]] = {
    "cat": lambda t: torch.cat([torch.ones(4, device=t.device)], out=t),
    "softmax": lambda t: torch.softmax(torch.ones(4, device=t.device), 0, out=t),
    "sort": lambda t: torch.sort(torch.ones(4, device=t.device), out=(t, torch.empty_like(t, dtype=torch.int64))),
    "scatter": lambda t: t.scatter_(0, torch.tensor([0], device=t.device), 1.0),
    "index_put": lambda t: t.index_put_((torch.tensor([0], device=t.device),), torch.ones(1, device=t.device)),
    "uniform": lambda t: t.uniform_(1, 2),
    "fill": lambda t: t.fill_(1),
}


@pytest.mark.parametrize("device", ["npu:0", "npu:1"])
@pytest.mark.parametrize("write", WRITES)
def test_an_op_that_writes_a_lazy_clone_leaves_the_original(write: str, device: str) -> None:
    x = torch.zeros(4, device=device)
    clone = torch._lazy_clone(x)
    WRITES[write](clone)
    assert x.tolist() == [0, 0, 0, 0]
    assert clone.tolist() != [0, 0, 0, 0]


def test_a_lazy_clone_that_is_read_stays_one() -> None:
    clone = torch._lazy_clone(torch.zeros(4, device="npu"))
    torch.empty(4, 2, device="npu")[:, 0].copy_(clone)
    assert (clone + 1).cpu().tolist() == [1, 1, 1, 1]
    assert torch._C._is_cow_tensor(clone)


def test_npu_and_privateuseone_name_the_same_device() -> None:
    assert torch.empty(1, device="npu:1").device == torch.empty(1, device="privateuseone:1").device
    assert torch.empty(1, device="npu").device == torch.device("npu", 0)


def test_empty_accepts_dtypes_strides_and_memory_formats() -> None:
    assert torch.empty(2, 3, dtype=torch.float8_e5m2, device="npu").dtype == torch.float8_e5m2
    assert torch.empty_strided((2, 3), (1, 2), device="npu").stride() == (1, 2)
    nhwc = torch.empty(1, 2, 3, 4, device="npu", memory_format=torch.channels_last)
    assert nhwc.stride() == (24, 1, 8, 2)
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.empty(-1, device="npu")


def test_item_reads_a_scalar_from_the_device() -> None:
    assert torch.tensor([1.5, 2.5], device="npu")[1].item() == 2.5
    assert torch.tensor(True, device="npu").item() is True
    assert torch.tensor(1 + 2j, device="npu").conj().item() == 1 - 2j


def test_writing_a_view_of_a_view_keeps_the_gradient() -> None:
    x = torch.zeros(3, 4, device="npu", requires_grad=True)
    y = x * 1
    y[1].view(2, 2)[0].add_(1)
    y.sum().backward()
    assert x.grad.cpu().tolist() == torch.ones(3, 4).tolist()


def test_a_zero_gradient_takes_no_memory() -> None:
    x = torch.randn(3, 4, device="npu", requires_grad=True)
    (zeros,) = torch.autograd.grad(torch.sgn(x).sum(), x)
    assert (zeros._is_zerotensor(), zeros.device, zeros.data_ptr()) == (True, x.device, 0)
    assert zeros.cpu().tolist() == torch.zeros(3, 4).tolist()
    assert (zeros + x).tolist() == x.tolist()
    assert (zeros * x)._is_zerotensor()
