"""A device by its index, by its name and as a ``torch.device``: the functions of ``torch.<device>`` take each form.

CPU has no counterpart. Its results are the expected ones: each property holds. A form that a function refuses is not
offered; a form that it takes must mean the same device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from conformance.scenarios.asking import accelerator, held, module_of, named, on_device
from conformance.scenarios.model import NotOffered, Results, first_line, reloaded, scenario

SECOND = 1  # the device that is named while another one is current
SIZE = 1 << 20  # bytes of a tensor that statistics must count

#: The forms in which a device is named.
FORMS: dict[str, Callable[[str, int], Any]] = {
    "index": lambda _, index: index,
    "name": lambda kind, index: f"{kind}:{index}",
    "device": torch.device,
}
#: Functions of a device's module that take a device, and do not make it the current one.
TAKE_A_DEVICE = (
    "synchronize", "current_stream", "default_stream", "memory_allocated", "memory_reserved", "max_memory_allocated",
    "reset_peak_memory_stats", "memory_stats", "mem_get_info", "get_rng_state", "get_device_properties",
    "get_device_name", "get_device_capability",
)  # fmt: skip
#: Functions that refuse a device of another kind, as the functions of torch's own kinds of devices do.
REFUSE_OTHERS = ("set_device", *(name for name in TAKE_A_DEVICE if name != "get_rng_state"))
#: Devices of another kind, and one of no kind that exists.
OTHERS: dict[str, Any] = {"host": "cpu", "first_of_host": torch.device("cpu", 0), "unknown": "nothing:0"}
#: Returns whether a property holds for a device that is named in one of the forms.
Asked = Callable[[str, Any], bool]


def taken(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of a function. Raises NotOffered if it refuses the arguments, or if a package is missing."""
    try:
        return call(*args, **kwargs)
    except (TypeError, ValueError, RuntimeError, ImportError) as e:
        raise NotOffered(first_line(e)) from e


def _set(kind: str, form: Any) -> bool:
    taken(named(module_of(kind), "set_device"), form)
    return bool(torch.accelerator.current_device_index() == SECOND)


def _in_a_block(kind: str, form: Any) -> bool:
    with taken(named(module_of(kind), "device"), form):
        within = torch.accelerator.current_device_index()
    return bool((within, torch.accelerator.current_device_index()) == (SECOND, 0))


def _synchronized(kind: str, form: Any) -> bool:
    there = torch.ones(1000, device=f"{kind}:{SECOND}").add_(1)
    taken(named(module_of(kind), "synchronize"), form)
    return bool(there.cpu().eq(2).all()) and torch.accelerator.current_device_index() == 0


def _own_stream(kind: str, form: Any) -> bool:
    return bool(taken(named(module_of(kind), "Stream"), device=form).device.index == SECOND)


def _torch_stream(_: str, form: Any) -> bool:
    return bool(taken(torch.Stream, device=form).device.index == SECOND)


def _current_stream(kind: str, form: Any) -> bool:
    return bool(taken(named(module_of(kind), "current_stream"), form).device.index == SECOND)


def _allocated(kind: str, form: Any) -> bool:
    allocated = named(module_of(kind), "memory_allocated")
    before, of_first = taken(allocated, form), allocated(0)
    kept = torch.empty(SIZE, dtype=torch.uint8, device=f"{kind}:{SECOND}")
    return bool(taken(allocated, form) - before >= kept.nbytes and allocated(0) == of_first)


def _peak(kind: str, form: Any) -> bool:
    module = module_of(kind)
    highest, reset, allocated = (
        named(module, name) for name in ("max_memory_allocated", "reset_peak_memory_stats", "memory_allocated")
    )
    kept, freed = (torch.empty(SIZE, dtype=torch.uint8, device=f"{kind}:{SECOND}") for _ in range(2))
    del freed  # the peak is above the memory in use
    taken(reset, form)
    return bool(taken(highest, form) == allocated(SECOND) >= kept.nbytes)


def _rng_state(kind: str, form: Any) -> bool:
    module = module_of(kind)
    get, put = (named(module, name) for name in ("get_rng_state", "set_rng_state"))
    state = taken(get, form)
    drawn = torch.rand(50, device=f"{kind}:{SECOND}").cpu()
    taken(put, state, form)
    return bool(torch.equal(torch.rand(50, device=f"{kind}:{SECOND}").cpu(), drawn))


def _generator(kind: str, form: Any) -> bool:
    generator = taken(torch.Generator, device=form)
    there = f"{kind}:{SECOND}"
    drawn = [torch.rand(50, generator=generator.manual_seed(3), device=there).cpu() for _ in range(2)]
    return bool(generator.device.index == SECOND and torch.equal(*drawn))


def _made_on(_: str, form: Any) -> bool:
    return bool(taken(torch.ones, 2, device=form).device.index == SECOND)


