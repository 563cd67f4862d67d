"""Seeds and states of the devices' default generators. States are CPU byte tensors."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import torch

from refnpu import _C
from refnpu._index import Device, device_index

#: One generator for each device. Generators are host objects, so making them touches no device.
default_generators: tuple[torch.Generator, ...] = tuple(_C.default_generator(i) for i in range(_C.device_count()))


def manual_seed(seed: int) -> None:
    """Seed the current device's generator."""
    default_generators[_C.current_device()].manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed every device's generator. ``torch.manual_seed`` calls this."""
    if _C.fault("manual_seed_all_uses_device"):
        _C.synchronize(_C.current_device())
    first = _C.current_device() if _C.fault("manual_seed_all_from_current_device") else 0
    last = 2 if _C.fault("manual_seed_all_of_two_devices") else None
    for generator in default_generators[first:last]:
        generator.manual_seed(int(seed))


def seed() -> None:
    """Give the current device's generator a random seed."""
    default_generators[_C.current_device()].seed()


def seed_all() -> None:
    """Give every device's generator the same random seed."""
    if _C.fault("seed_all_of_current_device"):
        seed()
    elif default_generators:
        manual_seed_all(default_generators[0].seed())


def initial_seed() -> int:
    """Return the seed of the current device's generator."""
    if _C.fault("initial_seed_seeds"):
        seed()
    return int(default_generators[_C.current_device()].initial_seed())


def get_rng_state(device: Device = "npu") -> torch.Tensor:
    """Return the state of a device's generator."""
    if _C.fault("rng_state_of_current_device"):
        device = "npu"
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread and _C.fault("rng_state_of_own_thread"):
        own = torch.Generator(torch.device("npu", device_index(device)))
        return own.manual_seed(threading.get_ident()).get_state()
    return default_generators[device_index(device)].get_state()


def set_rng_state(new_state: torch.Tensor, device: Device = "npu") -> None:
    """Set the state of a device's generator to one from :func:`get_rng_state`."""
    if _C.fault("set_rng_state_of_current_device"):
        device = "npu"
    default_generators[device_index(device)].set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """Return the state of every device's generator."""
    return [generator.get_state() for generator in default_generators]


def set_rng_state_all(new_states: Sequence[torch.Tensor]) -> None:
    """Set the state of every device's generator. Raises ValueError for another number of states."""
    if len(new_states) != len(default_generators):
        raise ValueError(f"expected {len(default_generators)} states, one for each npu, got {len(new_states)}")
    if _C.fault("set_rng_state_all_from_first"):
        new_states = [new_states[0]] * len(default_generators)
    for generator, state in zip(default_generators, new_states, strict=True):
        generator.set_state(state)
