"""Streams and events, under the names that torch's devices share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from refnpu import _C
from refnpu._index import Device, device_index


class Stream(torch.Stream):
    """A new stream of a device, by default of the current device."""

    def __new__(cls, device: Device | None = None, priority: int = 0, **kwargs: Any) -> Stream:
        """Make a stream. Keyword arguments of ``torch.Stream``, for example ``stream_id``, are passed on."""
        if _C.fault("stream_made_on_current_device"):
            device = None
        if not kwargs:
            kwargs["device"] = torch.device("npu", device_index(device))
            if priority and _C.fault("stream_with_priority_is_default"):
                default = default_stream(device)
                kwargs = {name: getattr(default, name) for name in ("stream_id", "device_index", "device_type")}
        stream: Stream = super().__new__(cls, priority=priority, **kwargs)
        return stream


#: A marker in a stream's work. Not a subclass: ``torch.Event.elapsed_time`` takes nothing but ``torch.Event`` itself.
Event = partial(torch.Event, device="npu")


def current_stream(device: Device | None = None) -> torch.Stream:
    """Return the stream to which this thread submits a device's work."""
    return torch.accelerator.current_stream(device_index(device))


def default_stream(device: Device | None = None) -> torch.Stream:
    """Return the stream that is current until another stream is set."""
    if device is None and _C.fault("default_stream_without_device_is_first"):
        device = 0
    npu = torch.device("npu", device_index(device))
    if npu.index != _C.current_device() and _C.fault("default_stream_of_other_device_is_current"):
        return current_stream(npu)
    return torch.Stream(stream_id=0, device_index=npu.index, device_type=current_stream(npu).device_type)


def set_stream(stream: torch.Stream) -> None:
    """Make a stream, and its device, the current one of this thread."""
    torch.accelerator.set_stream(stream)


# For fault stream_block_in_itself_stays: the current streams before the last block with a stream, by device and id.
_DISPLACED: dict[tuple[int, int], tuple[torch.Stream, torch.Stream]] = {}


@contextmanager
def stream(stream: torch.Stream | None) -> Iterator[None]:
    """Submit work to a stream in a ``with`` block; None changes nothing."""
    if stream is None:
        yield
        return
    before_here = current_stream()
    before_there = current_stream(stream.device)
    slot = (stream.device_index, stream.stream_id)
    if _C.fault("stream_block_in_itself_stays"):
        _DISPLACED[slot] = (before_here, before_there)
    set_stream(stream)
    if before_here.device != stream.device and _C.fault("stream_block_keeps_own_device"):
        _C.set_device(before_here.device.index)
    failed = True
    try:
        yield
        failed = False
    finally:
        if _C.fault("stream_block_in_itself_stays"):
            before_here, before_there = _DISPLACED[slot]
        if failed and _C.fault("stream_block_left_by_error"):
            before_there = before_here = current_stream()
        if _C.fault("stream_block_ends_on_default"):
            before_there, before_here = default_stream(before_there.device), default_stream(before_here.device)
        if not _C.fault("stream_block_keeps_other_device"):
            set_stream(before_there)
        set_stream(before_here)
