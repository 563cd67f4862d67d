"""Hazards of copies that do more than move a block: they convert, gather, spread or repeat elements.

A backend stages a dense tensor for such a copy, and converts or moves its elements on one side. Each of these steps
is further work that other work has to wait for.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from conformance.hazards.bench import Bench, difference
from conformance.hazards.model import Found, Needs, hazard

PINNED, TWO_DEVICES = Needs.PINNED, Needs.TWO_DEVICES
HOST = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Form:
    """The dtype of a copy's source, and the steps between elements of its source and target; 0: one element for all."""

    name: str
    dtype: torch.dtype = torch.float32
    source_step: int = 1
    target_step: int = 1

    def source(
        self, bench: Bench, value: float, device: torch.device | None = None, *, pinned: bool = False
    ) -> torch.Tensor:
        """Return a tensor on ``device``, by default the bench's, with the value in all elements, and wait for it."""
        return _spread(bench, value, self.dtype, self.source_step, device or bench.device, pinned)

    def target(self, bench: Bench, device: torch.device | None = None, *, pinned: bool = False) -> torch.Tensor:
        """Return a tensor of zeros for the target, in the same way."""
        return _spread(bench, 0, torch.float32, self.target_step, device or bench.device, pinned)


FORMS = (
    Form("a source of another dtype", torch.float16),
    Form("every other element of the source", source_step=2),
    Form("every other element of the target", target_step=2),
    Form("one element for all", source_step=0),
    Form("every other element of another dtype", torch.float16, 2, 2),
)


def _spread(
    bench: Bench, value: float, dtype: torch.dtype, step: int, device: torch.device, pinned: bool
) -> torch.Tensor:
    length = bench.elements * step or 1
    whole = torch.full((length,), float(value), dtype=dtype, device=device, pin_memory=pinned)
    if device != HOST:
        bench.wait(device)
    return whole[::step] if step else whole.expand(bench.elements)


def _fill(tensor: torch.Tensor, value: float) -> None:
    """Fill a tensor. If all its elements share memory, which torch refuses to write, write that element."""
    (tensor if tensor.stride(0) else tensor[:1]).fill_(value)


# From and to the host -----------------------------------------------------------------------------------------------


@hazard("copy_(pageable in each form, non_blocking=True)", "the host's write to the source")
def pageable_sources_of_each_form_reused(bench: Bench) -> Found:
    for form in FORMS:
        target, source = form.target(bench), form.source(bench, 1, HOST)
        bench.busy()
        target.copy_(source, non_blocking=True)
        _fill(source, 9)
        yield difference(f"the target, {form.name}", target, 1)


@hazard("copy_(pinned in each form)", "the host's write to the source", PINNED)
def pinned_sources_of_each_form_reused_after_blocking_copy(bench: Bench) -> Found:
    for form in FORMS:
        target, source = form.target(bench), form.source(bench, 1, HOST, pinned=True)
        bench.busy()
        target.copy_(source)
        _fill(source, 9)
        yield difference(f"the target, {form.name}", target, 1)


@hazard("the kernel that writes the source", "copy_ in each form to the host")
def queued_results_copied_to_the_host_in_each_form(bench: Bench) -> Found:
    for form in FORMS:
        target, source = form.target(bench, HOST), form.source(bench, 1)
        bench.busy()
        _fill(source, 2)
        target.copy_(source)
        yield difference(f"the target, {form.name}", target, 2)


@hazard("copy_ in each form to pinned memory with non_blocking=True", "Event.synchronize() and the host's read", PINNED)
def pinned_targets_of_each_form_read_after_event(bench: Bench) -> Found:
    for form in FORMS:
        target, source, event = form.target(bench, HOST, pinned=True), form.source(bench, 1), bench.event()
        bench.busy()
        _fill(source, 2)
        target.copy_(source, non_blocking=True)
        event.record(bench.current())
        event.synchronize()
        yield difference(f"the target, {form.name}", target, 2)


# Between devices ----------------------------------------------------------------------------------------------------


@hazard("a copy in each form from another device", "the reader on the target's device", TWO_DEVICES)
def read_after_copies_of_each_form_between_devices(bench: Bench) -> Found:
    for form in FORMS:
        source, target = form.source(bench, 1), form.target(bench, bench.second)
        bench.busy()
        _fill(source, 2)
        target.copy_(source, non_blocking=True)
        yield difference(f"what the reader made, {form.name}", target * 10, 20)


@hazard("a queued reader of the target", "a copy in each form from another device", TWO_DEVICES)
def copies_of_each_form_between_devices_after_queued_read(bench: Bench) -> Found:
    for form in FORMS:
        source, target = form.source(bench, 9), form.target(bench, bench.second)
        bench.busy(bench.second)
        y = target + 1
        target.copy_(source, non_blocking=True)
        yield difference(f"what the reader made, {form.name}", y, 1)
        yield difference(f"the target, {form.name}", target, 9)


@hazard("a copy in each form to another device", "an in-place kernel on the source", TWO_DEVICES)
def sources_of_each_form_written_after_copy_between_devices(bench: Bench) -> Found:
    for form in FORMS:
        source, target = form.source(bench, 1), form.target(bench, bench.second)
        bench.busy()
        target.copy_(source, non_blocking=True)
        _fill(source, 9)
        yield difference(f"the target, {form.name}", target, 1)


@hazard(
    "a copy in each form to another device that reads a freed tensor", "another stream's use of the memory", TWO_DEVICES
)
def sources_of_each_form_freed_after_copy_between_devices(bench: Bench) -> Found:
    for form in FORMS:
        source, target = form.source(bench, 1), form.target(bench, bench.second)
        bench.busy()
        target.copy_(source, non_blocking=True)
        del source
        bench.overwrite_free_memory()
        yield difference(f"the target, {form.name}", target, 1)
