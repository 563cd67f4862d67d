"""Work of several streams: its order, and the memory that it uses.

On CPU the same calls run one after the other, and give what the device has to give whenever its work is done. A part
keeps a stream busy, and then does at once what would go wrong if the device forgot that the stream is not done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch

from conformance.scenarios.asking import accelerator, current
from conformance.scenarios.model import NotOffered, Results, first_line, offered, scenario

SIZE = 4096  # elements of a tensor
ROUNDS = 4  # of a part that depends on who comes first
CALLS = 40  # that keep a stream busy
TAKEN = 16  # tensors that would get memory which is given back too early
MANY = 3000  # calls without a wait
PATIENCE = 30.0  # seconds until work has to be done
#: What c10 says of a device that has no streams, or no events.
LACKING = "doesn't support"

Part = Callable[[str], torch.Tensor]


def _parts(device: str, *parts: Part) -> Results:
    """Return the tensor of each part, by its name."""

    def of(part: Part) -> torch.Tensor:
        try:
            return part(device)
        except RuntimeError as e:
            if LACKING in str(e):
                raise NotOffered(first_line(e)) from e
            raise

    return {part.__name__.strip("_"): offered(partial(of, part)) for part in parts}


def _stream(device: str) -> torch.Stream | None:
    """Return a new stream, None on CPU. Raises NotOffered."""
    if device == "cpu":
        return None
    accelerator(device)
    return torch.Stream(device)


@contextmanager
def _on(stream: torch.Stream | None) -> Iterator[None]:
    """Make a stream the current one, behind what the current one has to do."""
    if stream is None:
        yield
        return
    stream.wait_stream(torch.accelerator.current_stream(stream.device))
    with current(stream):
        yield


@contextmanager
def busy_stream(device: str, calls: int = CALLS) -> Iterator[torch.Stream | None]:
    """Make a new stream the current one, and give it some work before what is called. Raises NotOffered."""
    stream = _stream(device)
    with _on(stream):
        _keep_busy(device, calls)
        yield stream


def synchronize(device: str) -> None:
    """Wait for all work of the device. Raises NotOffered."""
    if device != "cpu":
        accelerator(device)
        torch.accelerator.synchronize(device)


def _filled(device: str, value: float, size: int = SIZE) -> torch.Tensor:
    return torch.full((size,), value, device=device)


def _keep_busy(device: str, calls: int = CALLS) -> None:
    """Give the current stream some work."""
    x = _filled(device, 1.0)
    for _ in range(calls):
        x.mul_(2).div_(2)


def _take(device: str) -> list[torch.Tensor]:
    """Return new tensors, which overwrite memory that is free."""
    return [_filled(device, -1.0) for _ in range(TAKEN)]


def _overwrite_free_memory(device: str) -> None:
    """Fill memory that is free now, and wait for the device."""
    taken = _take(device)
    synchronize(device)
    del taken


def _pinned(device: str, tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy in pinned memory, on CPU in any memory. Raises NotOffered."""
    if device == "cpu":
        return tensor.clone()
    accelerator(device)  # torch pins memory for its accelerator alone
    return tensor.pin_memory()


def _rounds(part: Callable[[str, float], torch.Tensor], device: str) -> torch.Tensor:
    """Return what a part gives for several values, on the host."""
    return torch.stack([part(device, float(i)).cpu() for i in range(ROUNDS)])


@scenario(exact=True, area="memory")
def memory_in_use(device: str) -> Results:
    """Memory that was freed goes to no other tensor while a stream that uses it is not done."""
    return _parts(
        device, _soon_and_late, _late_and_soon, _freed_under_another, _named_by_a_view, _sent_from_pinned,
        _fetched_to_pinned, _fetched_to_freed_pinned,
    )  # fmt: skip


def _used_by_two(calls: tuple[int, int], device: str, value: float) -> torch.Tensor:
    x = _filled(device, value)
    made = []
    for count in calls:
        with busy_stream(device, count) as stream:
            made.append(x + 1)
        if stream is not None:
            x.record_stream(stream)
    del x
    taken = [_take(device)]
    if device != "cpu":
        time.sleep(0.002)  # the first stream is done, the other one is not
        taken.append(_take(device))
    synchronize(device)
    return torch.cat([x.cpu() for x in made])


