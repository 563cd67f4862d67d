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
    CPU's does not: kron.out resizes its output on the CPU without telling autograd.
    """
    found = []
    for want, got in zip(expected.arguments, actual.arguments, strict=True):
        cpu, device = version(want.tensor), version(got.tensor)
        if (device == 0 and cpu > 0) or (device > 0 and cpu == 0 and not want.slot.written):
            facts = {"kind": Fact.VERSION.value, "device": device, "cpu": cpu}
            found.append(Mismatch(Check.VERSION, want.slot.name, facts))
    return found


class Fetched:
    """The storages that went into a call, fetched from the device once after it, next to what CPU left in its own."""

    def __init__(self, expected: Side, actual: Side) -> None:
        self._expected = expected
        self._actual = actual
        self._differing: dict[int, tuple[Argument, torch.Tensor]] = {}  # by the id of CPU's storage: the device's bytes
        seen: set[int] = set()
        for want, got in zip(expected.arguments, actual.arguments, strict=True):
            if id(want.base) not in seen:
                seen.add(id(want.base))
                after = device_bytes(got.base)
                if not torch.equal(after, want.base):
                    self._differing[id(want.base)] = (want, after)

    def same(self, i: int) -> bool:
        """Whether argument ``i`` holds the same bits on both sides, because its storage does, where it was put.

        False says nothing: the call may have given it another storage or size.
        """
        want, got = self._expected.arguments[i], self._actual.arguments[i]
        there = all(_stayed(a) and a.tensor.storage_offset() == a.placement.offset for a in (want, got))
        return there and id(want.base) not in self._differing

    def differences(self) -> list[Mismatch]:
        """Every storage, byte for byte, outside the views that may be written.

        A byte is right as it was before the call, and as CPU left it (which for some ops is not the same).
        """
        found = (_changed(self._expected, want, after) for want, after in self._differing.values())
        return [one for one in found if one]


def _stayed(argument: Argument) -> bool:
    """Whether an argument still is the view that it was, over the storage that it was given."""
    tensor, placement = argument.tensor, argument.placement
    return (
        tensor.shape == placement.size
        and tensor.stride() == placement.stride
        and storage_id(tensor) == storage_id(argument.base)
    )


def _changed(side: Side, argument: Argument, after: torch.Tensor) -> Mismatch | None:
    sharing = [a for a in side.arguments if a.base is argument.base]
    reached = torch.zeros(after.numel(), dtype=torch.bool)
    for a in sharing:
        _mark(reached, a)
    written = any(a.slot.written for a in sharing)
    return compare.untouched(argument.before, argument.base, after, reached, written, argument.slot.name)


def _mark(reached: torch.Tensor, argument: Argument) -> None:
    """Mark the bytes that the argument's view reaches; all of them once the op gave it another storage or size."""
    if not _stayed(argument):
        reached.fill_(True)
        return
    tensor, placement = argument.tensor, argument.placement
    width = tensor.element_size()
    stride = [s * width for s in placement.stride]
    reached.as_strided((*placement.size, width), (*stride, 1), tensor.storage_offset() * width).fill_(True)
