"""Steps about devices, streams and events."""

from __future__ import annotations

from conformance.scenarios.walk_kinds import device_of, form_of, kind
from conformance.scenarios.walk_state import HOST, State, Step

#: The areas of the kinds of steps.
DEVICES = "devices"
STREAMS = "streams"


@kind(DEVICES, weight=2)
def set_device(s: State, step: Step) -> None:
    """Make a device current. This is not done within blocks with a stream, since not all of them restore the device."""
    s.must_be_outside_of_streams()
    device = device_of(s, step)
    way = step.pick("way", ("torch.accelerator.set_device_index", f"torch.{s.kind}.set_device"))
    s.write(f"{way}({form_of(s, step, device)})")
    s.thread.device = device


@kind(DEVICES, weight=3)
def in_device(s: State, step: Step) -> None:
    """Begin a block with a device."""
    device = device_of(s, step)
    ways = f"torch.{s.kind}.device({form_of(s, step, device)})", f"torch.accelerator.device_index({device})"
    way = step.pick("way", ways)
    s.open(f"with {way}:", "device")
    s.thread.device = device


@kind(DEVICES)
def in_default_device(s: State, step: Step) -> None:
    """Begin a block in which tensors are made on a device."""
    device = device_of(s, step)
    s.open(f"with torch.device({s.name(device)}):", "default_device")
    s.thread.default_device = device


@kind(DEVICES, weight=2)
def current_device(s: State, step: Step) -> None:
    """Ask which device is current."""
    asked = ("torch.accelerator.current_device_index()", f"torch.{s.kind}.current_device()",
             f'torch.ones(1, device="{s.kind}").device.index')  # fmt: skip
    s.write(f"assert {step.pick('way', asked)} == {s.thread.device}")


@kind(DEVICES)
def device_of_factories(s: State, _: Step) -> None:
    """Ask where a factory makes a tensor if no device is named."""
    wanted = '"cpu"' if s.thread.default_device is None else s.name(s.thread.default_device)
    s.write(f"assert torch.ones(2).device == torch.device({wanted})")


@kind(DEVICES, "in_device", weight=8)
def end_block(s: State, step: Step) -> None:
    """End the innermost block, sometimes by an exception."""
    s.close(by_error=step.pick("way", range(4)) == 0)


@kind(DEVICES)
def in_thread(s: State, step: Step) -> None:
    """Begin the work of another thread."""
    s.must_be_in_main_thread()
    s.open_thread(device_of(s, step))
    begin(s, f"u{step.number}")


def begin(s: State, prefix: str = "s") -> None:
    """Set the current device of a thread that begins, and name its current streams."""
    s.write(f"torch.accelerator.set_device_index({s.thread.device})")
    for index in s.devices:
        name = f"{prefix}_{index}"
        s.write(f"{name} = torch.accelerator.current_stream({index})")
        s.streams[name] = index
        s.thread.streams[index] = name


@kind(STREAMS, weight=2)
def new_stream(s: State, step: Step) -> None:
    """Make a stream on a device that may not be current."""
    device, name = device_of(s, step), f"s{step.number}"
    way = step.pick("way", (f"torch.Stream({s.name(device)})", f"torch.{s.kind}.Stream(device={s.name(device)})"))
    s.write(f"{name} = {way}", f"assert {name}.device == torch.device({s.name(device)})")
    s.streams[name] = device


def _own_streams(s: State) -> list[str]:
    """Return streams that were made, and those that are current."""
    return [name for name in s.streams if not name.startswith("u") or name in s.thread.streams.values()]


@kind(STREAMS, "new_stream", weight=3)
def in_stream(s: State, step: Step) -> None:
    """Begin a block with a stream."""
    stream = step.pick("stream", _own_streams(s))
    s.open_stream(f"with torch.{s.kind}.stream({stream}):", stream)


@kind(STREAMS, "new_stream", weight=3)
def in_stream_itself(s: State, step: Step) -> None:
    """Begin a block with the stream object itself, which is not within another block with this stream.

    Only streams that were made and are not current are taken. For a current stream, some versions of torch do nothing,
    and others make its device current.
    """
    taken = {*s.thread.streams.values(), *(block.stream for block in s.blocks)}
    stream = step.pick("stream", [name for name in s.streams if "_" not in name and name not in taken])
    s.open_stream(f"with {stream}:", stream)


