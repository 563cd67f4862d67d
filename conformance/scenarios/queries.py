"""Functions of ``torch.<device>`` that only answer a question, about all devices or about the current one.

CPU has no counterpart. Its results are the expected ones: each property holds.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

import torch

from conformance import ambient
from conformance.scenarios.asking import Property, accelerator, current, held, module_of, named, on_device
from conformance.scenarios.busy_streams import keep_busy, with_streams
from conformance.scenarios.device_names import taken
from conformance.scenarios.model import NotOffered, Results, scenario

#: Questions about all devices.
OF_ALL = ("device_count", "is_available", "is_initialized", "get_rng_state_all", "current_device")
#: Questions about one device, the current one if none is named.
OF_ONE = (
    "current_stream", "default_stream", "get_device_name", "get_device_properties", "get_device_capability",
    "get_rng_state", "initial_seed", "is_bf16_supported", "max_memory_allocated", "max_memory_reserved", "mem_get_info",
    "memory_allocated", "memory_reserved", "memory_snapshot", "memory_stats", "memory_summary", "utilization",
)  # fmt: skip
#: Numbers about memory, which no question may change.
COUNTED = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
#: Questions whose answer depends on the block or the thread in which they are asked, or on other processes.
ELSEWHERE_OTHERWISE = ("current_stream", "mem_get_info", "utilization")
BYTES = 1 << 16  # bytes of a tensor

#: Questions about one device: the names in ``torch.accelerator``, and those in the device's module.
OF_BOTH = {
    "current_stream": "current_stream", "memory_allocated": "memory_allocated", "memory_reserved": "memory_reserved",
    "max_memory_allocated": "max_memory_allocated", "max_memory_reserved": "max_memory_reserved",
    "get_memory_info": "mem_get_info",
}  # fmt: skip
LARGE = 64 << 20  # bytes that only one of two devices holds
SEED = 20
#: Questions that take a device, and have one answer for each.
OF_CURRENT = (
    "current_stream", "default_stream", "get_device_name", "get_device_properties", "get_device_capability",
    "get_rng_state", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "memory_stats",
)  # fmt: skip

Question = Callable[[], Any]


def _question(device: str, name: str) -> Question:
    """Return the function that answers a question. Raises NotOffered if the backend does not answer it."""
    accelerator(device)
    ask = named(module_of(device), name)
    taken(ask)
    return ask


def _text(answer: Any) -> Any:
    """Return an answer in a form that can be compared: objects of a backend's own classes as text."""
    if isinstance(answer, torch.Tensor):
        return answer.tolist()
    if isinstance(answer, (list, tuple)):
        return [_text(one) for one in answer]
    return str(answer)


def _counts(device: str) -> list[Any]:
    module = module_of(device)
    return [ask() for ask in (getattr(module, name, None) for name in COUNTED) if callable(ask)]


@scenario(exact=True, area="devices", accelerators=True)
def asking_changes_nothing(device: str) -> Results:
    """A question to ``torch.<device>`` changes no generator, mode, current device, stream or number of memory."""

    def unchanged(name: str) -> bool:
        ask, watched = _question(device, name), ambient.of(torch.device(device), generators=True)
        kept = torch.ones(BYTES, dtype=torch.uint8, device=device)
        torch.ones(BYTES, dtype=torch.uint8, device=device)  # freed at once, so the peak is above the memory in use
        before, counted = watched.now(), _counts(device)
        ask()
        same = not watched.changes(before, watched.now()) and _counts(device) == counted
        return same and bool(kept.cpu().eq(1).all())

    return held(device, {name: partial(unchanged, name) for name in (*OF_ALL, *OF_ONE)})


