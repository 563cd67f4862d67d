"""The state besides memory that a call must not change: current device and stream, modes, generators, arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Any

import torch

from conformance.torch_versions import accelerator_of

_CPU_GENERATOR = "CPU's generator"
# The number of devices whose generators are watched: the first devices.
_DEVICES = 2
_SMALLEST_NORMAL = 2.0**-1022
_HALF = 0.5
# A little more than half of the distance from 1 to the next number.
_MORE_THAN_HALF = 2.0**-53 + 2.0**-60

State = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A change by a call, with the values before and after: a generator's state in bytes, else a word or a number."""

    what: str
    before: Any
    after: Any

    @property
    def is_draw(self) -> bool:
        """Whether the call drew from a generator, or seeded it."""
        return isinstance(self.before, bytes)

    @property
    def is_draw_on_host(self) -> bool:
        """Whether the call drew from CPU's generator, or seeded it."""
        return self.what == _CPU_GENERATOR


class Ambient:
    """The state of torch, of this thread's arithmetic and of a device. State that cannot be read is not watched.

    The device must be initialized. ``generators``: whether to watch generators too, which takes 20 microseconds a call.
    """

    def __init__(self, device: torch.device, *, generators: bool) -> None:
        readers = chain(_readers(device), _generators(device) if generators else ())
        readable = [(name, read) for name, read in readers if _can(read)]
        self._names = [name for name, _ in readable]
        self._reads = [read for _, read in readable]

    def now(self) -> State | None:
        """Return the state as values that can be compared, None if the device no longer answers."""
        try:
            return tuple([read() for read in self._reads])
        except Exception:  # noqa: BLE001  # whatever a backend raises
            return None

    def changes(self, before: State | None, after: State | None) -> list[Change]:
        """Return the changes between two states, none if either is None."""
        if before is None or after is None or before == after:
            return []
        both = zip(self._names, before, after, strict=True)
        return [Change(name, old, new) for name, old, new in both if old != new]


@cache
def of(device: torch.device, *, generators: bool) -> Ambient:
    """Return the :class:`Ambient` of a device, the same one for equal arguments."""
    return Ambient(device, generators=generators)


def _readers(device: torch.device) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name of each part of the state, and the function that reads it. Uses only public names of torch."""
    yield "grad mode", torch.is_grad_enabled
    yield "inference mode", torch.is_inference_mode_enabled
    yield "autocast", partial(torch.is_autocast_enabled, device.type)
    yield "the default dtype", lambda: str(torch.get_default_dtype())
    yield "the number of threads of CPU's kernels", torch.get_num_threads
    yield "deterministic algorithms", torch.are_deterministic_algorithms_enabled
    yield "the precision of float32 products", torch.get_float32_matmul_precision
    yield "the keeping of subnormal numbers on CPU", lambda: _SMALLEST_NORMAL * _HALF > 0
    yield "rounding to nearest on CPU", lambda: 1 + _MORE_THAN_HALF > 1 and -1 - _MORE_THAN_HALF < -1
    if (accelerator := accelerator_of(device.type)) is not None:
        yield "the current device", accelerator.current_device_index
        index = device.index or 0  # a number is looked up faster than a device
        yield "the current stream", lambda: accelerator.current_stream(index).stream_id


def _generators(device: torch.device) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name and the reader of the states of CPU's default generator and of the first devices' generators."""
    yield _CPU_GENERATOR, partial(_bytes, torch.default_generator.get_state)
    module = getattr(torch, device.type, None)
    generators = getattr(module, "default_generators", ())
    for index in range(_DEVICES):
        own = index < len(generators)
        state = generators[index].get_state if own else partial(getattr(module, "get_rng_state", _none), index)
        yield f"the generator of device {index}", partial(_bytes, state)


def _bytes(state: Callable[[], torch.Tensor]) -> bytes:
    """Return a generator's state."""
    found: bytes = state().cpu().numpy().tobytes()
    return found


def _none(index: int) -> torch.Tensor:
    raise LookupError(f"no generator of device {index}")


def _can(read: Callable[[], Any]) -> bool:
    try:
        read()
    except Exception:  # noqa: BLE001  # whatever a backend raises
        return False
    return True
