"""Hazards between a device and the host: copies, and calls that read a value."""

from __future__ import annotations

import io

import torch

from conformance.hazards.bench import Bench, difference
from conformance.hazards.model import Found, Needs, hazard

PINNED, STREAMS = Needs.PINNED, Needs.STREAMS
#: Sizes of copies in bytes: above those at which backends begin to copy in another way.
SIZES = tuple(size + 4096 for size in (64 << 10, 1 << 20, 4 << 20, 16 << 20))


def copied(bench: Bench) -> tuple[torch.Tensor, torch.Stream]:
    """Return a pinned tensor that another stream has yet to fill with twos from the device, and this stream."""
    target, stream = bench.host(0, pinned=True), bench.stream()
    with bench.on(stream):
        x = bench.full(1)  # memory of this stream, so a free waits for the copy
        bench.busy()
        target.copy_(x.add_(1), non_blocking=True)
    return target, stream


@hazard("copy_(pageable, non_blocking=True)", "the host's write to the source")
def pageable_source_reused(bench: Bench) -> Found:
    target, source = bench.full(0), bench.host(1)
    bench.busy()
    target.copy_(source, non_blocking=True)
    source.fill_(2)
    yield difference("the target", target, 1)


@hazard("copy_(pageable of any size, non_blocking=True)", "the host's write to the source")
def pageable_sources_of_each_size_reused(bench: Bench) -> Found:
    for size in SIZES:
        target, source = torch.zeros(size // 4, device=bench.device), torch.ones(size // 4)
        bench.wait()
        bench.busy()
        target.copy_(source, non_blocking=True)
        source.fill_(2)
        yield difference(f"the target of {size} bytes", target, 1)


@hazard("copy_(pinned)", "the host's write to the source", PINNED)
def pinned_source_reused_after_blocking_copy(bench: Bench) -> Found:
    target, source = bench.full(0), bench.host(1, pinned=True)
    bench.busy()
    target.copy_(source)
    source.fill_(2)
    yield difference("the target", target, 1)


@hazard("copy_(pinned, non_blocking=True)", "Event.synchronize() and the host's write to the source", PINNED)
def pinned_source_reused_after_event(bench: Bench) -> Found:
    target, source, event = bench.full(0), bench.host(1, pinned=True), bench.event()
    bench.busy()
    target.copy_(source, non_blocking=True)
    event.record(bench.current())
    event.synchronize()
    source.fill_(2)
    yield difference("the target", target, 1)


@hazard("copy_(pinned, non_blocking=True)", "the next user of the freed pinned memory", PINNED)
def pinned_source_freed(bench: Bench) -> Found:
    target, source = bench.full(0), bench.host(1, pinned=True)
    bench.busy()
    target.copy_(source, non_blocking=True)
    del source
    others = [bench.host(9, pinned=True) for _ in range(4)]
    yield difference("the target", target, 1)
    del others


@hazard("the kernel that writes the tensor", "cpu()")
def cpu_reads_queued_result(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    x.add_(1)
    yield difference("the copy on the host", x.cpu(), 2)


@hazard("the kernel that writes the tensor", "cpu() of any size")
def cpu_reads_queued_results_of_each_size(bench: Bench) -> Found:
    for size in SIZES:
        x = torch.ones(size // 4, device=bench.device)
        bench.wait()
        bench.busy()
        x.add_(1)
        yield difference(f"the copy of {size} bytes", x.cpu(), 2)


@hazard("the kernel that writes the tensor", "copy_ to a pinned tensor", PINNED)
def pinned_target_read_after_blocking_copy(bench: Bench) -> Found:
    x, target = bench.full(1), bench.host(0, pinned=True)
    bench.busy()
    x.add_(1)
    target.copy_(x)
    yield difference("the target", target, 2)


@hazard("copy_ to a pinned tensor with non_blocking=True", "Event.synchronize() and the host's read", PINNED)
def pinned_target_read_after_event(bench: Bench) -> Found:
    x, target, event = bench.full(1), bench.host(0, pinned=True), bench.event()
    bench.busy()
    target.copy_(x.add_(1), non_blocking=True)
    event.record(bench.current())
    event.synchronize()
    yield difference("the target", target, 2)


@hazard("copy_ to a pinned tensor with non_blocking=True", "synchronize() of its stream and the host's read", PINNED)
def pinned_target_read_after_stream(bench: Bench) -> Found:
    target, stream = copied(bench)
    stream.synchronize()
    yield difference("the target", target, 2)


@hazard("copy_ to a pinned tensor with non_blocking=True", "query() of its stream and the host's read", PINNED)
def pinned_target_read_after_query(bench: Bench) -> Found:
    target, stream = copied(bench)
    bench.until(stream.query)
    yield difference("the target", target, 2)


@hazard("copy_ to a pinned tensor with non_blocking=True", "query() of an event and the host's read", PINNED)
def pinned_target_read_after_event_query(bench: Bench) -> Found:
    (target, stream), event = copied(bench), bench.event()
    event.record(stream)
    bench.until(event.query)
    yield difference("the target", target, 2)


@hazard("copy_ to pinned tensors on several streams", "synchronize() of the device and the host's read", PINNED)
def pinned_targets_read_after_device(bench: Bench) -> Found:
    x = bench.full(1)
    targets = [bench.host(0, pinned=True) for _ in range(3)]
    for target in targets:
        with bench.on(bench.stream()):
            bench.busy()
            target.copy_(x, non_blocking=True)
    bench.wait()
    for number, target in enumerate(targets):
        yield difference(f"target {number}", target, 1)


@hazard("the kernel that writes the value", "item()")
def item_reads_queued_value(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    value = x.add_(1).sum().item()
    yield difference("item()", torch.tensor([value]), 2 * bench.elements)


@hazard("the kernel that writes the tensor", "tolist()")
def tolist_reads_queued_values(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    yield difference("tolist()", torch.tensor(x.add_(1).tolist()), 2)


@hazard("the kernel that writes the tensor", "equal()")
def equal_compares_queued_values(bench: Bench) -> Found:
    x, same = bench.full(1), bench.full(2)
    bench.busy()
    x.add_(1)
    yield difference("equal()", torch.tensor([float(torch.equal(x, same))]), 1)


@hazard("the kernel that writes the condition", "nonzero()")
def nonzero_counts_queued_values(bench: Bench) -> Found:
    x = bench.full(0)
    bench.busy()
    x[3:5] = 1
    found = x.nonzero().cpu()
    yield difference("the number of rows of nonzero()", torch.tensor([float(found.shape[0])]), 2)
    yield difference("nonzero()", found, torch.tensor([[3], [4]]))


@hazard("the kernel that writes the mask", "masked_select()")
def masked_select_counts_queued_values(bench: Bench) -> Found:
    x, mask = bench.full(4), torch.zeros(bench.elements, dtype=torch.bool, device=bench.device)
    bench.wait()
    bench.busy()
    mask[1:4] = True
    found = torch.masked_select(x, mask).cpu()
    yield difference("the length of masked_select()", torch.tensor([float(found.numel())]), 3)


@hazard("the kernel that writes the value", "bool()")
def bool_reads_queued_value(bench: Bench) -> Found:
    x = bench.full(0)
    bench.busy()
    x[0] = 1
    yield difference("bool(x.any())", torch.tensor([float(bool(x.any()))]), 1)


@hazard("the kernel that writes the tensor", "repr()")
def printing_shows_queued_values(bench: Bench) -> Found:
    x = bench.full(1)[:3]
    bench.busy()
    x.add_(1)
    shown = float("2., 2., 2." in repr(x))
    yield difference("whether repr() shows the values", torch.tensor([shown]), 1)


@hazard("the kernel that writes the tensor", "torch.save()")
def saving_stores_queued_values(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    x.add_(1)
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    yield difference("the stored tensor", torch.load(file, map_location="cpu"), 2)


@hazard("the kernels before an error", "the work after it")
def an_error_while_work_is_queued(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    x.add_(1)
    try:
        torch.mm(x.view(1, -1), x.view(1, -1))  # the shapes do not match
    except RuntimeError:
        x.mul_(3)
    yield difference("the tensor", x, 6)


@hazard("draws that are queued", "manual_seed()", Needs.SEEDS)
def seeding_while_draws_are_queued(bench: Bench) -> Found:
    torch.manual_seed(3)
    first = [torch.rand(bench.elements, device=bench.device).cpu() for _ in range(2)]
    torch.manual_seed(3)
    bench.busy()
    draws = [torch.rand(bench.elements, device=bench.device) for _ in range(2)]
    torch.manual_seed(3)
    draws.append(torch.rand(bench.elements, device=bench.device))
    for number, (draw, wanted) in enumerate(zip(draws, (*first, first[0]), strict=True)):
        yield difference(f"draw {number}", draw, wanted)
