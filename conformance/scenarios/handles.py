"""Tensors as handles: their values as Python numbers, tensors whose data is replaced, and swapped tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any

import torch

from conformance.scenarios.model import Results, conjugated, laid_out, negated, offered, on, scenario

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
INTEGERS = (
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64,
)  # fmt: skip
COMPLEX = (torch.complex32, torch.complex64, torch.complex128)


def _samples() -> dict[torch.dtype, torch.Tensor]:
    """Return CPU tensors with values at the ends of each dtype's range and between, by dtype."""
    samples = {torch.bool: torch.tensor([False, True, True])}
    for dtype in FLOATS:
        info = torch.finfo(dtype)
        ends = [info.min, info.max, info.tiny, info.smallest_normal / 2, info.eps, -0.0, 0.1, float("inf"), -1.5]
        samples[dtype] = torch.tensor([*ends, float("nan")], dtype=torch.float64).to(dtype)
    for dtype in EIGHT_BITS:
        samples[dtype] = torch.arange(256).to(torch.uint8).view(dtype)
    for dtype in INTEGERS:
        limits = torch.iinfo(dtype)
        samples[dtype] = torch.tensor([limits.min, limits.max, 0, 1, limits.max // 3], dtype=dtype)
    for dtype in COMPLEX:
        parts = samples[{torch.complex32: torch.float16, torch.complex64: torch.float32}.get(dtype, torch.float64)]
        samples[dtype] = torch.view_as_complex(torch.stack([parts, parts.flip(0)], -1).contiguous())
    return samples


def _number(value: Any) -> list[int]:
    """Return the type and the bits of a Python number, as integers."""
    if isinstance(value, complex):
        return [3, *_number(value.real), *_number(value.imag)]
    if isinstance(value, float):
        return [2, int(torch.tensor(value, dtype=torch.float64).view(torch.int64))] if value == value else [2, -1]
    kind = 0 if isinstance(value, bool) else 4 if value < 0 else 1
    return [kind, value - (1 << 64) if value >= 1 << 63 else value]


def _read(form: Callable[[str, torch.Tensor], list[Any]], device: str, values: torch.Tensor) -> torch.Tensor:
    return _numbers(form(device, values))


def _numbers(values: list[Any]) -> torch.Tensor:
    return torch.tensor([_number(value) for value in values])


@scenario(exact=True)
def items(device: str) -> Results:
    """Return ``item()`` of each element of each dtype: of a tensor without dimensions, of a view, and of ``tolist``."""
    results: Results = {}
    for dtype, values in _samples().items():
        for form, numbers in _FORMS.items():
            name = f"{str(dtype).removeprefix('torch.')}_{form}"
            results[name] = offered(partial(_read, numbers, device, values))
    return results


# Ways to get Python numbers from a tensor.
_FORMS: dict[str, Callable[[str, torch.Tensor], list[Any]]] = {
    "whole": lambda device, values: [on(device, one.clone()).item() for one in values],
    "view": lambda device, values: [one.item() for one in on(device, values)],
    "list": lambda device, values: on(device, values).tolist(),
    "four_dims": lambda device, values: [on(device, values)[:1].view(1, 1, 1, 1).item()],
}


@scenario(exact=True)
def items_of_lazy_views(device: str) -> Results:
    """Return ``item()`` of conjugated, negated, expanded and transposed tensors, and the conversions of Python."""
    complexes = torch.tensor([1 + 2j, -3.5 - 0.0j])
    table = torch.arange(6.0).view(2, 3)
    return {
        "conjugated": offered(lambda: _numbers([one.item() for one in conjugated(on(device, complexes))])),
        "imaginary_of_conjugated": offered(lambda: _numbers(negated(on(device, complexes)).tolist())),
        "transposed": _numbers([one.item() for row in table.to(device).t() for one in row]),
        "transposed_list": _numbers([one for row in table.to(device).t().tolist() for one in row]),
        "expanded": _numbers([one.item() for one in table[0, 1].to(device).expand(3)]),
        "conversions": _numbers([convert(table[1, 2].to(device)) for convert in (int, float, bool)]),
        "complex": _numbers([complex(table[1, 2].to(device))]),
        "index": _numbers([[10, 11, 12][torch.tensor(2, device=device)]]),
        "format": _numbers([float(f"{table[1, 0].to(device):.2f}")]),
    }


#: Ways to read the number of a tensor without dimensions.
_READS: dict[str, Callable[[torch.Tensor], float]] = {
    "item": lambda x: float(x.item()),
    "list": lambda x: float(x.tolist()),
    "host": lambda x: float(x.cpu().numpy()),
    "condition": lambda x: float(bool(x > 4)),
}


def _over(x: torch.Tensor) -> torch.Tensor:
    """Return another tensor over the storage of a tensor without dimensions, which shares nothing else with it."""
    return torch.empty(0, dtype=x.dtype, device=x.device).set_(x.untyped_storage(), x.storage_offset(), (), ())


#: Ways to write 5 to a tensor without dimensions.
_WRITES: dict[str, Callable[[torch.Tensor], object]] = {
    "fill_": lambda x: x.fill_(5),
    "copy_": lambda x: x.copy_(torch.tensor(5.0)),
    "index": lambda x: x.__setitem__((), 5.0),
    "view": lambda x: x.view(1)[0].fill_(5),
    "detached": lambda x: x.detach().fill_(5),
    "data": lambda x: x.data.fill_(5),
    "data_exchanged": lambda x: setattr(x, "data", torch.full_like(x, 5)),
    "storage": lambda x: _over(x).fill_(5),
    "storage_copied": lambda x: x.untyped_storage().copy_(torch.full_like(x, 5).untyped_storage()),
    "set_": lambda x: x.set_(torch.full_like(x, 5)),
    "out": lambda x: torch.add(torch.full_like(x, 2), 3, out=x),
    "optimizer": lambda x: _stepped(x, -5.0),
    "other_thread": lambda x: _in_a_thread(lambda: x.data.fill_(5)),
}


def _stepped(x: torch.Tensor, gradient: float) -> None:
    """Subtract a gradient by an optimizer that updates a list of tensors in one call."""
    x.grad = torch.full_like(x, gradient)
    torch.optim.SGD([x], lr=1.0, foreach=True).step()


def _in_a_thread(call: Callable[[], object]) -> None:
    thread = Thread(target=call)
    thread.start()
    thread.join()


@scenario(exact=True)
def read_after_each_write(device: str) -> Results:
    """Return a number that was read before and after it was written, for each way to write and to read."""

    def read(write: Callable[[torch.Tensor], object], form: Callable[[torch.Tensor], float]) -> torch.Tensor:
        x = torch.zeros((), device=device)
        before = form(x)
        write(x)
        return torch.tensor([before, form(x)])

    return {
        f"{written}_{form}": offered(partial(read, write, number))
        for written, write in _WRITES.items()
        for form, number in _READS.items()
    }


@scenario(exact=True)
def data_exchanged(device: str) -> Results:
    """Return a tensor whose ``data`` was replaced, its views, and what it shares afterwards."""
    weight = torch.nn.Parameter(torch.arange(6.0, device=device).view(2, 3))
    view, other = weight.detach()[1], torch.arange(10.0, 22.0, device=device)
    weight.data = other.view(3, 4)[1:, 1:]
    place = laid_out(device, *weight.stride(), weight.storage_offset())
    kept = torch.tensor([*weight.shape, weight.is_leaf])
    weight.data.add_(100)
    (weight * weight).sum().backward()
    assert weight.grad is not None  # backward sets it
    return {
        "place": place, "kept": kept, "values": weight.detach(), "source": other, "old_view": view,
        "gradient": weight.grad,
        "requires_grad": torch.tensor([weight.requires_grad, weight.data.requires_grad]),
        "detached_shares": laid_out(device, weight.detach().untyped_storage().nbytes()),
    }  # fmt: skip


@scenario(exact=True)
def tensors_swapped(device: str) -> Results:
    """Return two tensors after ``torch.utils.swap_tensors``, where they lie, and the swapped weights of a module."""
    one = torch.arange(4.0, device=device)
    two = torch.arange(12, device=device).view(3, 4)[1:].t()
    torch.utils.swap_tensors(one, two)
    one.add_(1)
    results: Results = {
        "one": one, "two": two,
        "shapes": torch.tensor([*one.shape, *two.shape]),
        "places": laid_out(device, *one.stride(), one.storage_offset(), *two.stride()),
    }  # fmt: skip
    results.update(_module_converted(device))
    return results


def _module_converted(device: str) -> Results:
    """Return the weights of a module converted by swapping, and whether its parameters are the same objects."""
    module = torch.nn.Linear(3, 2)
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(torch.arange(parameter.numel()).view(parameter.shape) + 10 * number)
    before = list(map(id, module.parameters()))
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        module.to(device).to(torch.float16)
        after = list(map(id, module.parameters()))
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    return {
        "same_parameters": torch.tensor(before == after), "weight": module.weight.detach(), "bias": module.bias.detach()
    }  # fmt: skip
