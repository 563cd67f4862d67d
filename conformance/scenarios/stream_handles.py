"""Streams as objects: their equality, and what they report about themselves.

CPU has no counterpart. Its results are the expected ones: each property holds.
"""

from __future__ import annotations

from typing import Any

import torch

from conformance.scenarios.asking import accelerator, current, held, module_of, named
from conformance.scenarios.model import Results, scenario


@scenario(exact=True, area="devices", accelerators=True)
def streams_as_objects(device: str) -> Results:
    """Two handles of one stream are equal, with equal hashes; a stream is found again by its id and its device."""

    def same() -> bool:
        accelerator(device)
        one, other = (torch.accelerator.current_stream(device) for _ in range(2))
        return bool(one == other and hash(one) == hash(other))

    def apart() -> bool:
        accelerator(device)
        streams = [torch.Stream(device), torch.Stream(device), torch.accelerator.current_stream(device)]
        return len(set(streams)) == len({stream.stream_id for stream in streams}) == len(streams)

    def found_again() -> bool:
        accelerator(device)
        stream = torch.Stream(device)
        again = torch.Stream(
            stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type
        )
        return bool(again == stream)

    def of_the_device() -> bool:
        accelerator(device)
        wanted = torch.device(device).index or 0
        indices = {torch.Stream(device).device.index, torch.accelerator.current_stream(device).device.index}
        return indices == {wanted}

    def idle() -> bool:
        accelerator(device)
        stream = torch.Stream(device)
        event = stream.record_event()
        stream.synchronize()
        return bool(stream.query() and event.query())

    def default() -> bool:
        accelerator(device)
        index = torch.device(device).index or 0
        one: Any = named(module_of(device), "default_stream")(index)
        other = torch.accelerator.current_stream(index)
        own = named(module_of(device), "current_stream")(index)
        with current(torch.Stream(device)):
            within = named(module_of(device), "default_stream")(index)
        of_module = {one, own, within}  # the class of the module's streams need not equal torch's own
        return len(of_module) == 1 and (one.stream_id, one.device) == (other.stream_id, other.device)

    return held(device, {
        "same": same, "default": default, "apart": apart, "found_again": found_again,
        "of_the_device": of_the_device, "idle": idle,
    })  # fmt: skip
