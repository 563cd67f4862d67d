"""Reports of ``torch.profiler`` about a program on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, supported_activities

from conformance.scenarios.asking import accelerator, current, held, on_device
from conformance.scenarios.model import NotOffered, Results, first_line, offered, scenario

CALLS = 3
#: A number of calls, none of which may be lost: more than a buffer of 64 KiB or of 4,096 records holds.
MANY = 4500
#: The largest ratio of two times of the same work. It is smaller than the ratio of two units.
APART = 60


def _of_device(device: str) -> ProfilerActivity:
    """Return the activity of a device's kernels. Raises NotOffered if torch has none for the device."""
    name = torch.device(device).type.upper()
    wanted = getattr(ProfilerActivity, name, ProfilerActivity.PrivateUse1)
    if wanted not in supported_activities():
        raise NotOffered(f"torch.profiler.supported_activities() has nothing for {torch.device(device).type}")
    return wanted


def _profiled(device: str, *activities: ProfilerActivity) -> profile:
    """Profile three matrix products. The copy of each to CPU waits until the product is done."""
    with profile(activities=[ProfilerActivity.CPU, *activities], record_shapes=True) as profiled:
        x = torch.ones(4, 8).to(device)
        for _ in range(CALLS):
            x.mm(x.t()).cpu()
    return profiled


@scenario(exact=True, area="profiler")
def calls_of_ops(device: str) -> Results:
    """``torch.profiler`` lists each op that is called, as often as it is called, with the sizes of its arguments."""
    called = [e for e in _profiled(device).events() or () if e.device_type == DeviceType.CPU and e.cpu_parent is None]
    events = [event for event in called if event.name == "aten::mm"]
    sizes = [event.input_shapes == [[4, 8], [8, 4]] for event in events]
    return {"calls": torch.tensor(len(events)), "sizes": torch.tensor(sizes)}


@scenario(exact=True, area="profiler", accelerators=True)
def time_of_kernels(device: str) -> Results:
    """A profile of the device's activity has the time that its kernels took."""
    if device == "cpu":
        return {"took time": torch.tensor(True)}
    events = _profiled(device, _of_device(device)).events() or ()
    if not any(event.device_type != DeviceType.CPU or event.kernels for event in events):
        raise NotOffered("a profile has no event of the device")
    return {"took time": torch.tensor(sum(event.self_device_time_total for event in events) > 0)}


@scenario(exact=True, area="profiler", accelerators=True)
def sessions_leave_the_device(device: str) -> Results:
    """A session of the profiler leaves the device and the streams current that were."""

    def state() -> list[object]:
        indices = range(torch.accelerator.device_count())
        return [torch.accelerator.current_device_index(), *map(torch.accelerator.current_stream, indices)]

    def left() -> bool:
        accelerator(device)
        before = state()
        _profiled(device, _of_device(device))
        return state() == before

    return held(device, {"device_and_streams": left})


@scenario(exact=True, area="profiler", accelerators=True)
def kernels_of_ops(device: str) -> Results:
    """A profile of the device's activity says of each op which kernels it ran."""
    if device == "cpu":
        return {"have kernels": torch.ones(CALLS, dtype=torch.bool)}
    events = [e for e in _profiled(device, _of_device(device)).events() or () if e.device_type == DeviceType.CPU]
    if not any(event.kernels for event in events):
        raise NotOffered("a profile links no kernel to an op")
    products = [event for event in events if event.name == "aten::mm" and event.cpu_parent is None]
    return {"have kernels": torch.tensor([_has_kernels(event) for event in products])}


@scenario(exact=True, area="profiler", accelerators=True)
def kernels_of_gradients(device: str) -> Results:
    """A profile of the device's activity has the kernels that ``backward()`` runs in threads of its own."""
    if device == "cpu":
        return {"more kernels": torch.tensor(True)}

    def kernels(*, backward: bool) -> int:
        x = torch.ones(4, 4).to(device).requires_grad_()
        with profile(activities=[ProfilerActivity.CPU, _of_device(device)]) as profiled:
            result = x.mm(x).mm(x).mm(x).sum()
            if backward:
                result.backward()
            result.item()
        return sum(e.device_type != DeviceType.CPU for e in profiled.events() or ())

    alone = kernels(backward=False)
    if not alone:
        raise NotOffered("a profile has no event of the device")
    # Each of the three products has two gradients.
    return {"more kernels": torch.tensor(kernels(backward=True) >= alone + 6)}


@scenario(exact=True, area="profiler", accelerators=True)
def units_of_times(device: str) -> Results:
    """``torch.autograd.profiler`` has the time of an op on the device in microseconds, as two events confirm.

    So it is on the current stream too, where that is not the default one. Each is measured a few times, so that only
    another unit, or another stream, makes the difference that counts.
    """
    if device == "cpu":
        return {"microseconds": torch.tensor(True), "on another stream": torch.tensor(True)}
    accelerator(device)

    def on_another_stream() -> torch.Tensor:
        stream = torch.Stream(device)
        with current(stream):
            return _confirmed(device, stream)

    return {
        "microseconds": offered(partial(_confirmed, device)),
        "on another stream": offered(on_another_stream),
    }


