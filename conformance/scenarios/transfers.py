"""Copies between the host and the device, and between devices, with sizes and layouts that no sample of an op has."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import permutations, product

import torch

from conformance.scenarios.asking import another
from conformance.scenarios.model import NotOffered, Results, conjugated, name_of, offered, on, scenario

#: Sizes in bytes near which a transfer may be staged, or cut into pieces.
EDGES = (4 << 10, 64 << 10, 1 << 20, 4 << 20)
DTYPES = (torch.uint8, torch.bfloat16, torch.float32, torch.int64, torch.complex128)
#: Conversions from one dtype to another in one call.
CONVERSIONS = (
    (torch.float32, torch.float16), (torch.float16, torch.float32), (torch.float32, torch.bfloat16),
    (torch.int64, torch.float32), (torch.int64, torch.int32), (torch.uint8, torch.int64), (torch.bool, torch.float32),
    (torch.float32, torch.float64), (torch.float32, torch.complex64), (torch.int32, torch.float32),
    (torch.float16, torch.bfloat16),
)  # fmt: skip
_ROWS = 67
#: Numbers of each dtype. Some do not fit into float32, into 32 bits, or into the lowest byte.
_WHOLE = (0, 1, -1, 255, 256, 1 << 16, (1 << 24) + 1, -(1 << 24) - 1, (1 << 31) - 1, -(1 << 31))
_LONG = (*_WHOLE, 1 << 31, 1 << 32, (1 << 40) + 1, (1 << 53) - 1)
_REAL = (0.0, -0.0, 0.1, -2.5, 1e-30, 3e38, *map(float, _WHOLE))
NUMBERS: dict[torch.dtype, tuple[float, ...]] = {
    torch.int32: _WHOLE, torch.int64: _LONG, torch.float32: _REAL, torch.float64: (*_REAL, *map(float, _LONG)),
    torch.complex128: _REAL, torch.bool: (0, 1), torch.int16: (0, 1, -1, 256, -(1 << 15)),
}  # fmt: skip

Layout = Callable[[torch.Tensor], torch.Tensor]

#: Views of a flat tensor, each with about half of its elements, or all.
LAYOUTS: dict[str, Layout] = {
    "dense": lambda flat: flat,
    "offset": lambda flat: flat[1:],
    "strided": lambda flat: flat[::2],
    "transposed": lambda flat: _matrix(flat).t(),
    "gap": lambda flat: _matrix(flat)[:, 2:-1],
    "rows": lambda flat: _matrix(flat)[1::3],
}
#: Layouts of sources only: no copy may write to an expanded view.
SOURCES = LAYOUTS | {"expanded": lambda flat: flat[: flat.numel() // 8].unsqueeze(1).expand(-1, 8)}


#: Parts that broadcast over the view that they are taken from.
PARTS: dict[str, Layout] = {
    "number": lambda view: view.flatten()[3],
    "row": lambda view: view[:1] if view.dim() > 1 else view[1:2],
    "column": lambda view: view[..., 1:2],
}


def _matrix(flat: torch.Tensor) -> torch.Tensor:
    columns = flat.numel() // _ROWS
    return flat[: _ROWS * columns].view(_ROWS, columns)


def _values(size: int, dtype: torch.dtype) -> torch.Tensor:
    """Return values of about ``size`` bytes on the host. Their period is 251, so no block of a power of two repeats."""
    values = (torch.arange(size // dtype.itemsize + 3) % 251).to(dtype)
    return values * (1 - 2j) if dtype.is_complex else values


def _of_each(layouts: dict[str, Layout], made: Callable[[torch.Tensor, Layout], torch.Tensor]) -> Results:
    """Return the results of ``made`` for flat values on the host and each layout.

    All sizes and layouts are tried in float32; one size and three layouts in other dtypes.
    """
    results: Results = {}
    for size in EDGES:
        for name, layout in layouts.items():
            results[f"{size}_{name}"] = offered(partial(made, _values(size, torch.float32), layout))
    for dtype in DTYPES:
        for name in ("dense", "strided", "gap"):
            values = _values(EDGES[1], dtype)
            results[f"{dtype}_{name}".removeprefix("torch.")] = offered(partial(made, values, layouts[name]))
    results["complex64_conjugated"] = offered(partial(made, _values(EDGES[1], torch.complex64), conjugated))
    return results


@scenario(exact=True)
def to_the_host(device: str) -> Results:
    """Return copies on the host of tensors on the device."""
    return _of_each(SOURCES, lambda values, layout: _dense(layout(on(device, values)).cpu()))


@scenario(exact=True)
def to_the_device(device: str) -> Results:
    """Return copies on the device of tensors on the host."""
    return _of_each(SOURCES, lambda values, layout: _dense(on(device, layout(values))))


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    """Return a contiguous copy: on CPU, a transfer to CPU returns its argument itself."""
    return tensor.clone(memory_format=torch.contiguous_format)


@scenario(exact=True)
def into_tensors_of_the_host(device: str) -> Results:
    """Return whole host tensors, of which a view in some layout was overwritten from the device, and dense ones."""

    def made(values: torch.Tensor, layout: Layout) -> torch.Tensor:
        target, source = torch.ones_like(values), layout(on(device, values))
        layout(target).copy_(source)
        return torch.cat((target, torch.zeros(source.shape, dtype=source.dtype).copy_(source).flatten()))

    return _of_each(LAYOUTS, made)


@scenario(exact=True)
def into_tensors_of_the_device(device: str) -> Results:
    """Return whole device tensors, of which a view in some layout was overwritten from the host, and dense ones."""

    def made(values: torch.Tensor, layout: Layout) -> torch.Tensor:
        target, source = on(device, torch.ones_like(values)), layout(values)
        layout(target).copy_(source)
        dense = on(device, torch.zeros(source.shape, dtype=source.dtype)).copy_(source)
        return torch.cat((target, dense.flatten()))

    return _of_each(LAYOUTS, made)


@scenario(exact=True)
def without_blocking(device: str) -> Results:
    """Return what non-blocking copies make on the device of tensors that stay as they are on the host."""
    kept: list[torch.Tensor] = []

    def made(values: torch.Tensor, layout: Layout) -> torch.Tensor:
        kept.append(values)
        there = layout(values).to(device, non_blocking=True)
        view = layout(on(device, torch.zeros_like(values)))
        view.copy_(layout(values), non_blocking=True)
        return torch.stack((_dense(there), _dense(view)))

    results = _of_each(LAYOUTS, made)
    return {name: r.cpu() if isinstance(r, torch.Tensor) else r for name, r in results.items()}  # these copies wait


@scenario(exact=True)
def with_conversion(device: str) -> Results:
    """Return tensors that were converted to another dtype on their way to the device, and back from it."""
    results: Results = {}
    for source, target in CONVERSIONS:
        for name in ("dense", "strided", "transposed"):
            values = _values(EDGES[1], torch.int64).to(source)
            label = f"{source}_{target}_{name}".replace("torch.", "")
            results[f"{label}_up"] = offered(partial(_converted, values, device, LAYOUTS[name], device, target))
            results[f"{label}_down"] = offered(partial(_converted, values, device, LAYOUTS[name], "cpu", target))
    return results


@scenario(exact=True)
def numbers_converted(device: str) -> Results:
    """Return numbers that narrow dtypes do not hold, converted to another dtype on the way to the other side."""
    results: Results = {}
    for source, target in product(NUMBERS, repeat=2):
        held = [n for n in NUMBERS[source] if _holds(target, n)]
        for way, there, to in (("up", "cpu", device), ("down", device, "cpu")):
            made = partial(_converted, torch.tensor(held, dtype=source), there, LAYOUTS["dense"], to, target)
            results[f"{source}_{target}_{way}".replace("torch.", "")] = offered(made)
    return results


def _holds(dtype: torch.dtype, number: float) -> bool:
    """Return whether the conversion of a number to a dtype is defined. For integers, it must be in their range."""
    if dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
        return True
    return bool(torch.iinfo(dtype).min <= number <= torch.iinfo(dtype).max)


@scenario(exact=True)
def sources_of_conversions(device: str) -> Results:
    """Return whole tensors of which a view was converted to another dtype on its way to the other side."""
    results: Results = {}
    for source, target in CONVERSIONS:
        for name, layout in LAYOUTS.items():
            for way, there, to in (("up", "cpu", device), ("down", device, "cpu")):
                made = partial(
                    _left_by_conversion, _values(EDGES[0], torch.int64).to(source), there, layout, to, target
                )
                results[f"{source}_{target}_{name}_{way}".replace("torch.", "")] = offered(made)
    return results


def _left_by_conversion(values: torch.Tensor, there: str, layout: Layout, to: str, dtype: torch.dtype) -> torch.Tensor:
    source = on(there, values.clone())
    layout(source).to(to, dtype)
    return source


def _converted(values: torch.Tensor, device: str, layout: Layout, to: str, dtype: torch.dtype) -> torch.Tensor:
    source = on(device, values) if to == "cpu" else values
    return _dense(layout(source).to(to, dtype))


@scenario(exact=True)
def broadcast(device: str) -> Results:
    """Return whole tensors, of which a view was overwritten from the host or from the device by less than its size."""
    return _broadcast("up", "cpu", device) | _broadcast("down", device, "cpu")


@scenario(exact=True)
def broadcast_between_devices(device: str) -> Results:
    """Return whole tensors, of which a view was overwritten from another device by less than its size."""
    return _broadcast("across", device, another(device))


def _broadcast(way: str, source: str, target: str) -> Results:
    results: Results = {}
    for dtype in (torch.float32, torch.int64):
        for name, layout in LAYOUTS.items():
            for form, part in PARTS.items():
                made = partial(_spread, layout, part, dtype, source, target)
                results[f"{way}_{dtype}_{name}_{form}".replace("torch.", "")] = offered(made)
    return results


def _spread(layout: Layout, part: Layout, dtype: torch.dtype, source: str, target: str) -> torch.Tensor:
    values = _values(EDGES[0], torch.float32)
    whole = on(target, torch.ones(values.shape, dtype=dtype))
    layout(whole).copy_(on(source, part(layout(values)).clone()))
    return whole


@scenario(exact=True)
def between_devices(device: str) -> Results:
    """Return copies on a second device of tensors on the first one, and of parts of them."""
    second = another(device)

    def made(values: torch.Tensor, layout: Layout) -> torch.Tensor:
        target = on(second, torch.zeros_like(values))
        source = on(device, values)
        layout(target).copy_(layout(source))
        dense = on(second, torch.zeros(layout(values).shape, dtype=values.dtype)).copy_(layout(source))
        return torch.cat((target, source.to(second), dense.flatten()))

    results = _of_each(LAYOUTS, made)
    for source, target in CONVERSIONS:
        for name in ("dense", "strided", "transposed"):
            values = on(device, _values(EDGES[1], torch.int64).to(source))
            label = f"{source}_{target}_{name}".replace("torch.", "")
            results[label] = offered(partial(_moved, values, LAYOUTS[name], second, target))
    return results


def _moved(values: torch.Tensor, layout: Layout, to: str, dtype: torch.dtype) -> torch.Tensor:
    return _dense(layout(values).to(to, dtype))


#: Sizes larger than the tiles in which kernels transpose tensors, and not multiples of a tile.
TURNED = ((35, 67), (3, 33, 65), (2, 3, 34, 37))


@scenario(exact=True)
def turned_within_the_device(device: str) -> Results:
    """Return dense copies on the device of tensors with their dimensions in each other order."""

    def made(shape: tuple[int, ...], order: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        values = on(device, _values(math.prod(shape) * dtype.itemsize, dtype)[: math.prod(shape)].view(shape))
        turned = values.permute(order)
        into = torch.zeros_like(values).permute(order).copy_(turned.contiguous())
        return torch.stack((turned.contiguous(), into))

    return {
        f"{len(shape)}_{''.join(map(str, order))}_{dtype}".replace("torch.", ""): offered(
            partial(made, shape, order, dtype)
        )
        for shape in TURNED
        for order in permutations(range(len(shape)))
        for dtype in DTYPES
    }


#: Sizes of a target and of a source that does not broadcast to it. Some pairs have the same number of elements.
MISFITS = (((2, 3), (3, 2)), ((2, 3), (6,)), ((6,), (2, 3)), ((4,), (2, 2)), ((2, 3), (2,)), ((1,), (2,)), ((), (2,)))


@scenario(exact=True)
def shapes_that_do_not_fit(device: str) -> Results:
    """Return whether a copy raises, and leaves its target, if the source does not broadcast to it."""
    ways = {"up": ("cpu", device), "down": (device, "cpu"), "within": (device, device)}

    def refused(source: str, target: str, dtype: torch.dtype) -> torch.Tensor:
        found = []
        for to, of in MISFITS:
            there, here = torch.zeros(to, device=target), torch.ones(of, dtype=dtype, device=source)
            try:
                there.copy_(here)
            except RuntimeError:
                found.append(bool(there.cpu().eq(0).all()))
            else:
                found.append(False)
        return torch.tensor(found)

    return {
        f"{way}_{dtype}".replace("torch.", ""): offered(partial(refused, *places, dtype))
        for way, places in ways.items()
        for dtype in (torch.float32, torch.int64)
    }


#: Views of a tensor of 12 elements in which several indices reach one element.
OVERLAPPING: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "number": lambda t: t[3].expand(5),
    "rows": lambda t: t[:4].expand(3, 4),
    "columns": lambda t: t[2:5, None].expand(3, 2),
    "in_between": lambda t: t[:6].view(2, 1, 3).expand(2, 4, 3),
}


@scenario(exact=True)
def targets_that_overlap(device: str) -> Results:
    """Return whether a copy raises, and leaves its target, if several indices of the target reach one element."""
    places: dict[str, Callable[[], tuple[str, str]]] = {
        "up": lambda: ("cpu", device), "down": lambda: (device, "cpu"), "within": lambda: (device, device),
        "across": lambda: (another(device), device),
    }  # fmt: skip

    def refused(way: str, form: str, dtype: torch.dtype, turned: bool) -> torch.Tensor:
        source, target = places[way]()
        base = torch.zeros(12, device=target)
        there = OVERLAPPING[form](base)
        if 0 not in there.stride():
            raise NotOffered("views in which several indices reach one element")
        here = torch.ones(there.shape[::-1], dtype=dtype, device=source).permute(*reversed(range(there.dim())))
        try:
            there.copy_(here if turned else here.contiguous())
        except RuntimeError:
            return torch.tensor(bool(base.cpu().eq(0).all()))
        return torch.tensor(False)

    return {
        f"{way}.{form}.{name_of(dtype)}{'.turned' if turned else ''}": offered(
            partial(refused, way, form, dtype, turned)
        )
        for way, form, dtype, turned in product(places, OVERLAPPING, (torch.float32, torch.int64), (False, True))
    }
