"""Operands on several devices, and results on another device than the arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial

import torch
from torch.nn import functional

from conformance.scenarios.asking import accelerator, another, held, module_of, named, on_device
from conformance.scenarios.busy_streams import synchronize
from conformance.scenarios.model import NotOffered, Results, laid_out, needs, offered, scenario

Call = Callable[[torch.Tensor, torch.Tensor], object]
_attention = functional.scaled_dot_product_attention

#: Second operands, and calls of a row of as many floats with one of them.
_OPERANDS = {"floats": torch.ones(3), "indices": torch.tensor([0, 2, 1]), "mask": torch.tensor([True, False, True])}
_OF_TWO: dict[str, tuple[str, Call]] = {
    "add": ("floats", torch.add),
    "dot": ("floats", torch.dot),
    "mv": ("floats", lambda a, b: torch.mv(a.expand(3, 3), b)),
    "mm": ("floats", lambda a, b: a[None] @ b[:, None]),
    "addmm": ("floats", lambda a, b: torch.addmm(a, a.expand(3, 3), b.expand(3, 3))),
    "bmm": ("floats", lambda a, b: torch.bmm(a.expand(1, 3, 3), b.expand(1, 3, 3))),
    "linear": ("floats", lambda a, b: functional.linear(a, b[None])),
    "layer_norm": ("floats", lambda a, b: functional.layer_norm(a, (3,), b, b)),
    "cross_entropy": ("indices", lambda a, b: functional.cross_entropy(a.expand(3, 3), b)),
    "cat": ("floats", lambda a, b: torch.cat((a, b))),
    "where": ("floats", lambda a, b: torch.where(a > 0, a, b)),
    "gather": ("indices", lambda a, b: a.gather(0, b)),
    "scatter": ("indices", lambda a, b: a.scatter(0, b, 1.0)),
    "index_select": ("indices", lambda a, b: a.index_select(0, b)),
    "index_add": ("indices", lambda a, b: a.index_add(0, b, a)),
    "take": ("indices", torch.take),
    "masked_select": ("mask", torch.masked_select),
    "masked_fill": ("mask", lambda a, b: a.masked_fill(b, 1.0)),
    "lerp": ("floats", lambda a, b: torch.lerp(a, b, 0.5)),
    "cross": ("floats", torch.linalg.cross),
    "cdist": ("floats", lambda a, b: torch.cdist(a[None], b[None])),
    "searchsorted": ("floats", torch.searchsorted),
    "heaviside": ("floats", torch.heaviside),
}
_MORE_OF_TWO: dict[str, tuple[str, Call]] = {
    "mul": ("floats", torch.mul),
    "add_": ("floats", lambda a, b: a.clone().add_(b)),
    "addcmul": ("floats", lambda a, b: torch.addcmul(a, a, b)),
    "outer": ("floats", torch.outer),
    "stack": ("floats", lambda a, b: torch.stack((a, b))),
    "attention": ("floats", lambda a, b: _attention(*(x.view(1, 1, 1, 3) for x in (a, b, b)))),
    "mse_loss": ("floats", functional.mse_loss),
    "embedding": ("indices", lambda a, b: functional.embedding(b, a[:, None])),
    "scatter_add": ("indices", lambda a, b: a.scatter_add(0, b, a)),
    "index_copy": ("indices", lambda a, b: a.index_copy(0, b, a)),
    "out": ("floats", lambda a, b: torch.add(a, 1, out=b.clone())),
    "out_of_sum": ("floats", lambda a, b: torch.sum(a[None], 0, out=b.clone())),
    "out_of_mv": ("floats", lambda a, b: torch.mv(a.expand(3, 3), a, out=b.clone())),
}


@scenario(exact=True, area="devices", accelerators=True)
def operands_of_two_devices(device: str) -> Results:
    """A call with operands on two devices of a kind raises an error: no op but a copy reads another device's memory."""

    def raises(operand: str, call: Call) -> bool:
        kind = torch.device(device).type
        if named(module_of(device), "device_count")() == 1:
            raise NotOffered(f"a second device of {kind}")
        here, there = torch.ones(3, device=f"{kind}:0"), _OPERANDS[operand].to(f"{kind}:1")
        try:
            call(here, there)
        except RuntimeError:
            return True
        return False

    return held(device, {name: partial(raises, *of) for name, of in _OF_TWO.items()})