def _confirmed(device: str, stream: torch.Stream | None = None) -> torch.Tensor:
    """Return whether events confirm the profiler's times of ops on the current stream.

    ``stream``: the stream that the events are recorded on, by default the current one.
    """
    kind = torch.device(device).type
    x = torch.ones(400, 400, device=device)
    x.mm(x)  # the first call may include other work
    try:
        profiler = torch.autograd.profiler.profile(use_device=kind, use_kineto=False)
        with on_device(x.device.index), profiler as profiled:  # events are recorded on the current device
            for _ in range(CALLS):
                x.mm(x)
    except (RuntimeError, AssertionError, TypeError) as e:
        raise NotOffered(f"torch.autograd.profiler for {kind}: {first_line(e)}") from e
    found = [e.device_time_total for e in profiled.function_events or () if e.name == "aten::mm"]
    if not found or not min(found):
        raise NotOffered("the profiler of torch.autograd has no times of the device")
    try:
        with on_device(x.device.index):
            wanted = [_time_of(partial(x.mm, x), device, stream) for _ in range(CALLS)]
    except (RuntimeError, TypeError, AttributeError) as e:
        raise NotOffered(f"the time between events: {first_line(e)}") from e
    return torch.tensor(have_one_unit(found, wanted))


def have_one_unit(found: Sequence[float], wanted: Sequence[float]) -> bool:
    """Return whether two lists of times have the same unit: their ranges, widened by ``APART``, overlap.

    If the op runs on the host, the events of its stream are reached whenever the stream's thread runs. Then the times
    between them vary by more than a unit, and show nothing.
    """
    return min(found) < max(wanted) * APART and min(wanted) < max(found) * APART


def _time_of(call: Callable[[], object], device: str, stream: torch.Stream | None) -> float:
    """Return the time of a call in microseconds, between events on a stream, by default the current one."""
    begin, end = (torch.Event(device, enable_timing=True) for _ in range(2))
    begin.record(stream)
    call()
    end.record(stream)
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1000


@scenario(exact=True, slow=True, area="profiler", accelerators=True)
def kernels_of_many_ops(device: str) -> Results:
    """A profile of the device's activity has the kernels of thousands of calls, the last ones too."""
    if device == "cpu":
        return {"have kernels": torch.tensor(True)}
    x, activity = torch.zeros(3, device=device), _of_device(device)
    with profile(activities=[ProfilerActivity.CPU, activity]) as profiled:
        for _ in range(MANY):
            x.add_(1)
        x.cpu()
    events = [e for e in profiled.events() or () if e.name == "aten::add_"]
    linked = sum(map(_has_kernels, events))
    if not linked:
        raise NotOffered("a profile links no kernel to an op")
    return {"have kernels": torch.tensor(len(events) == linked == MANY)}


@scenario(exact=True, area="profiler", accelerators=True)
def devices_of_kernels(device: str) -> Results:
    """A profile of the device's activity says of each kernel on which device it ran, also where that is not current."""
    if device == "cpu":
        return {"first": torch.tensor(True), "second": torch.tensor(True)}
    kind, activity = torch.device(device).type, _of_device(device)
    return {
        name: offered(partial(_ran_on, index, f"{kind}:{index}", activity))
        for index, name in enumerate(("first", "second"))
    }


def _ran_on(index: int, device: str, activity: ProfilerActivity) -> torch.Tensor:
    """Return whether all kernels in a profile of a device are of the device with this index."""
    if torch.accelerator.device_count() <= index:
        raise NotOffered("a second device")
    events = _profiled(device, activity).events() or ()
    found = {e.device_index for e in events if e.device_type != DeviceType.CPU}
    found |= {kernel.device for e in events for kernel in e.kernels}
    if not found:
        raise NotOffered("a profile has no event of the device")
    return torch.tensor(found == {index})


@scenario(exact=True, area="profiler", accelerators=True)
def streams_of_kernels(device: str) -> Results:
    """A profile of the device's activity has the kernels of each stream in a row of its own."""

    def apart() -> bool:
        accelerator(device)
        tensors, streams = [torch.ones(8, device=device) for _ in range(2)], [torch.Stream(device) for _ in range(2)]
        torch.accelerator.synchronize(device)
        with profile(activities=[ProfilerActivity.CPU, _of_device(device)]) as profiled:
            for tensor, stream in zip(tensors, streams, strict=True):
                with current(stream):
                    tensor.mul_(2).mul_(3)
            torch.accelerator.synchronize(device)
        rows = {e.device_resource_id for e in profiled.events() or () if e.device_type != DeviceType.CPU}
        if not rows:
            raise NotOffered("a profile has no event of the device")
        return len(rows) == 2

    return held(device, {"apart": apart})


def _has_kernels(event: Any) -> bool:
    """Return whether an event of an op, or of an op that it calls, has kernels."""
    return bool(event.kernels) or any(map(_has_kernels, event.cpu_children))
