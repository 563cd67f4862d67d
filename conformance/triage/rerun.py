"""Repetition of a sequence's steps on the device with shared storages; the last step is compared with CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from conformance.backends import Capabilities
from conformance.calls.capture import Capture, bytes_of
from conformance.calls.model import RecordedTwins
from conformance.calls.sequence import Step
from conformance.corpus.model import TensorSlot
from conformance.inventory import call_of
from conformance.judging import oracle
from conformance.judging.oracle import CallOutcome
from conformance.judging.twins import Side
from conformance.records import Mismatch
from conformance.triage.given_twice import GivenTwice
from conformance.triage.watch import differences


def last(steps: Sequence[Step], backend: Capabilities, tell: Callable[[int], None]) -> list[Mismatch]:
    """Repeat all steps. Return the last step's differences from CPU. ``tell`` is called with the index of each step.

    A storage is created with the recorded bytes at the first step that uses it, and lives until a step frees it.
    """
    device = torch.device(backend.device)
    bases: dict[int, torch.Tensor] = {}
    given = GivenTwice(device)
    for i, step in enumerate(steps[:-1]):
        tell(i)
        _free(step, bases)
        _leave(step, _made(step, backend, _Linked(step, bases).side(step.call.case, device)), bases, given)
    backend.verify_memory()  # ignore damage from earlier steps
    tell(len(steps) - 1)
    _free(steps[-1], bases)
    return _judged(steps[-1], backend, bases, given)


def _judged(step: Step, backend: Capabilities, bases: dict[int, torch.Tensor], given: GivenTwice) -> list[Mismatch]:
    device = torch.device(backend.device)
    linked = _Linked(step, bases).side(step.call.case, device)
    call, side = Capture(device).take(call_of(step.call.overload), linked.args, linked.kwargs, "last")
    actual = _made(step, backend, side)
    return differences(backend, call, actual, given.look(step.call.overload, actual))


def _made(step: Step, backend: Capabilities, side: Side) -> CallOutcome:
    return oracle.call(call_of(step.call.overload), side, synchronize=backend.synchronize)


def _free(step: Step, bases: dict[int, torch.Tensor]) -> None:
    for number in step.freed:
        bases.pop(number, None)


def _leave(step: Step, outcome: CallOutcome, bases: dict[int, torch.Tensor], given: GivenTwice) -> None:
    """Keep the results for later steps that use them."""
    given.look(step.call.overload, outcome)
    for number, (_, leaf) in zip(step.results, outcome.leaves, strict=False):
        if number is not None and isinstance(leaf, torch.Tensor):
            bases.setdefault(number, bytes_of(leaf))


class _Linked(RecordedTwins):
    """The arguments of a step, in the existing storages of earlier steps."""

    def __init__(self, step: Step, bases: dict[int, torch.Tensor]) -> None:
        super().__init__(step.call.storages)
        self._numbers, self._bases = step.storages, bases

    def base(self, slot: TensorSlot, template: torch.Tensor, device: torch.device) -> torch.Tensor:
        number = self._numbers[slot.index]
        if number is None:
            return super().base(slot, template, device)
        if number not in self._bases:
            self._bases[number] = super().base(slot, template, device)
        return self._bases[number]
