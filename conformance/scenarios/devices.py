"""What PyTorch promises of a device's module, of ``torch.accelerator``, of streams, events and memory.

CPU has none of it. Its results are what is promised: that each property holds.
"""

from __future__ import annotations

import types
from collections.abc import Callable

import torch

from conformance.scenarios.model import NotOffered, Results, offered, scenario

Property = Callable[[], bool]
SIZE = 1 << 20  # bytes of a tensor that statistics have to show


def module_of(device: str) -> types.ModuleType:
    """Return ``torch.<device>``. Raises NotOffered if there is none."""
    found = getattr(torch, device.partition(":")[0], None)
    if not isinstance(found, types.ModuleType):
        raise NotOffered(f"torch.{device.partition(':')[0]}")
    return found


def accelerator(device: str) -> None:
    """Raise NotOffered if ``torch.accelerator`` is not about the device."""
    current = torch.accelerator.current_accelerator()
    if current is None or current.type != torch.device(device).type:
        raise NotOffered("a device that is torch's accelerator")


def held(device: str, properties: dict[str, Property]) -> Results:
    """Return whether each property holds on the device. On CPU nothing is asked."""

    def asked(holds: Property) -> Callable[[], torch.Tensor]:
        return lambda: torch.tensor(device == "cpu" or bool(holds()))

    return {name: offered(asked(holds)) for name, holds in properties.items()}


def named(module: types.ModuleType, name: str) -> Callable[..., object]:
    """Return a function of a device module. Raises NotOffered if there is none."""
    found = getattr(module, name, None)
    if not callable(found):
        raise NotOffered(f"{module.__name__}.{name}")
    return found  # type: ignore[no-any-return]


@scenario(exact=True, area="devices", accelerators=True)
def counts_and_current_device(device: str) -> Results:
    """``torch.<device>`` and ``torch.accelerator`` agree on the number of devices and on the current one."""

    def current() -> tuple[int, int]:
        accelerator(device)
        own = named(module_of(device), "current_device")()
        assert isinstance(own, int)
        return own, torch.accelerator.current_device_index()

    def count() -> bool:
        accelerator(device)
        return bool(named(module_of(device), "device_count")() == torch.accelerator.device_count())

    def moved() -> bool:
        if torch.accelerator.device_count() < 2:
            raise NotOffered("a second device")
        before, kind = torch.accelerator.current_device_index(), torch.device(device).type
        torch.accelerator.set_device_index(1)
        try:
            return current() == (1, 1) and torch.ones(1, device=kind).device.index == 1
        finally:
            torch.accelerator.set_device_index(before)

    return held(device, {
        "available": lambda: bool(named(module_of(device), "is_available")()),
        "count": count,
        "current": lambda: len(set(current())) == 1,
        "another_one": moved,
        "index_of_tensors": lambda: torch.ones(1, device=torch.device(device).type).device.index == current()[0],
    })  # fmt: skip


@scenario(exact=True, area="devices", accelerators=True)
def streams_and_events(device: str) -> Results:
    """A new stream is another one, work on it is seen behind an event, and events tell a time that is not negative."""

    def new_stream() -> bool:
        accelerator(device)
        before = torch.accelerator.current_stream(device)
        stream = torch.Stream(device)
        torch.accelerator.set_stream(stream)
        try:
            return bool(torch.accelerator.current_stream(device) == stream) and bool(stream != before)
        finally:
            torch.accelerator.set_stream(before)

    def waited() -> bool:
        accelerator(device)
        stream, done, x = torch.Stream(device), torch.Event(device), torch.zeros(1000, device=device)
        stream.wait_stream(torch.accelerator.current_stream(device))
        before = torch.accelerator.current_stream(device)
        torch.accelerator.set_stream(stream)
        try:
            x.add_(1)
            done.record(stream)
        finally:
            torch.accelerator.set_stream(before)
        done.wait(before)
        return bool(x.sum().item() == 1000 and done.query())

    def timed() -> bool:
        accelerator(device)
        first, last = (torch.Event(device, enable_timing=True) for _ in range(2))
        first.record()
        torch.ones(1000, device=device).add_(1)
        last.record()
        last.synchronize()
        return bool(first.elapsed_time(last) >= 0)

    def synchronized() -> bool:
        accelerator(device)
        stream = torch.Stream(device)
        torch.accelerator.synchronize(device)
        return bool(stream.query())

    return held(device, {
        "new_stream": new_stream, "work_behind_an_event": waited, "timed": timed, "synchronized": synchronized,
    })  # fmt: skip


@scenario(exact=True, area="memory", accelerators=True)
def statistics_add_up(device: str) -> Results:
    """``memory_allocated`` counts a tensor while it lives, and the peak stays until it is reset."""

    def allocated() -> int:
        found = named(module_of(device), "memory_allocated")()
        assert isinstance(found, int)
        return found

    def counted() -> bool:
        before = allocated()
        tensor = torch.empty(SIZE, dtype=torch.uint8, device=device)
        grown = allocated() - before
        del tensor
        return SIZE <= grown < 2 * SIZE and allocated() == before

    def views_are_free() -> bool:
        tensor = torch.empty(SIZE, dtype=torch.uint8, device=device)
        before = allocated()
        return len(tensor.split(1024)) == 1024 and allocated() == before

    def peak() -> bool:
        highest, reset = (named(module_of(device), f) for f in ("max_memory_allocated", "reset_peak_memory_stats"))
        reset()
        before = allocated()
        torch.empty(SIZE, dtype=torch.uint8, device=device)
        stays = highest()
        reset()
        return isinstance(stays, int) and stays >= before + SIZE and highest() == allocated() == before

    return held(device, {"counted": counted, "views_are_free": views_are_free, "peak": peak})


@scenario(exact=True, area="memory", accelerators=True)
def out_of_memory(device: str) -> Results:
    """An allocation that cannot fit raises an error of torch, leaves nothing behind, and the device goes on."""

    def refused() -> bool:
        try:
            torch.empty(1 << 60, dtype=torch.uint8, device=device)
        except RuntimeError:
            return bool(torch.ones(3, device=device).sum().item() == 3)
        return False

    def nothing_left() -> bool:
        allocated = named(module_of(device), "memory_allocated")
        before = allocated()
        return refused() and allocated() == before

    return held(device, {"refused": refused, "nothing_left": nothing_left})