@scenario(exact=True, area="devices", accelerators=True)
def asking_elsewhere(device: str) -> Results:
    """A question to ``torch.<device>`` has one answer: asked again, in another thread, and in a block with a stream."""

    def again(ask: Question) -> Any:
        return ask()

    def in_a_thread(ask: Question) -> Any:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(ask()))
        thread.start()
        thread.join()
        return found[0] if found else None  # a thread that raised has printed its error

    def with_a_stream(ask: Question) -> Any:
        here = torch.device(torch.device(device).type, torch.accelerator.current_device_index())
        with current(torch.Stream(here)):
            return ask()

    def same(name: str, where: Callable[[Question], Any]) -> bool:
        ask = _question(device, name)
        where(ask)  # the first thread and the first stream may need memory
        first = _text(ask())
        return bool(_text(where(ask)) == first)

    places = {"again": again, "in_a_thread": in_a_thread, "with_a_stream": with_a_stream}
    asked = [name for name in (*OF_ALL, *OF_ONE) if name not in ELSEWHERE_OTHERWISE]
    return held(device, {
        f"{name}_{place}": partial(same, name, where) for name in asked for place, where in places.items()
    })  # fmt: skip


@scenario(exact=True, area="devices", accelerators=True)
def both_modules_agree(device: str) -> Results:
    """``torch.accelerator`` answers a question about a device, current or not, as ``torch.<device>`` does."""

    def agree(name: str, index: int) -> bool:
        accelerator(device)
        if index >= torch.accelerator.device_count():
            raise NotOffered("a second device")
        asked = named(torch.accelerator, name), named(module_of(device), OF_BOTH[name])
        kept = torch.empty(LARGE, dtype=torch.uint8, device=f"{torch.device(device).type}:{index}")
        one, other = (taken(partial(ask, index)) for ask in asked)
        if name == "get_memory_info":  # other programs may use the device
            return bool(abs(one[0] - other[0]) < kept.nbytes // 2 and one[1] == other[1])
        return bool(one == other)

    return held(device, {
        f"{name}_of_{place}": partial(agree, name, index)
        for name in OF_BOTH for index, place in enumerate(("first", "second"))
    })  # fmt: skip


@contextmanager
def _second_that_differs(device: str) -> Iterator[None]:
    """Make the second device current, with its own seed and memory, and its own stream if the device has streams.

    Raises NotOffered without a second device.
    """
    accelerator(device)
    if torch.accelerator.device_count() < 2:
        raise NotOffered("a second device")
    second = f"{torch.device(device).type}:1"
    with on_device(1), ExitStack() as within:
        with suppress(NotOffered):
            within.enter_context(current(with_streams(torch.Stream, second)))
        with suppress(NotOffered):
            named(module_of(device), "manual_seed")(SEED)
        kept = torch.empty(LARGE, dtype=torch.uint8, device=second)
        yield
        del kept


@scenario(exact=True, area="devices", accelerators=True)
def without_a_device(device: str) -> Results:
    """A function of ``torch.<device>`` or ``torch.accelerator`` that is given no device is about the current one."""

    def answered(module: Callable[[], types.ModuleType], name: str) -> bool:
        with _second_that_differs(device):
            ask = named(module(), name)
            return bool(_text(taken(ask)) == _text(taken(ask, 1)))

    def made() -> bool:
        with _second_that_differs(device):
            return bool(taken(named(module_of(device), "Stream")).device.index == 1)

    def waited(module: Callable[[], types.ModuleType]) -> bool:
        with _second_that_differs(device):
            keep_busy(f"{torch.device(device).type}:1")
            taken(named(module(), "synchronize"))
            return bool(taken(torch.accelerator.current_stream(1).query))

    def started_again(module: Callable[[], types.ModuleType]) -> bool:
        with _second_that_differs(device):
            highest, allocated = (named(module(), name) for name in ("max_memory_allocated", "memory_allocated"))
            torch.empty(LARGE, dtype=torch.uint8, device=f"{torch.device(device).type}:1")  # raises the peak
            taken(named(module(), "reset_peak_memory_stats"))
            return bool(taken(highest, 1) == taken(allocated, 1) >= LARGE)

    modules: dict[str, Callable[[], types.ModuleType]] = {
        "": partial(module_of, device),
        "accelerator.": lambda: torch.accelerator,
    }
    properties: dict[str, Property] = {"Stream": made}
    for prefix, module in modules.items():
        properties |= {f"{prefix}{name}": partial(answered, module, name) for name in OF_CURRENT}
        properties |= {
            f"{prefix}synchronize": partial(waited, module),
            f"{prefix}reset_peak_memory_stats": partial(started_again, module),
        }
    return held(device, properties)