@kind(STREAMS, "new_stream")
def set_stream(s: State, step: Step) -> None:
    """Make a stream current. This is not done within blocks with a stream, which would restore another one."""
    s.must_be_outside_of_streams()
    stream = step.pick("stream", _own_streams(s))
    s.write(f"{step.pick('way', ('torch.accelerator', f'torch.{s.kind}'))}.set_stream({stream})")
    s.make_current(stream)


@kind(STREAMS, weight=2)
def current_stream(s: State, step: Step) -> None:
    """Ask for the current stream of a device."""
    device = device_of(s, step)
    asked = step.pick("way", ("torch.accelerator.current_stream", f"torch.{s.kind}.current_stream"))
    s.write(f"assert {asked}({form_of(s, step, device)}) == {s.current(device)}")


@kind(STREAMS)
def default_stream(s: State, step: Step) -> None:
    """Ask for the default stream of a device. It is none of those that were made, and always the same."""
    device = device_of(s, step)
    made = [name for name, index in s.streams.items() if index == device and "_" not in name]
    s.write(f"d = torch.{s.kind}.default_stream({form_of(s, step, device)})", f"assert d not in [{', '.join(made)}]",
            f"assert d.device == torch.device({s.name(device)})",
            f"assert d == default.setdefault({device}, d)")  # fmt: skip


@kind(STREAMS, weight=2)
def keep_busy(s: State, step: Step) -> None:
    """Give the current stream of a device some work."""
    device = device_of(s, step)
    s.write(f"keep_busy({s.name(device)})")
    s.order.submit(s.current(device))


@kind(STREAMS, weight=2)
def record_event(s: State, step: Step) -> None:
    """Record an event on a stream, a new event or one that was recorded before."""
    stream = step.pick("stream", s.streams)
    device = s.streams[stream]
    again = [name for name, (index, _) in s.events.items() if index == device]
    event = step.pick("event", (f"e{step.number}", *again))
    if event not in s.events:
        s.write(f"{event} = torch.Event({s.name(device)})")
    s.write(f"{event}.record({stream})")
    s.events[event] = device, dict(s.order.of(stream))


@kind(STREAMS, "new_stream", "record_event", weight=2)
def wait_event(s: State, step: Step) -> None:
    """Let a stream wait for an event."""
    event, stream = step.pick("event", s.events), step.pick("stream", s.streams)
    s.write(step.pick("way", (f"{stream}.wait_event({event})", f"{event}.wait({stream})")))
    s.order.wait(stream, s.events[event][1])


@kind(STREAMS, "new_stream")
def wait_stream(s: State, step: Step) -> None:
    """Let a stream wait for another one."""
    stream, other = step.pick("stream", s.streams), step.pick("other", s.streams)
    s.write(f"{stream}.wait_stream({other})")
    s.order.wait(stream, s.order.of(other))


@kind(STREAMS, "record_event")
def await_event(s: State, step: Step) -> None:
    """Wait for an event, and check that it is reached."""
    event = step.pick("event", s.events)
    s.write(f"{event}.synchronize()", f"assert {event}.query()")
    s.order.wait(HOST, s.events[event][1])


@kind(STREAMS, "new_stream")
def await_stream(s: State, step: Step) -> None:
    """Wait for a stream, and check that it has nothing left to do."""
    stream = step.pick("stream", s.streams)
    s.write(f"{stream}.synchronize()", f"assert {stream}.query()")
    s.order.wait(HOST, s.order.of(stream))


@kind(STREAMS)
def await_device(s: State, step: Step) -> None:
    """Wait for a device, and check that its current stream has nothing left to do."""
    device = device_of(s, step)
    way = step.pick("way", ("torch.accelerator.synchronize", f"torch.{s.kind}.synchronize"))
    s.write(f"{way}({form_of(s, step, device)})", f"assert {s.current(device)}.query()")
    s.synchronized(device)
