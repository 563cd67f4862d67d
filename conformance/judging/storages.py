"""What a call left behind in the storages it was given: aliasing, versions, mutation, bytes that should not move."""

from __future__ import annotations

import torch

from conformance.judging import compare
from conformance.judging.oracle import CallOutcome
from conformance.judging.twins import Argument, Side, device_bytes
from conformance.records import Mismatch
from conformance.torch_versions import storage_id, version
from conformance.vocabulary import Check, Fact


def same_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two strided tensors lie in one storage."""
    return storage_id(a) == storage_id(b)


def argument_of(side: Side, tensor: torch.Tensor) -> int | None:
    """The index of the first argument whose storage ``tensor`` lies in."""
    wanted = storage_id(tensor)
    return next((i for i, a in enumerate(side.arguments) if storage_id(a.tensor) == wanted), None)


def aliasing(expected: CallOutcome, actual: CallOutcome, i: int) -> Mismatch | None:
    """Whether result ``i`` shares its storage with the same argument, or the same earlier result, on both sides."""
    name, want = expected.leaves[i]
    got = actual.leaves[i][1]
    ours, theirs = argument_of(actual.side, got), argument_of(expected.side, want)
    if ours != theirs:
        return _aliasing(name, Fact.ALIASING, _name(actual, ours), _name(expected, theirs))
    if theirs is not None:
        same, both = got is actual.side.arguments[theirs].tensor, want is expected.side.arguments[theirs].tensor
        if same != both:
            return _aliasing(name, Fact.IDENTITY, same, both, argument=_name(expected, theirs))
        return None
    ours, theirs = _earlier(actual, i), _earlier(expected, i)
    if ours != theirs:
        return _aliasing(
            name, Fact.SHARED_RESULTS, *(None if j is None else expected.leaves[j][0] for j in (ours, theirs))
        )
    return None


def _aliasing(name: str, kind: Fact, device: object, cpu: object, **more: object) -> Mismatch:
    return Mismatch(Check.ALIASING, name, {"kind": kind.value, "device": device, "cpu": cpu, **more})


def _name(outcome: CallOutcome, argument: int | None) -> str | None:
    return None if argument is None else outcome.side.arguments[argument].slot.name


def _earlier(outcome: CallOutcome, i: int) -> int | None:
    """The first earlier result in the same storage."""
    wanted = storage_id(outcome.leaves[i][1])
    for j, (_, leaf) in enumerate(outcome.leaves[:i]):
        if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided and storage_id(leaf) == wanted:
            return j
    return None


def versions(expected: Side, actual: Side) -> list[Mismatch]:
    """An op bumps the version counter of what it writes, so that autograd sees it; and of nothing else.

    How often is not compared: autograd asks only whether it moved, and torch itself bumps once more off the CPU, where
    it resizes an output through the dispatcher. A fresh twin's counter is 0. A written argument's may move where
    CPU's does not: kron.out resizes its output on the CPU without a word to autograd.
    """
    found = []
    for want, got in zip(expected.arguments, actual.arguments, strict=True):
        cpu, device = version(want.tensor), version(got.tensor)
        if (device == 0 and cpu > 0) or (device > 0 and cpu == 0 and not want.slot.written):
            facts = {"kind": Fact.VERSION.value, "device": device, "cpu": cpu}
            found.append(Mismatch(Check.VERSION, want.slot.name, facts))
    return found


def storages(expected: Side, actual: Side) -> list[Mismatch]:
    """Every storage that went in, byte for byte, outside the views that may be written.

    A byte is right as it was before the call, and as the CPU left it (which for some ops is not the same).
    """
    found = []
    seen: set[int] = set()
    for want, got in zip(expected.arguments, actual.arguments, strict=True):
        if id(want.base) in seen:
            continue
        seen.add(id(want.base))
        after = device_bytes(got.base)
        if not torch.equal(after, want.base):
            one = _changed(expected, want, after)
            found += [one] if one else []
    return found


def _changed(side: Side, argument: Argument, after: torch.Tensor) -> Mismatch | None:
    sharing = [a for a in side.arguments if a.base is argument.base]
    reached = torch.zeros(after.numel(), dtype=torch.bool)
    for a in sharing:
        _mark(reached, a)
    written = any(a.slot.written for a in sharing)
    return compare.untouched(argument.before, argument.base, after, reached, written, argument.slot.name)


def _mark(reached: torch.Tensor, argument: Argument) -> None:
    """Mark the bytes that the argument's view reaches; all of them once the op gave it another storage or size."""
    tensor, placement = argument.tensor, argument.placement
    moved = storage_id(tensor) != storage_id(argument.base)
    if moved or tensor.shape != placement.size or tensor.stride() != placement.stride:
        reached.fill_(True)
        return
    width = tensor.element_size()
    stride = [s * width for s in placement.stride]
    reached.as_strided((*placement.size, width), (*stride, 1), tensor.storage_offset() * width).fill_(True)