@scenario(exact=True, area="devices", accelerators=True)
def operands_on_both_sides(device: str) -> Results:
    """A call with operands on the host and on the device raises an error, or computes what it would on one of them."""

    def is_right(operand: str, call: Call, host_first: bool) -> bool:
        a, b = torch.ones(3), _OPERANDS[operand]
        given = (a, b.to(device)) if host_first else (a.to(device), b)
        try:
            found = call(*given)
        except RuntimeError:
            return True
        wanted = call(a, b)
        if not isinstance(wanted, torch.Tensor) or not isinstance(found, torch.Tensor):
            return bool(found == wanted)
        return bool(found.shape == wanted.shape and torch.allclose(found.cpu(), wanted))

    return held(device, {
        f"{name}_{'host' if host_first else 'device'}_first": partial(is_right, *of, host_first)
        for name, of in {**_OF_TWO, **_MORE_OF_TWO}.items()
        for host_first in (False, True)
    })  # fmt: skip


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dense": lambda t: t,
    "channels_last": lambda t: t.to(memory_format=torch.channels_last),
    "transposed": lambda t: t.transpose(1, 3),
    "every_second": lambda t: t[..., ::2],
    "part": lambda t: t[1:, :2],
    "expanded": lambda t: t[:1].expand(3, 3, 4, 5),
    "permuted_part": lambda t: t[:, :, 1:].permute(3, 0, 2, 1),
    "number": lambda t: t[1, 2, 3, 4],
    "nothing": lambda t: t[2:],
    "conjugated": lambda t: torch.complex(t, t).conj(),
}
Making = Callable[[torch.Tensor, str], torch.Tensor]
#: Calls whose results have the layout of the argument, on a device that is named.
LIKE: dict[str, Making] = {
    "to": lambda x, there: x.to(there, copy=True),
    "to_without_blocking": lambda x, there: x.to(there, copy=True, non_blocking=True),
    "to_in_complex64": lambda x, there: x.to(there, torch.complex64, copy=True),
    "to_contiguous": lambda x, there: x.to(there, copy=True, memory_format=torch.contiguous_format),
    "to_other": lambda x, there: x.to(torch.empty(1, dtype=x.dtype, device=there), copy=True),
    "zeros_like": lambda x, there: torch.zeros_like(x, device=there),
    "ones_like": lambda x, there: torch.ones_like(x, device=there),
    "full_like": lambda x, there: torch.full_like(x, 3, dtype=torch.int32, device=there),
    "empty_like": lambda x, there: torch.empty_like(x, device=there).fill_(2),
    "rand_like": lambda x, there: torch.rand_like(x, device=there) * 0,
    "randint_like": lambda x, there: torch.randint_like(x.real, 5, 6, device=there),
}
#: Calls whose results have a layout of their own.
NEW: dict[str, Making] = {
    "to_channels_last": lambda x, there: x.to(there, copy=True, memory_format=torch.channels_last),
    "new_zeros": lambda x, there: x.new_zeros((2, 3), device=there),
    "new_ones": lambda x, there: x.new_ones((2, 3), device=there),
    "new_full": lambda x, there: x.new_full((2, 3), 5, device=there),
    "new_empty": lambda x, there: x.new_empty((2, 3), device=there).fill_(1),
    "new_empty_strided": lambda x, there: x.new_empty_strided((2, 3), (1, 2), device=there).fill_(1),
    "new_tensor": lambda x, there: x.new_tensor([1, 2], device=there),
    "tensor": lambda x, there: torch.tensor(x, device=there),
    "as_tensor": lambda x, there: torch.as_tensor(x, dtype=torch.float16, device=there),
    "asarray": lambda x, there: torch.asarray(x, device=there, copy=True),
}


@scenario(exact=True, area="devices")
def made_on_another_device(device: str) -> Results:
    """A call that names a device has its result there, wherever its argument is, with the strides that CPU gives it."""

    def made(call: Making, form: str, source: Callable[[], str], target: Callable[[], str]) -> torch.Tensor:
        here, there = source(), target()
        if form == "conjugated" and there != "meta":
            needs(here, "conjugate")
        x = LAYOUTS[form](torch.arange(120.0).view(2, 3, 4, 5).to(here))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about ``torch.tensor`` of a tensor
            found = call(x, there)
        synchronize(device)  # for a copy that does not block
        wanted = torch.device(there)
        arrived = found.device.type == wanted.type and wanted.index in (None, found.device.index)
        if wanted.type == "meta":
            return torch.tensor([arrived, *found.shape, *found.stride()])
        numbers = laid_out(there, arrived, found.is_conj(), *found.shape, *found.stride(), found.storage_offset())
        if isinstance(numbers, NotOffered):
            raise numbers
        values = torch.view_as_real(found.cpu().resolve_conj().to(torch.complex64)).flatten()
        return torch.cat([numbers.float(), values])

    ways: dict[str, tuple[Callable[[], str], Callable[[], str]]] = {
        "up": (lambda: "cpu", lambda: device), "down": (lambda: device, lambda: "cpu"),
        "across": (lambda: device, partial(another, device)), "to_meta": (lambda: device, lambda: "meta"),
    }  # fmt: skip
    calls = [(name, call, form) for name, call in LIKE.items() for form in LAYOUTS]
    calls += [(name, call, "dense") for name, call in NEW.items()]
    return {
        f"{name}.{form}.{way}": offered(partial(made, call, form, *ends))
        for name, call, form in calls
        for way, ends in ways.items()
    }


