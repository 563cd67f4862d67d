"""Work on several streams: its order, and the memory that it uses.

On CPU the same calls run one after the other. They give the results that the device must give, whenever its work is
done. A part keeps a stream busy, and at once makes calls that go wrong if the device forgets that the stream is not
done.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch

from conformance.scenarios.asking import current
from conformance.scenarios.busy_streams import (
    CALLS,
    ROUNDS,
    SIZE,
    TAKEN,
    busy_stream,
    filled,
    in_rounds,
    keep_busy,
    new_stream,
    on_stream,
    overwrite_free_memory,
    pinned,
    results_of_parts,
    synchronize,
    take_memory,
)
from conformance.scenarios.model import Results, offered, scenario

MANY = 3000  # calls without a wait
PATIENCE = 30.0  # seconds within which work must be done


@scenario(exact=True, area="memory")
def memory_in_use(device: str) -> Results:
    """Memory that was freed goes to no other tensor while a stream that uses it is not done."""
    return results_of_parts(
        device, _soon_and_late, _late_and_soon, _freed_under_another, _named_by_a_view, _sent_from_pinned,
        _fetched_to_pinned, _fetched_to_freed_pinned,
    )  # fmt: skip


def _used_by_two(calls: tuple[int, int], device: str, value: float) -> torch.Tensor:
    x = filled(device, value)
    made = []
    for count in calls:
        with busy_stream(device, count) as stream:
            made.append(x + 1)
        if stream is not None:
            x.record_stream(stream)
    del x
    taken = [take_memory(device)]
    if device != "cpu":
        time.sleep(0.002)  # the first stream is done, the other one is not
        taken.append(take_memory(device))
    synchronize(device)
    return torch.cat([x.cpu() for x in made])


def _soon_and_late(device: str) -> torch.Tensor:
    return in_rounds(partial(_used_by_two, (1, 2 * CALLS)), device)


def _late_and_soon(device: str) -> torch.Tensor:
    return in_rounds(partial(_used_by_two, (2 * CALLS, 1)), device)


def _freed_under_another(device: str) -> torch.Tensor:
    def part(device: str, value: float) -> torch.Tensor:
        with busy_stream(device):
            x = filled(device, value)
            made = x + 1
        del x
        overwrite_free_memory(device)
        return made

    return in_rounds(part, device)


def _named_by_a_view(device: str) -> torch.Tensor:
    """Free memory that a stream uses. Only a view of its middle was passed to ``record_stream``."""

    def part(device: str, value: float) -> torch.Tensor:
        x = filled(device, value)[SIZE // 4 : SIZE // 2]
        with busy_stream(device, 8 * CALLS) as stream:  # busy when the memory is taken, even if the host is slow
            made = x + 1
        if stream is not None:
            x.record_stream(stream)
        del x
        overwrite_free_memory(device)
        return made

    return in_rounds(part, device)


def _sent_from_pinned(device: str) -> torch.Tensor:
    def part(device: str, value: float) -> torch.Tensor:
        whole = pinned(device, torch.full((SIZE + 64,), value))
        with busy_stream(device):
            there = whole[64:].to(device, non_blocking=True)
        del whole
        taken = [pinned(device, torch.full((SIZE + 64,), -1.0)) for _ in range(TAKEN)]
        synchronize(device)
        del taken
        return there

    return in_rounds(part, device)


def _fetched_to_pinned(device: str) -> torch.Tensor:
    def part(device: str, value: float) -> torch.Tensor:
        whole = pinned(device, torch.zeros(SIZE + 64))
        with busy_stream(device):
            x = filled(device, value)
            whole[64:].copy_(x, non_blocking=True)
        del x
        overwrite_free_memory(device)
        return whole

    return in_rounds(part, device)


def _fetched_to_freed_pinned(device: str) -> torch.Tensor:
    """Free pinned memory while a late copy writes to it. Return the tensors that take its place.

    They must keep their own values.
    """

    def part(device: str, value: float) -> torch.Tensor:
        target = pinned(device, torch.zeros(SIZE))
        with busy_stream(device):
            target.copy_(filled(device, value + 1), non_blocking=True)
        del target
        taken = [pinned(device, torch.full((SIZE,), value)) for _ in range(TAKEN)]
        synchronize(device)
        return torch.stack(taken)

    return in_rounds(part, device)


@scenario(exact=True, area="loading")
def copies_that_arrive(device: str) -> Results:
    """A non-blocking copy to the host has arrived when the device is synchronized, also one that converts or packs."""
    ways: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "dense": lambda x: x.to("cpu", non_blocking=True),
        "transposed": lambda x: x.t().to("cpu", non_blocking=True),
        "part": lambda x: x[:, 1::3].to("cpu", non_blocking=True),
        "converted": lambda x: x.to("cpu", torch.int32, non_blocking=True),
        "into": lambda x: torch.zeros(x.shape[::-1]).t().copy_(x, non_blocking=True),
    }

    def copied(way: str, device: str, value: float) -> torch.Tensor:
        with busy_stream(device):
            x = torch.arange(float(SIZE), device=device).view(64, -1)
            found = ways[way](x.add_(value))
        synchronize(device)
        return found.contiguous()

    def sent(device: str, value: float) -> torch.Tensor:
        source = pinned(device, torch.full((SIZE,), value))
        with busy_stream(device):
            there = torch.zeros(SIZE, dtype=torch.float64, device=device)
            there.copy_(source)  # blocks
            source.zero_()
        synchronize(device)
        return there

    results = {way: offered(partial(in_rounds, partial(copied, way), device)) for way in ways}
    return {**results, "sent_and_converted": offered(partial(in_rounds, sent, device))}


@scenario(exact=True, area="devices")
def events_in_order(device: str) -> Results:
    """A stream that waits for an event begins behind it, also if the event is recorded again or gone by then."""
    return results_of_parts(
        device, _destroyed, _recorded_again, _recorded_elsewhere_before, _awaited_though_recorded_elsewhere_before,
        _waited_for_again, _in_a_row, _asked, _stream_asked, _awaited, _stream_awaited,
    )  # fmt: skip


Wait = Callable[[torch.Stream, torch.Stream, torch.Event], object]


def _behind(
    wait: Wait, device: str, value: float, *, keeps_event: bool = True, recorded_before: bool = False
) -> torch.Tensor:
    """Return the result of a second stream, which reads a tensor that a first stream writes late.

    ``wait`` makes the second stream wait before it reads. ``keeps_event``: whether the event still exists when it
    reads. ``recorded_before``: whether the event is first recorded on the second stream, which has nothing to do.
    """
    first, second = new_stream(device), new_stream(device)
    if first is None or second is None:
        return filled(device, value) + 1
    x = filled(device, -1.0)
    event: torch.Event | None = torch.Event(device)
    assert event is not None
    second.wait_stream(torch.accelerator.current_stream(x.device))
    if recorded_before:
        event.record(second)
    with on_stream(first):
        keep_busy(device)
        x.fill_(value)
        event.record(first)
    wait(first, second, event)
    if not keeps_event:
        event = None
    with current(second):
        made = x + 1
    synchronize(device)
    return made


def _destroyed(device: str) -> torch.Tensor:
    def wait(_: torch.Stream, second: torch.Stream, event: torch.Event) -> None:
        second.wait_event(event)

    return in_rounds(partial(_behind, wait, keeps_event=False), device)


def _recorded_again(device: str) -> torch.Tensor:
    def wait(first: torch.Stream, second: torch.Stream, event: torch.Event) -> None:
        second.wait_event(event)
        event.record(torch.accelerator.current_stream(first.device))

    return in_rounds(partial(_behind, wait), device)


def _recorded_elsewhere_before(device: str) -> torch.Tensor:
    return in_rounds(partial(_behind, lambda _, second, event: second.wait_event(event), recorded_before=True), device)


def _awaited_though_recorded_elsewhere_before(device: str) -> torch.Tensor:
    return in_rounds(partial(_behind, lambda _, __, event: event.synchronize(), recorded_before=True), device)


def _waited_for_again(device: str) -> torch.Tensor:
    """Record an event several times. Each time, wait for it and read the values that were written before it."""
    stream = new_stream(device)
    event = torch.Event(device) if stream is not None else None
    x, made = torch.zeros(SIZE, device=device), []
    for value in range(ROUNDS):
        with on_stream(stream):
            keep_busy(device)
            x.fill_(value)
            if event is not None:
                event.record(torch.accelerator.current_stream(x.device))
        if event is not None:
            event.wait(torch.accelerator.current_stream(x.device))
        made.append(x + 1)
    synchronize(device)
    return torch.stack(made)


def _in_a_row(device: str) -> torch.Tensor:
    def wait(first: torch.Stream, second: torch.Stream, _: torch.Event) -> None:
        between = torch.Stream(first.device)
        between.wait_stream(first)
        second.wait_stream(between)

    return in_rounds(partial(_behind, wait), device)


def _until(done: Callable[[], bool]) -> None:
    """Poll ``done`` until it returns true. Raises TimeoutError after ``PATIENCE`` seconds."""
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(f"query() says after {PATIENCE:g} s that a few calls are not done")
        time.sleep(0.0001)


def _asked(device: str) -> torch.Tensor:
    return in_rounds(partial(_behind, lambda _, __, event: _until(event.query)), device)


def _stream_asked(device: str) -> torch.Tensor:
    return in_rounds(partial(_behind, lambda first, _, __: _until(first.query)), device)


def _awaited(device: str) -> torch.Tensor:
    return in_rounds(partial(_behind, lambda _, __, event: event.synchronize()), device)


def _stream_awaited(device: str) -> torch.Tensor:
    return in_rounds(partial(_behind, lambda first, _, __: first.synchronize()), device)


@scenario(exact=True, area="devices")
def gradients_of_streams(device: str) -> Results:
    """``backward`` runs on the streams of the forward calls, and the stream that called it sees the gradients."""
    return results_of_parts(device, _called_there, _called_elsewhere, _called_while_it_is_busy)


def _forward(device: str, weight: torch.Tensor, value: float) -> torch.Tensor:
    x = filled(device, value)
    return (x * weight).mul(x).sum()


def _called_there(device: str) -> torch.Tensor:
    def part(device: str, value: float) -> torch.Tensor:
        weight = filled(device, 0.5).requires_grad_()
        with busy_stream(device):
            _forward(device, weight, value).backward()
        synchronize(device)
        assert weight.grad is not None
        return weight.grad

    return in_rounds(part, device)


def _called_elsewhere(device: str) -> torch.Tensor:
    return in_rounds(partial(_seen_elsewhere, False), device)


def _called_while_it_is_busy(device: str) -> torch.Tensor:
    return in_rounds(partial(_seen_elsewhere, True), device)


def _seen_elsewhere(busy: bool, device: str, value: float) -> torch.Tensor:
    """Return the gradient that a stream sees which calls ``backward``, but made no forward call.

    ``busy``: whether the gradients wait for other work of the stream of the forward call.
    """
    weight = filled(device, 0.5).requires_grad_()
    with busy_stream(device) as stream:
        loss = _forward(device, weight, value)
    if stream is not None:
        torch.accelerator.current_stream(stream.device).wait_stream(stream)
    if busy:
        with on_stream(stream):
            keep_busy(device)
    loss.backward()
    assert weight.grad is not None
    seen = weight.grad + 0
    synchronize(device)  # before the gradient's memory is given back
    return seen


@scenario(exact=True, area="devices")
def calls_without_a_wait(device: str) -> Results:
    """Calls take the values that their arguments have when they are called, however many of them wait for their turn.

    Among them are scalars of the host that change afterwards.
    """
    return results_of_parts(device, _many, _one_of_many, _scalars_of_the_host)


def _many(device: str) -> torch.Tensor:
    x = torch.zeros(8, device=device)
    for i in range(MANY):
        x.add_(i % 7)
    return x.cpu()


def _one_of_many(device: str) -> torch.Tensor:
    """Return one result that is read while others wait, and then the others."""
    found = []
    for value in range(ROUNDS):
        sent = pinned(device, torch.full((SIZE,), float(value))).to(device, non_blocking=True)
        others = [sent + i for i in range(4)]
        for i, other in enumerate(others):
            other.add_(other)
            torch.add(other, i, out=other)
        others[2].copy_(others[2].flip(0))
        found += [others[2].cpu(), sent.mul_(2).cpu(), *(other.cpu() for other in others)]
    return torch.stack(found)


def _scalars_of_the_host(device: str) -> torch.Tensor:
    def part(device: str, value: float) -> torch.Tensor:
        scalar, x = torch.tensor(value), torch.arange(float(SIZE), device=device)
        keep_busy(device)
        first = torch.arange(5, device=device)
        made = [x * scalar, torch.where(x > 7, x, scalar), x.clone().fill_(scalar), x.index_fill(0, first, scalar)]
        scalar.fill_(-1)
        synchronize(device)
        return torch.stack(made)

    return in_rounds(part, device)
