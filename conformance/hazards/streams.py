"""Hazards within a stream and between streams: order, events, and memory that another stream reuses."""

from __future__ import annotations

import torch

from conformance.hazards.bench import Bench, difference
from conformance.hazards.model import Found, Needs, hazard

STREAMS, PINNED, TWO_DEVICES = Needs.STREAMS, Needs.PINNED, Needs.TWO_DEVICES


def produced(bench: Bench, stream: torch.Stream | None = None) -> tuple[torch.Tensor, torch.Stream]:
    """Return a tensor of twos, whose last kernel another stream has yet to run, and this stream."""
    x, stream = bench.full(1), stream or bench.stream()
    with bench.on(stream):
        bench.busy()
        x.add_(1)
    return x, stream


def read(bench: Bench) -> tuple[torch.Tensor, torch.Tensor, torch.Stream]:
    """Return a tensor of ones, a tensor of twos that another stream has yet to make from it, and this stream."""
    x, y, stream = bench.full(1), bench.full(0), bench.stream()
    with bench.on(stream):
        bench.busy()
        torch.add(x, 1, out=y)
    return x, y, stream


@hazard("a kernel of a stream", "the next kernel of the stream")
def kernels_run_in_order(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    x.mul_(3).add_(1).mul_(5).sub_(2)
    yield difference("x", x, 18)


@hazard("a queued kernel that reads the tensor", "an in-place kernel on the tensor")
def in_place_after_queued_read(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    y = x + 1
    x.fill_(9)
    yield difference("the sum", y, 2)


@hazard("a launch with its arguments", "the next launch's arguments")
def launches_keep_their_arguments(bench: Bench) -> Found:
    x, parts = bench.full(0), [bench.full(0) for _ in range(8)]
    bench.busy()
    for number, part in enumerate(parts):
        part.add_(x, alpha=1).add_(number)
    for number, part in enumerate(parts):
        yield difference(f"tensor {number}", part, number)


@hazard("the producer on another stream", "wait_event() and the reader", STREAMS)
def read_after_wait_event(bench: Bench) -> Found:
    (x, stream), event = produced(bench), bench.event()
    event.record(stream)
    bench.current().wait_event(event)
    yield difference("what the reader made", x * 10, 20)


@hazard("the producer on another stream", "wait_stream() and the reader", STREAMS)
def read_after_wait_stream(bench: Bench) -> Found:
    x, stream = produced(bench)
    bench.current().wait_stream(stream)
    yield difference("what the reader made", x * 10, 20)


@hazard("the reader on another stream", "wait_event() and an in-place kernel", STREAMS)
def in_place_after_wait_event(bench: Bench) -> Found:
    (x, y, stream), event = read(bench), bench.event()
    event.record(stream)
    bench.current().wait_event(event)
    x.fill_(9)
    bench.wait()
    yield difference("what the reader made", y, 2)


@hazard("the producer before the second record() of an event", "wait_event() and the reader", STREAMS)
def event_recorded_again(bench: Bench) -> Found:
    stream, event = bench.stream(), bench.event()
    event.record(stream)
    event.synchronize()
    x, _ = produced(bench, stream)
    event.record(stream)
    bench.current().wait_event(event)
    yield difference("what the reader made", x * 10, 20)


@hazard("the producer before a record() of an event", "wait_event(), a record() elsewhere, and the reader", STREAMS)
def event_recorded_elsewhere_after_wait(bench: Bench) -> Found:
    (x, stream), event = produced(bench), bench.event()
    event.record(stream)
    bench.current().wait_event(event)
    event.record(bench.stream())
    yield difference("what the reader made", x * 10, 20)


@hazard("the producer on another stream", "Event.synchronize() and the reader", STREAMS)
def read_after_event_synchronize(bench: Bench) -> Found:
    (x, stream), event = produced(bench), bench.event()
    event.record(stream)
    event.synchronize()
    yield difference("what the reader made", x * 10, 20)


@hazard("the producer on another stream", "Event.query() and the reader", STREAMS)
def read_after_event_query(bench: Bench) -> Found:
    (x, stream), event = produced(bench), bench.event()
    event.record(stream)
    bench.until(event.query)
    yield difference("what the reader made", x * 10, 20)


@hazard("the producer on another stream", "Stream.query() and the reader", STREAMS)
def read_after_stream_query(bench: Bench) -> Found:
    x, stream = produced(bench)
    bench.until(stream.query)
    yield difference("what the reader made", x * 10, 20)


@hazard("the producer on another stream", "Stream.synchronize() and the reader", STREAMS)
def read_after_stream_synchronize(bench: Bench) -> Found:
    x, stream = produced(bench)
    stream.synchronize()
    yield difference("what the reader made", x * 10, 20)


@hazard("the producers on other streams", "torch.accelerator.synchronize() and the reader", STREAMS)
def read_after_device_synchronize(bench: Bench) -> Found:
    parts = [bench.full(1) for _ in range(3)]
    for part in parts:
        with bench.on(bench.stream()):
            bench.busy()
            part.add_(1)
    bench.wait()
    for number, read in enumerate([part * 10 for part in parts]):
        yield difference(f"what was read of tensor {number}", read, 20)


# Memory -------------------------------------------------------------------------------------------------------------


@hazard("a queued kernel that reads a freed tensor", "another stream's use of the memory", STREAMS)
def freed_tensor_taken_by_another_stream(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    y = x + 1
    del x
    bench.overwrite_free_memory()
    yield difference("what the kernel made", y, 2)


@hazard("a queued kernel that reads a view", "another stream's use of the memory", STREAMS)
def view_kept_alive_by_nobody(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    y = x[::2] + 1
    del x
    bench.overwrite_free_memory()
    yield difference("what the kernel made", y, 2)


@hazard("a queued kernel that reads a temporary", "another stream's use of the memory", STREAMS)
def temporaries_of_an_expression(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    y = (x + 1) * ((x + 2) - (x + 4)) + (x * 7)
    bench.overwrite_free_memory()
    yield difference("the expression", y, 3)


@hazard("a queued kernel that reads a storage", "resize_() and another stream's use of the memory", STREAMS)
def storage_grown_while_it_is_read(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    y = x + 1
    x.resize_(bench.elements * 2)
    bench.overwrite_free_memory()
    yield difference("what the kernel made", y, 2)
    yield difference("what was kept", x[: bench.elements], 1)


@hazard("a kernel of the stream that record_stream() named", "the next user of the freed memory", STREAMS)
def freed_tensor_of_a_recorded_stream(bench: Bench) -> Found:
    x, y, stream = read(bench)
    x.record_stream(stream)
    del x
    others = bench.next_users()
    bench.wait()
    yield difference("what the kernel made", y, 2)
    del others


@hazard("a kernel of the current stream, which record_stream() named", "the next user of the freed memory", STREAMS)
def freed_tensor_of_the_recorded_current_stream(bench: Bench) -> Found:
    x, y, stream = bench.full(1), bench.full(0), bench.stream()
    with bench.on(stream):
        bench.busy()
        x.record_stream(bench.current())
        torch.add(x, 1, out=y)
    del x
    others = bench.next_users()
    bench.wait()
    yield difference("what the kernel made", y, 2)
    del others


@hazard("a kernel of the stream that record_stream() named", "resize_() and the next user of the memory", STREAMS)
def storage_grown_while_a_recorded_stream_reads_it(bench: Bench) -> Found:
    x, y, stream = read(bench)
    x.record_stream(stream)
    x.resize_(bench.elements * 2)
    others = bench.next_users()
    bench.wait()
    yield difference("what the kernel made", y, 2)
    del others


@hazard("a kernel of each stream that record_stream() named", "the next user of the freed memory", STREAMS)
def freed_tensor_of_two_recorded_streams(bench: Bench) -> Found:
    for slow in range(2):
        x, results = bench.full(1), [bench.full(0), bench.full(0)]
        for number, (y, stream) in enumerate(zip(results, (bench.stream(), bench.stream()), strict=True)):
            with bench.on(stream):
                if number == slow:
                    bench.busy()
                torch.add(x, 1, out=y)
            x.record_stream(stream)
        del x
        others = bench.next_users()
        bench.wait()
        for number, y in enumerate(results):
            yield difference(f"what kernel {number} made while {slow} was slow", y, 2)
        del others


@hazard("a kernel of another stream that was waited for", "the next user of the freed memory", STREAMS)
def freed_tensor_of_a_stream_waited_for(bench: Bench) -> Found:
    x, y, stream = read(bench)
    bench.current().wait_stream(stream)
    del x
    others = bench.next_users()
    bench.wait()
    yield difference("what the kernel made", y, 2)
    del others


# Devices ------------------------------------------------------------------------------------------------------------


@hazard("a copy from another device", "the reader on the target's device", TWO_DEVICES)
def read_after_copy_between_devices(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    x.add_(1)
    y = x.to(bench.second, non_blocking=True) * 10
    yield difference("what the reader made", y, 20)


@hazard("a queued reader of the target", "a copy from another device", TWO_DEVICES)
def copy_between_devices_after_queued_read(bench: Bench) -> Found:
    x, target = bench.full(9), bench.full(1, bench.second)
    bench.busy(bench.second)
    y = target + 1
    target.copy_(x, non_blocking=True)
    yield difference("what the reader made", y, 2)
    yield difference("the target", target, 9)


@hazard("a copy to another device", "an in-place kernel on the source", TWO_DEVICES)
def source_written_after_copy_between_devices(bench: Bench) -> Found:
    x, target = bench.full(1), bench.full(0, bench.second)
    bench.busy()
    target.copy_(x, non_blocking=True)
    x.fill_(9)
    yield difference("the target", target, 1)


@hazard("a copy to another device that reads a freed tensor", "another stream's use of the memory", TWO_DEVICES)
def source_freed_after_copy_between_devices(bench: Bench) -> Found:
    x, target = bench.full(1), bench.full(0, bench.second)
    bench.busy()
    target.copy_(x, non_blocking=True)
    del x
    bench.overwrite_free_memory()
    yield difference("the target", target, 1)


@hazard("work of another device", "wait_event() and the reader", TWO_DEVICES, PINNED)
def wait_for_event_of_another_device(bench: Bench) -> Found:
    assert bench.second is not None
    x, between, y = bench.full(1), bench.host(0, pinned=True), bench.full(0, bench.second)
    event = bench.event()
    bench.busy()
    between.copy_(x.add_(1), non_blocking=True)
    event.record(bench.current())
    bench.current(bench.second).wait_event(event)
    y.copy_(between, non_blocking=True)
    yield difference("what came through pinned memory", y, 2)
