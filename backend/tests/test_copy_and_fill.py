"""Copies, fills and masked_fill agree with CPU: every direction, dtype, layout, pending bit, and refusal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import refnpu  # noqa: F401  # brings up the device
import torch
from pointwise import COMPLEX, EVERY, LAYOUTS, assert_same, name_of, twin, values, wide

TARGETS = {name: LAYOUTS[name] for name in ("dense", "transposed", "stepped", "offset")}


@pytest.mark.parametrize("to", EVERY, ids=name_of)
def test_conversions_between_all_dtypes_equal_cpu(to: torch.dtype) -> None:
    for dtype in EVERY:
        source = values(dtype)
        if dtype.is_floating_point and not to.is_floating_point and not to.is_complex:
            source = values(torch.int8).to(dtype)  # C++ does not define conversions out of range
        assert_same(lambda x: x.to(to), LAYOUTS["stepped"](source))


@pytest.mark.parametrize("dtype", EVERY, ids=name_of)
def test_copies_between_host_and_devices_equal_cpu_in_every_layout(dtype: torch.dtype) -> None:
    for source_layout in LAYOUTS.values():
        source = source_layout(values(dtype))
        for target_layout in TARGETS.values():
            target = target_layout(values(dtype, seed=9)).clone()
            if source.dim() > 0 and source.shape != target.shape:
                continue
            expected = wide(target.clone().copy_(source))
            for start in (source, twin(source), twin(source).to("npu:1")):
                for end in (target.clone(), twin(target), twin(target).to("npu:1")):
                    assert torch.equal(wide(end.copy_(start)).nan_to_num(), expected.nan_to_num())


@pytest.mark.parametrize("dtype", COMPLEX[1:], ids=name_of)
def test_copies_resolve_conj_and_neg_bits(dtype: torch.dtype) -> None:
    host = values(dtype)[:24].reshape(4, 6)
    device = host.to("npu")
    views: list[Callable[[torch.Tensor], torch.Tensor]] = [
        lambda x: x.conj(),
        torch._neg_view,
        lambda x: torch._neg_view(x).conj().t(),
        lambda x: x.conj().imag,
    ]
    for view in views:
        expected = wide(view(host))
        assert torch.equal(wide(view(host).to("npu")), expected)
        for got in (view(device).cpu(), view(device).clone(), view(device).to("npu:1"), view(device) * 1):
            assert torch.equal(wide(got), expected)
        assert torch.equal(wide(torch.zeros_like(host, device="npu").conj().copy_(host)), wide(host))


@pytest.mark.parametrize("dtype", EVERY, ids=name_of)
def test_fill_and_masked_fill_equal_cpu(dtype: torch.dtype) -> None:
    mask = torch.arange(6) % 2 == 0
    for layout in TARGETS.values():
        x = layout(values(dtype))
        for value in (2, 300, 1.5, True, 1j, float("inf")):
            assert_same(lambda t, value=value: t.clone().fill_(value), x)
            assert_same(lambda t, m, value=value: t.masked_fill(m, value), x, mask.expand(4, 6))
            assert_same(lambda t, m, value=value: t.clone().masked_fill_(m, value), x, mask)
        assert_same(lambda t: t.clone().zero_(), x)
        assert_same(lambda t, m: t.masked_fill(m, torch.tensor(2, device=t.device)), x, mask)
        assert_same(lambda t, m: t.masked_fill(m, 2), x, mask.to(torch.uint8))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.uint64, torch.float32, torch.bool], ids=name_of)
def test_fill_with_numbers_that_int64_cannot_hold_equals_cpu(dtype: torch.dtype) -> None:
    for value in (2**64 - 1, 2**63, -(2**63)):
        assert_same(lambda t, value=value: t.clone().fill_(value), values(dtype))


def test_fill_and_masked_fill_leave_gaps_as_they_are() -> None:
    base = torch.zeros(4, 12, device="npu")
    base[:, ::2].fill_(1)
    base[:, ::3].masked_fill_(torch.ones(4, dtype=torch.bool, device="npu"), 2)
    expected = torch.zeros(4, 12)
    expected[:, ::2] = 1
    expected[:, ::3] = 2
    assert torch.equal(base.cpu(), expected)


def masked_by_itself(mask: torch.Tensor) -> torch.Tensor:
    return mask[1:].masked_fill_(mask[:-1], 1)


REFUSED: dict[str, Callable[[torch.Tensor], object]] = {
    "in place on an expanded tensor": lambda x: x[:1].expand(3).add_(1),
    "copy into an expanded tensor": lambda x: x[:1].expand(3).copy_(x[:3]),
    "copy between partly overlapping tensors": lambda x: x[1:].copy_(x[:-1]),
    "output partly overlapping an input": lambda x: torch.exp(x[1:], out=x[:-1]),
    "mask partly overlapping self": lambda x: masked_by_itself(x > 2),
    "mask of another dtype": lambda x: x.masked_fill_(x, 1),
    "a value of one dimension": lambda x: x.masked_fill_(x > 1, x[:1]),
    "a value that overflows": lambda x: x.to(torch.uint8).fill_(300),
    "an output that would lose digits": lambda x: torch.add(x, x, out=x.to(torch.int32)),
    "an in-place result that would lose digits": lambda x: x.to(torch.int32).add_(1.5),
    "a source that does not broadcast": lambda x: x[:3].copy_(x[:2]),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_copies_and_fills_that_cpu_refuses_raise_the_same_type(reason: str) -> None:
    caught = []
    for device in ("cpu", "npu"):
        with pytest.raises(Exception) as info:  # noqa: PT011  # the type is what is compared
            REFUSED[reason](torch.arange(5.0, device=device))
        caught.append(info.type)
    assert caught[0] == caught[1]