def _soon_and_late(device: str) -> torch.Tensor:
    return _rounds(partial(_used_by_two, (1, 2 * CALLS)), device)


def _late_and_soon(device: str) -> torch.Tensor:
    return _rounds(partial(_used_by_two, (2 * CALLS, 1)), device)


def _freed_under_another(device: str) -> torch.Tensor:
    def part(device: str, value: float) -> torch.Tensor:
        with busy_stream(device):
            x = _filled(device, value)
            made = x + 1
        del x
        _overwrite_free_memory(device)
        return made

    return _rounds(part, device)


def _named_by_a_view(device: str) -> torch.Tensor:
    """Free memory of which only a part in its middle was told to be used by a stream."""

    def part(device: str, value: float) -> torch.Tensor:
        x = _filled(device, value)[SIZE // 4 : SIZE // 2]
        with busy_stream(device, 8 * CALLS) as stream:  # not done when the memory is taken, also if the host is slow
            made = x + 1
        if stream is not None:
            x.record_stream(stream)
        del x
        _overwrite_free_memory(device)
        return made

    return _rounds(part, device)


def _sent_from_pinned(device: str) -> torch.Tensor:
    def part(device: str, value: float) -> torch.Tensor:
        whole = _pinned(device, torch.full((SIZE + 64,), value))
        with busy_stream(device):
            there = whole[64:].to(device, non_blocking=True)
        del whole
        taken = [_pinned(device, torch.full((SIZE + 64,), -1.0)) for _ in range(TAKEN)]
        synchronize(device)
        del taken
        return there

    return _rounds(part, device)


def _fetched_to_pinned(device: str) -> torch.Tensor:
    def part(device: str, value: float) -> torch.Tensor:
        whole = _pinned(device, torch.zeros(SIZE + 64))
        with busy_stream(device):
            x = _filled(device, value)
            whole[64:].copy_(x, non_blocking=True)
        del x
        _overwrite_free_memory(device)
        return whole

    return _rounds(part, device)


def _fetched_to_freed_pinned(device: str) -> torch.Tensor:
    """Free pinned memory while a copy writes to it late. What takes its place keeps its own values."""

    def part(device: str, value: float) -> torch.Tensor:
        target = _pinned(device, torch.zeros(SIZE))
        with busy_stream(device):
            target.copy_(_filled(device, value + 1), non_blocking=True)
        del target
        taken = [_pinned(device, torch.full((SIZE,), value)) for _ in range(TAKEN)]
        synchronize(device)
        return torch.stack(taken)

    return _rounds(part, device)


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
        source = _pinned(device, torch.full((SIZE,), value))
        with busy_stream(device):
            there = torch.zeros(SIZE, dtype=torch.float64, device=device)
            there.copy_(source)  # blocks
            source.zero_()
        synchronize(device)
        return there

    results = {way: offered(partial(_rounds, partial(copied, way), device)) for way in ways}
    return {**results, "sent_and_converted": offered(partial(_rounds, sent, device))}


@scenario(exact=True, area="devices")
def events_in_order(device: str) -> Results:
    """A stream that waits for an event begins behind it, also if the event is recorded again or gone by then."""
    return _parts(
        device, _destroyed, _recorded_again, _recorded_elsewhere_before, _awaited_though_recorded_elsewhere_before,
        _waited_for_again, _in_a_row, _asked, _stream_asked, _awaited, _stream_awaited,
    )  # fmt: skip


Wait = Callable[[torch.Stream, torch.Stream, torch.Event], object]


def _behind(
    wait: Wait, device: str, value: float, *, keeps_event: bool = True, recorded_before: bool = False
) -> torch.Tensor:
    """Return what a second stream reads of what a first one writes late, once it has waited.

    ``recorded_before``: the event is recorded on the second stream first, which has nothing to do.
    """
    first, second = _stream(device), _stream(device)
    if first is None or second is None:
        return _filled(device, value) + 1
    x = _filled(device, -1.0)
    event: torch.Event | None = torch.Event(device)
    assert event is not None
    second.wait_stream(torch.accelerator.current_stream(x.device))
    if recorded_before:
        event.record(second)
    with _on(first):
        _keep_busy(device)
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

    return _rounds(partial(_behind, wait, keeps_event=False), device)


def _recorded_again(device: str) -> torch.Tensor:
    def wait(first: torch.Stream, second: torch.Stream, event: torch.Event) -> None:
        second.wait_event(event)
        event.record(torch.accelerator.current_stream(first.device))

    return _rounds(partial(_behind, wait), device)


def _recorded_elsewhere_before(device: str) -> torch.Tensor:
    return _rounds(partial(_behind, lambda _, second, event: second.wait_event(event), recorded_before=True), device)


def _awaited_though_recorded_elsewhere_before(device: str) -> torch.Tensor:
    return _rounds(partial(_behind, lambda _, __, event: event.synchronize(), recorded_before=True), device)


def _waited_for_again(device: str) -> torch.Tensor:
    """Record an event several times. A stream waits each time, and reads what is written before."""
    stream = _stream(device)
    event = torch.Event(device) if stream is not None else None
    x, made = torch.zeros(SIZE, device=device), []
    for value in range(ROUNDS):
        with _on(stream):
            _keep_busy(device)
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

    return _rounds(partial(_behind, wait), device)


def _until(done: Callable[[], bool]) -> None:
    """Ask until work is done. Raises TimeoutError if it is not within the patience."""
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(f"query() says after {PATIENCE:g} s that a few calls are not done")
        time.sleep(0.0001)


def _asked(device: str) -> torch.Tensor:
    return _rounds(partial(_behind, lambda _, __, event: _until(event.query)), device)


def _stream_asked(device: str) -> torch.Tensor:
    return _rounds(partial(_behind, lambda first, _, __: _until(first.query)), device)


def _awaited(device: str) -> torch.Tensor:
    return _rounds(partial(_behind, lambda _, __, event: event.synchronize()), device)


def _stream_awaited(device: str) -> torch.Tensor:
    return _rounds(partial(_behind, lambda first, _, __: first.synchronize()), device)


@scenario(exact=True, area="devices")
def gradients_of_streams(device: str) -> Results:
    """``backward`` runs on the streams of the forward calls, and the stream that called it sees the gradients."""
    return _parts(device, _called_there, _called_elsewhere, _called_while_it_is_busy)


def _forward(device: str, weight: torch.Tensor, value: float) -> torch.Tensor:
    x = _filled(device, value)
    return (x * weight).mul(x).sum()


def _called_there(device: str) -> torch.Tensor:
    def part(device: str, value: float) -> torch.Tensor:
        weight = _filled(device, 0.5).requires_grad_()
        with busy_stream(device):
            _forward(device, weight, value).backward()
        synchronize(device)
        assert weight.grad is not None
        return weight.grad

    return _rounds(part, device)


def _called_elsewhere(device: str) -> torch.Tensor:
    return _rounds(partial(_seen_elsewhere, False), device)


def _called_while_it_is_busy(device: str) -> torch.Tensor:
    return _rounds(partial(_seen_elsewhere, True), device)


def _seen_elsewhere(busy: bool, device: str, value: float) -> torch.Tensor:
    """Return the gradient that the stream sees which calls ``backward``, and no forward call.

    ``busy``: the gradients wait behind other work of the stream of the forward call.
    """
    weight = _filled(device, 0.5).requires_grad_()
    with busy_stream(device) as stream:
        loss = _forward(device, weight, value)
    if stream is not None:
        torch.accelerator.current_stream(stream.device).wait_stream(stream)
    if busy:
        with _on(stream):
            _keep_busy(device)
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
    return _parts(device, _many, _one_of_many, _scalars_of_the_host)


def _many(device: str) -> torch.Tensor:
    x = torch.zeros(8, device=device)
    for i in range(MANY):
        x.add_(i % 7)
    return x.cpu()


def _one_of_many(device: str) -> torch.Tensor:
    """Read one result while others wait, and then those."""
    found = []
    for value in range(ROUNDS):
        sent = _pinned(device, torch.full((SIZE,), float(value))).to(device, non_blocking=True)
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
        _keep_busy(device)
        first = torch.arange(5, device=device)
        made = [x * scalar, torch.where(x > 7, x, scalar), x.clone().fill_(scalar), x.index_fill(0, first, scalar)]
        scalar.fill_(-1)
        synchronize(device)
        return torch.stack(made)

    return _rounds(part, device)