#: Calls that make a tensor from numbers alone, on a device that is named.
FACTORIES: dict[str, Callable[[str], torch.Tensor]] = {
    "empty": lambda there: torch.empty(2, 3, device=there),
    "empty_channels_last": lambda there: torch.empty(1, 2, 2, 2, memory_format=torch.channels_last, device=there),
    "empty_strided": lambda there: torch.empty_strided((2, 3), (1, 2), device=there),
    "empty_permuted": lambda there: torch.empty_permuted((2, 3), (1, 0), device=there),
    "zeros": lambda there: torch.zeros(2, 3, device=there),
    "ones": lambda there: torch.ones(2, 3, device=there),
    "full": lambda there: torch.full((2, 3), 7, device=there),
    "scalar_tensor": lambda there: torch.scalar_tensor(3, device=there),
    "eye": lambda there: torch.eye(3, 4, device=there),
    "arange": lambda there: torch.arange(5, device=there),
    "linspace": lambda there: torch.linspace(0, 1, 5, device=there),
    "logspace": lambda there: torch.logspace(0, 1, 5, device=there),
    "tril_indices": lambda there: torch.tril_indices(3, 4, device=there),
    "triu_indices": lambda there: torch.triu_indices(3, 4, device=there),
    "rand": lambda there: torch.rand(5, device=there),
    "randn": lambda there: torch.randn(5, device=there),
    "randint": lambda there: torch.randint(9, (5,), device=there),
    "randperm": lambda there: torch.randperm(5, device=there),
    "normal": lambda there: torch.normal(0.0, 1.0, (5,), device=there),
    "bartlett_window": lambda there: torch.bartlett_window(6, device=there),
    "blackman_window": lambda there: torch.blackman_window(6, device=there),
    "hamming_window": lambda there: torch.hamming_window(6, device=there),
    "hann_window": lambda there: torch.hann_window(6, device=there),
    "kaiser_window": lambda there: torch.kaiser_window(6, device=there),
    "kaiser_window_of_a_shape": lambda there: torch.kaiser_window(6, periodic=False, beta=3.0, device=there),
    "signal_cosine": lambda there: torch.signal.windows.cosine(6, device=there),
    "signal_kaiser": lambda there: torch.signal.windows.kaiser(6, device=there),
    "fftfreq": lambda there: torch.fft.fftfreq(6, device=there),
    "rfftfreq": lambda there: torch.fft.rfftfreq(6, device=there),
    "module": lambda there: torch.nn.Linear(2, 3, device=there).weight.detach(),
}


@contextmanager
def _elsewhere(device: str) -> Iterator[None]:
    """Make another device of the kind current, and restore the previous one. On CPU do nothing. Raises NotOffered."""
    if device == "cpu":
        yield
        return
    accelerator(device)
    with on_device(torch.device(another(device)).index):
        yield


@scenario(exact=True, area="devices")
def factories_on_a_named_device(device: str) -> Results:
    """A call that makes a tensor on a device that is named makes it there, whichever device is current."""

    def made(factory: Callable[[str], torch.Tensor], elsewhere: bool) -> torch.Tensor:
        there = torch.device(device)
        with _elsewhere(device) if elsewhere else nullcontext():
            found = factory(device)
        on_host = factory("cpu")
        is_there = found.device.type == there.type and (there.index is None or found.device.index == there.index)
        return torch.tensor([is_there, found.dtype == on_host.dtype, found.shape == on_host.shape])

    return {
        f"{name}{'.elsewhere' if elsewhere else ''}": offered(partial(made, factory, elsewhere))
        for name, factory in FACTORIES.items()
        for elsewhere in (False, True)
    }