def _moved_to(_: str, form: Any) -> bool:
    return bool(taken(torch.ones(2).to, form).device.index == SECOND)


ASKED: dict[str, Asked] = {
    "set_device": _set, "device": _in_a_block, "synchronize": _synchronized, "Stream": _own_stream,
    "torch.Stream": _torch_stream, "current_stream": _current_stream, "memory_allocated": _allocated,
    "reset_peak_memory_stats": _peak, "get_rng_state": _rng_state, "Generator": _generator, "torch.ones": _made_on,
    "to": _moved_to,
}  # fmt: skip


#: Forms without an index, and the functions above for which such a form means the current device.
KINDS: dict[str, Callable[[str], Any]] = {"name": str, "device": torch.device}
BY_KIND = (
    "Stream", "current_stream", "memory_allocated", "reset_peak_memory_stats", "get_rng_state", "torch.ones", "to",
)  # fmt: skip


#: Calls with the name of a device. Each must raise if the device does not exist.
REFUSED: dict[str, Callable[[str], object]] = {
    "torch.empty": lambda there: torch.empty(2, device=there),
    "to": lambda there: torch.ones(2).to(there),
    "to_from_another_device": lambda there: torch.ones(2, device=there.partition(":")[0]).to(there),
    "load": lambda there: reloaded(torch.ones(2), map_location=there),
    "set_device_index": lambda there: torch.accelerator.set_device_index(torch.device(there).index),
    "set_device": lambda there: named(module_of(there), "set_device")(torch.device(there).index),
    "Stream": torch.Stream,
}


@scenario(exact=True, area="devices", accelerators=True)
def a_device_that_is_not_there(device: str) -> Results:
    """Using a device that does not exist raises an error, and does not change the current device."""

    def refused(call: Callable[[str], object], beyond: int) -> bool:
        accelerator(device)
        there = f"{torch.device(device).type}:{torch.accelerator.device_count() + beyond}"
        before = torch.accelerator.current_device_index()
        try:
            call(there)
        except (NotOffered, NotImplementedError):
            raise
        except Exception:  # noqa: BLE001  # whatever a backend raises
            return bool(torch.accelerator.current_device_index() == before)
        finally:
            torch.accelerator.set_device_index(before)
        return False

    return held(device, {
        f"{name}_{'next' if not beyond else 'far'}": partial(refused, call, beyond)
        for name, call in REFUSED.items()
        for beyond in (0, 60)
    })  # fmt: skip


@scenario(exact=True, area="devices", accelerators=True)
def second_device_by_each_name(device: str) -> Results:
    """A function of the device's module means the same device by its index, its name and its ``torch.device``."""

    def holds(asked: Asked, form: Callable[[str, int], Any]) -> bool:
        accelerator(device)
        kind = torch.device(device).type
        if torch.accelerator.device_count() <= SECOND:
            raise NotOffered("a second device")
        with on_device(0):
            return asked(kind, form(kind, SECOND))

    return held(device, {
        f"{name}_by_{form}": partial(holds, asked, made)
        for name, asked in ASKED.items()
        for form, made in FORMS.items()
    })  # fmt: skip


@scenario(exact=True, area="devices", accelerators=True)
def current_device_by_its_kind(device: str) -> Results:
    """A name without an index means the device that is current, also if another one was in an earlier call."""

    def holds(asked: Asked, form: Callable[[str], Any]) -> bool:
        accelerator(device)
        kind = torch.device(device).type
        if torch.accelerator.device_count() <= SECOND:
            raise NotOffered("a second device")
        with on_device(0):
            asked(kind, form(kind))
        with on_device(SECOND):
            return asked(kind, form(kind))

    return held(device, {
        f"{name}_by_{form}": partial(holds, ASKED[name], made) for name in BY_KIND for form, made in KINDS.items()
    })  # fmt: skip


@scenario(exact=True, area="devices", accelerators=True)
def devices_of_another_kind(device: str) -> Results:
    """A function of ``torch.<device>`` that takes a device refuses one of another kind, and leaves the current one."""

    def refused(name: str, other: Any) -> bool:
        accelerator(device)
        torch.ones(1, device=device)  # a module that is not in use may answer without a look at the device
        ask = named(module_of(device), name)
        last = torch.accelerator.device_count() - 1
        with on_device(last):
            return _refuses(ask, other) and torch.accelerator.current_device_index() == last

    return held(device, {
        f"{name}_of_{other}": partial(refused, name, one) for name in REFUSE_OTHERS for other, one in OTHERS.items()
    })  # fmt: skip


def _refuses(ask: Callable[..., Any], other: Any) -> bool:
    """Return whether a function raises for a device. Raises NotOffered if it is not implemented."""
    try:
        ask(other)
    except NotImplementedError as e:
        raise NotOffered(first_line(e)) from e
    except Exception:  # noqa: BLE001  # whatever a backend raises
        return True
    return False
