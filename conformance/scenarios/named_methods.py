"""Methods and properties named after a kind of device, such as ``tensor.<device>()`` and ``tensor.is_<device>``.

``torch.utils.generate_methods_for_privateuse1_backend`` makes them for a backend that calls it. CPU has no counterpart:
each property holds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch
from torch.nn.utils.rnn import pack_padded_sequence

from conformance.scenarios.asking import accelerator, another, held, on_device
from conformance.scenarios.model import NotOffered, Results, scenario

T = TypeVar("T")


class _Named:
    """The methods of a device, called with its index or, while the device is current, without."""

    def __init__(self, device: str, *, current: bool) -> None:
        accelerator(device)
        found = torch.device(device)
        self.kind, self.device = found.type, torch.device(found.type, found.index or 0)
        self.current = current

    def to(self, value: T, **options: Any) -> T:
        """Return the result of the method of a value. Raises NotOffered if the value has no such method."""
        method: Callable[..., T] | None = getattr(value, self.kind, None)
        if method is None:
            raise NotOffered(f"{type(value).__name__}.{self.kind}()")
        if not self.current:
            return method(self.device.index, **options)
        with on_device(self.device.index):
            return method(**options)

    def tells(self, value: Any) -> bool:
        """Return whether a value reports that it is on the device. Raises NotOffered if it has no such property."""
        if not hasattr(value, f"is_{self.kind}"):
            raise NotOffered(f"{type(value).__name__}.is_{self.kind}")
        return bool(getattr(value, f"is_{self.kind}"))


def _sends(names: _Named) -> bool:
    host = torch.arange(24.0).reshape(2, 3, 4).transpose(0, 2)[1:]
    there = names.to(host)
    wanted = host.to(names.device)
    same = there.device == names.device, there.stride() == wanted.stride(), torch.equal(there.cpu(), host)
    return all(same)


def _sends_in_another_order(names: _Named) -> bool:
    host = torch.arange(48.0).reshape(2, 3, 2, 4)
    there = names.to(host, memory_format=torch.channels_last)
    arrived = there.device == names.device and there.is_contiguous(memory_format=torch.channels_last)
    return bool(arrived and torch.equal(there.cpu(), host))


def _sends_without_blocking(names: _Named) -> bool:
    host = torch.arange(9)
    there = names.to(host, non_blocking=True)
    return bool(there.device == names.device and torch.equal(there.cpu(), host))


def _keeps_what_is_there(names: _Named) -> bool:
    there: torch.Tensor = torch.ones(3, device=names.device)
    return names.to(there) is there


def _moves_between_devices(names: _Named) -> bool:
    """Return whether a tensor and a module on another device of the kind are moved to the requested one."""
    elsewhere = another(str(names.device))
    x, module = torch.arange(6.0, device=elsewhere).view(2, 3).t(), torch.nn.Linear(2, 3).to(elsewhere)
    there = names.to(x)
    arrived = (there.device == names.device, names.to(module).weight.device == names.device)
    return all((*arrived, there.stride() == x.stride(), torch.equal(there.cpu(), x.cpu())))


def _lets_gradients_through(names: _Named) -> bool:
    host = torch.ones(3, requires_grad=True)
    (names.to(host) * 2).sum().backward()
    return host.grad is not None and all((host.grad.device.type == "cpu", host.grad.tolist() == [2.0, 2.0, 2.0]))


def _tells_where_it_is(names: _Named) -> bool:
    there, host, nowhere = (torch.ones(2, device=d) for d in (names.device, "cpu", "meta"))
    return [names.tells(t) for t in (there, host, nowhere)] == [True, False, False]


def _moves_modules(names: _Named) -> bool:
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    moved = names.to(module)
    state = module.state_dict()
    there = all(value.device == names.device for value in state.values())
    same = moved is module and list(state) == list(before) and all(p.requires_grad for p in module.parameters())
    return there and same and all(torch.equal(state[name].cpu(), value) for name, value in before.items())


def _moves_packed_sequences(names: _Named) -> bool:
    packed = pack_padded_sequence(torch.arange(12.0).reshape(3, 2, 2), torch.tensor([3, 2]))
    there = names.to(packed)
    on_host = there.batch_sizes.device.type == "cpu"  # for any device
    return all((on_host, there.data.device == names.device, torch.equal(there.data.cpu(), packed.data)))


def _copies_storages(names: _Named) -> bool:
    host = torch.arange(5, dtype=torch.int16)
    there = names.to(host.untyped_storage())
    back = torch.empty(0, dtype=torch.int16, device=names.device).set_(there)
    return names.tells(there) and not names.tells(host.untyped_storage()) and torch.equal(back.cpu(), host)


_PROPERTIES = (
    _sends, _sends_in_another_order, _sends_without_blocking, _keeps_what_is_there, _moves_between_devices,
    _lets_gradients_through, _tells_where_it_is, _moves_modules, _moves_packed_sequences, _copies_storages,
)  # fmt: skip


@scenario(exact=True, area="devices", accelerators=True)
def methods_named_after_the_device(device: str) -> Results:
    """``<device>()`` of tensors, modules, packed sequences and storages sends them to the device, named or current."""

    def holds(which: Callable[[_Named], bool], current: bool) -> bool:
        return which(_Named(device, current=current))

    asked = {"by_index": False, "current": True}
    return held(device, {
        f"{which.__name__.strip('_')}.{how}": partial(holds, which, current)
        for which in _PROPERTIES for how, current in asked.items()
    })  # fmt: skip
