"""Calls about one device while another one is current: seeds, generators, streams, storages, the current device.

CPU has no counterpart. Its results are the expected ones: each property holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from conformance.scenarios.asking import accelerator, current, held, module_of, named, on_device
from conformance.scenarios.device_names import ASKED, TAKE_A_DEVICE, Asked, taken
from conformance.scenarios.model import NotOffered, Results, scenario
from conformance.torch_versions import seeds

MANY = 100  # draws: the chance that two streams agree in all of them is negligible
BYTES = 1 << 16  # bytes of a tensor

#: Functions of ``torch.accelerator`` that take a device, and do not make it the current one.
OF_THE_ACCELERATOR = (
    "synchronize", "current_stream", "memory_allocated", "memory_reserved", "max_memory_allocated",
    "max_memory_reserved", "memory_stats", "reset_peak_memory_stats", "get_memory_info", "get_device_capability",
)  # fmt: skip
#: The properties that are asked of a device by the name of its kind alone.
WITHOUT_INDEX = (
    "torch.ones", "to", "torch.Stream", "Stream", "current_stream", "get_rng_state", "memory_allocated",
)  # fmt: skip


@contextmanager
def _second_is_current(device: str) -> Iterator[tuple[str, str]]:
    """Make the second device current, and restore the previous one afterwards. Yield the names of both devices.

    Raises NotOffered if there is only one device.
    """
    accelerator(device)
    if torch.accelerator.device_count() < 2:
        raise NotOffered("a second device")
    kind = torch.device(device).type
    with on_device(1):
        yield f"{kind}:0", f"{kind}:1"


def _function(device: str, name: str) -> Callable[..., Any]:
    return named(module_of(device), name)


def _drawn(there: str, generator: torch.Generator | None = None) -> torch.Tensor:
    return torch.rand(MANY, device=there, generator=generator).cpu()


@scenario(exact=True, area="devices", accelerators=True)
def a_device_that_is_not_current(device: str) -> Results:
    """Seeds, clones, streams, storages and tensors of a device are its own while another device is current."""

    def seeded() -> bool:
        if not seeds(torch.device(device).type):
            raise NotOffered("torch.manual_seed of the device")
        with _second_is_current(device) as (first, second):
            drawn = []
            for _ in range(2):
                torch.manual_seed(7)
                drawn.append(torch.cat([_drawn(first), _drawn(second)]))
            return bool(torch.equal(*drawn))

    def cloned() -> bool:
        with _second_is_current(device) as (first, _):
            generator = torch.Generator(first).manual_seed(3)
            clone = generator.clone_state()
            return bool(
                clone.device == generator.device and torch.equal(_drawn(first, clone), _drawn(first, generator))
            )

    def default_stream() -> bool:
        with _second_is_current(device) as (first, _):
            before = taken(_function(device, "default_stream"), first)
            with current(torch.Stream(first)):
                torch.accelerator.set_device_index(1)  # setting the stream may have made its device current
                return bool(taken(_function(device, "default_stream"), first) == before)

    def resized() -> bool:
        with _second_is_current(device) as (first, _):
            tensor = torch.arange(BYTES, dtype=torch.uint8, device=first)
            tensor.untyped_storage().resize_(3 * BYTES)
            return bool(torch.equal(tensor.cpu(), torch.arange(BYTES, dtype=torch.uint8)))

    def set_to_nothing() -> bool:
        with _second_is_current(device) as (first, _):
            tensor = torch.ones(4, device=first).set_()
            return bool(tensor.device == torch.device(first) and tensor.numel() == 0)

    def computed() -> bool:
        with _second_is_current(device) as (first, _):
            x = torch.arange(12.0, device=first).view(3, 4)
            made = (x.t() @ x, torch.cat((x, x)), x[x > 3], x.new_zeros(2), torch.zeros_like(x), x.clone(), x.sum())
            return all(tensor.device == x.device for tensor in made) and bool(made[-1].item() == 66)

    return held(device, {
        "seeded": seeded, "cloned_generator": cloned, "default_stream": default_stream, "resized_storage": resized,
        "set_to_nothing": set_to_nothing, "results": computed,
    })  # fmt: skip


@scenario(exact=True, area="devices", accelerators=True)
def current_device_is_left(device: str) -> Results:
    """A function of ``torch.<device>`` that takes a device does not make that device the current one.

    Nor does one of ``torch.accelerator``.
    """

    def left(function: Callable[[], Callable[..., Any]]) -> bool:
        with _second_is_current(device) as (first, second):
            taken(function(), first)
            index = torch.accelerator.current_device_index()
            return bool(index == 1 and torch.ones(1, device=torch.device(device).type).device == torch.device(second))

    functions = {name: partial(_function, device, name) for name in TAKE_A_DEVICE}
    functions |= {f"accelerator.{name}": partial(named, torch.accelerator, name) for name in OF_THE_ACCELERATOR}
    return held(device, {name: partial(left, function) for name, function in functions.items()})


def _generator(_: str, form: str) -> bool:
    generator = taken(torch.Generator, form)
    return generator.device.index in (None, -1, 1)  # it may have no device until it draws


@scenario(exact=True, area="devices", accelerators=True)
def device_without_an_index(device: str) -> Results:
    """The name of a kind of device, without an index, means the current one of that kind."""
    kind = torch.device(device).type

    def means_current(asked: Asked) -> bool:
        with _second_is_current(device) as (_, second):
            if asked(kind, kind):
                return True
            if not asked(kind, second):  # another program finds that: the missing index is not the cause
                raise NotOffered("what is asked of a device with an index")
            return False

    asked = {name: ASKED[name] for name in WITHOUT_INDEX} | {"Generator": _generator}
    return held(device, {name: partial(means_current, one) for name, one in asked.items()})
