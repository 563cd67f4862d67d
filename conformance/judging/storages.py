"""The storages of a call's arguments: aliasing, version counters, mutation, and bytes that must not change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from conformance import torch_versions
from conformance.judging import bits, compare, host_memory
from conformance.judging.oracle import CallOutcome
from conformance.judging.twins import Argument, Side
from conformance.judging.views import device_bytes, view
from conformance.records import Mismatch
from conformance.torch_versions import storage_id
from conformance.vocabulary import Check, Fact

# The storage of a new result may have MOST_TIMES the bytes that CPU's storage has or that the result needs, plus
# MOST_MORE. Some devices pad each of the last two dimensions to 16 elements, and round sizes up.
MOST_TIMES = 16
MOST_MORE = 64 << 10


def same_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two strided tensors lie in one storage."""
    return storage_id(a) == storage_id(b)


class Sharing:
    """The results of an outcome that lie in the storages of arguments or of earlier results."""

    def __init__(self, outcome: CallOutcome) -> None:
        self._outcome = outcome
        self._arguments = len(outcome.side.arguments)
        first: dict[int, int] = {}  # by storage: its first argument, or len(arguments) + its first result
        for i, storage in enumerate(torch_versions.storage_ids(a.tensor for a in outcome.side.arguments)):
            first.setdefault(storage, i)
        self._first: list[int] = []
        for i, (_, leaf) in enumerate(outcome.leaves, start=self._arguments):
            strided = isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided
            self._first.append(first.setdefault(storage_id(leaf), i) if strided else i)

    def argument(self, i: int) -> int | None:
        """Return the index of the first argument whose storage result ``i`` lies in."""
        first = self._first[i]
        return first if first < self._arguments else None

    def earlier(self, i: int) -> int | None:
        """Return the index of the first earlier result in the same storage; None if the storage is an argument's."""
        first = self._first[i] - self._arguments
        return first if 0 <= first < i else None

    def is_argument(self, i: int) -> bool:
        """Return whether result ``i`` is the very argument whose storage it lies in."""
        argument = self.argument(i)
        return argument is not None and self._outcome.leaves[i][1] is self._outcome.side.arguments[argument].tensor

    def argument_name(self, i: int) -> str | None:
        """Return the name of the argument whose storage result ``i`` lies in."""
        argument = self.argument(i)
        return None if argument is None else self._outcome.side.arguments[argument].slot.name

    def result_name(self, i: int | None) -> str | None:
        """Return the name of result ``i``; None for None."""
        return None if i is None else self._outcome.leaves[i][0]


def aliasing(expected: Sharing, actual: Sharing, i: int) -> Mismatch | None:
    """Return a mismatch unless result ``i`` shares its storage with the same argument or result on both sides."""
    argument = expected.argument(i)
    if actual.argument(i) != argument:
        return _aliasing(expected, i, Fact.ALIASING, actual.argument_name(i), expected.argument_name(i))
    if argument is not None:
        same, both = actual.is_argument(i), expected.is_argument(i)
        if same != both:
            return _aliasing(expected, i, Fact.IDENTITY, same, both, argument=expected.argument_name(i))
        return None
    ours, theirs = actual.earlier(i), expected.earlier(i)
    if ours != theirs:
        return _aliasing(expected, i, Fact.SHARED_RESULTS, *(expected.result_name(j) for j in (ours, theirs)))
    return None


def _aliasing(expected: Sharing, i: int, kind: Fact, device: object, cpu: object, **more: object) -> Mismatch:
    name = expected.result_name(i) or ""
    return Mismatch(Check.ALIASING, name, {"kind": kind.value, "device": device, "cpu": cpu, **more})


def oversized(want: torch.Tensor, got: torch.Tensor, name: str) -> Mismatch | None:
    """Return a mismatch if a new result keeps far more memory than CPU's, such as the memory for the worst case.

    A result with CPU's sizes and strides may be the beginning of a large storage. This storage lives as long as the
    result, and ``torch.save`` writes it.
    """
    ours, theirs = _nbytes(got), _nbytes(want)
    if ours <= MOST_TIMES * max(theirs, _span(got)) + MOST_MORE:
        return None
    return Mismatch(Check.STORAGE, name, {"kind": Fact.STORAGE.value, "device": ours, "cpu": theirs})


def _nbytes(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor's storage; 0 if torch does not give them."""
    try:
        return int(tensor.untyped_storage().nbytes())
    except (RuntimeError, NotImplementedError):
        return 0


def _span(tensor: torch.Tensor) -> int:
    """Return the bytes from the first element of a tensor to the end of its last one."""
    if not tensor.numel():
        return 0
    last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return int((last + 1) * tensor.element_size())


def versions(expected: Side, actual: Side) -> list[Mismatch]:
    """Return a mismatch for each version counter that CPU's call bumps and the device's call does not.

    A counter that only the device's call bumps is a mismatch too, unless the schema marks the argument as written:
    kron.out resizes its output on CPU without telling autograd. The number of bumps is not compared: autograd asks
    only whether the counter moved, and torch itself bumps once more on other devices, where it resizes an output
    through the dispatcher. The counter of a fresh twin is 0.
    """
    ours, theirs = (torch_versions.versions(a.tensor for a in side.arguments) for side in (actual, expected))
    if ours == theirs:
        return []
    found = []
    for want, device, cpu in zip(expected.arguments, ours, theirs, strict=True):
        if (device == 0 and cpu > 0) or (device > 0 and cpu == 0 and not want.slot.written):
            facts = {"kind": Fact.VERSION.value, "device": device, "cpu": cpu}
            found.append(Mismatch(Check.VERSION, want.slot.name, facts))
    return found


def moved(expected: Side, actual: Side, send: Callable[[], Side]) -> list[Mismatch]:
    """Return a mismatch for each written argument, such as a grown ``out=``, that only the device moved.

    ``send`` returns the same arguments before any call: on some devices no tensor lies in the storage of its base.
    """
    pairs = zip(expected.arguments, actual.arguments, strict=True)
    written = [(i, want, got) for i, (want, got) in enumerate(pairs) if want.slot.written]
    found = [i for i, want, got in written if _is_at_home(want) and not _is_at_home(got)]
    before = send().arguments if found else []
    facts = {"kind": Fact.NEW_STORAGE.value, "device": True, "cpu": False}
    return [Mismatch(Check.ALIASING, before[i].slot.name, facts) for i in found if _is_at_home(before[i])]


class Fetched:
    """The storages of a call's arguments, fetched from the device once after the call, next to CPU's."""

    def __init__(self, expected: Side, actual: Side) -> None:
        self._expected = expected
        self._actual = actual
        self._differing: dict[int, tuple[Argument, torch.Tensor]] = {}  # by the id of CPU's storage: the device's bytes
        seen: set[int] = set()
        for want, got in zip(expected.arguments, actual.arguments, strict=True):
            if id(want.base) not in seen:
                seen.add(id(want.base))
                after = device_bytes(got.base, got.before)
                if not host_memory.same_bytes(after, want.base):
                    self._differing[id(want.base)] = (want, after)

    def same(self, i: int) -> bool:
        """Return whether argument ``i`` has equal storages on both sides, and both calls left it where it was.

        False does not mean that its values differ: the call may have given it another storage or size.
        """
        want, got = self._expected.arguments[i], self._actual.arguments[i]
        return id(want.base) not in self._differing and _is_in_place(want) and _is_in_place(got)

    def differences(self, send: Callable[[], Side] | None = None) -> list[Mismatch]:
        """Return the differences in every storage, byte for byte, outside the views that may be written.

        ``send`` returns the same arguments on the device, before any call. A byte that comes back the same from these
        was changed by the copies to the device and back, for example because copies flush subnormal numbers to zero.

        A byte is right if it is as before the call, or as CPU left it (which for some ops is not the same). If CPU
        changes an element of an ``out=`` argument's storage that no view reaches, as ops do that resize it for a
        while, the element's value is undefined. An element that CPU wrote through several indices is undefined, too.
        """
        found = [_changed(self._expected, want, after) for want, after in self._differing.values()]
        if send and any(one and one.check is Check.MUTATION for one in found):
            found = [_changed(self._expected, want, after) for want, after in self._where_not_copied(send)]
        return [one for one in found if one]

    def of_refused(self, refused_early: Callable[[], bool], send: Callable[[], Side] | None = None) -> list[Mismatch]:
        """Return the changes by a refused call to the arguments that it may write, if CPU changed nothing.

        A kernel may find an error after it has begun to write. Its arguments are then undefined. Therefore changes
        count only if the call is ``refused_early``, that is, before it reads any value. ``send``: see
        :meth:`differences`.
        """
        left = [want.slot.written and _stayed(want) for want in self._expected.arguments]
        pairs = zip(left, self._expected.arguments, self._actual.arguments, strict=True)
        found = [compare.metadata(want.tensor, got.tensor, want.slot.name) for stays, want, got in pairs if stays]
        found += [_written_in_vain(self._expected, *pair) for pair in self._differing.values()]
        if send and any(one and one.kind == Fact.BYTES.value for one in found):
            found = [one for one in found if one and one.kind != Fact.BYTES.value]
            found += [_written_in_vain(self._expected, *pair) for pair in self._where_not_copied(send)]
        refused = [replace(one, facts={**one.facts, "refused": True}) for one in found if one]
        return refused if refused and refused_early() else []

    def _where_not_copied(self, send: Callable[[], Side]) -> list[tuple[Argument, torch.Tensor]]:
        """Return the storages that differ, with CPU's bytes where copies to the device and back make the difference."""
        fresh = zip(self._expected.arguments, send().arguments, strict=True)
        sent = {id(want.base): device_bytes(got.base, got.before) for want, got in fresh}
        return [(want, _where_copied(want, after, sent[base])) for base, (want, after) in self._differing.items()]


def lies_as_documented(want: Argument, got: Argument) -> bool:
    """Return whether a device's ``out=`` argument has documented strides. ``want``: CPU's, which may have others.

    An ``out=`` of the right size keeps its strides, which some CPU kernels change. An ``out=`` of another size is
    resized, and is then contiguous. Some CPU kernels only remove its dimensions of size 1.
    """
    if not _is_out(got):
        return False
    return _stayed(got) or (_is_squeezed(want) and got.tensor.is_contiguous())


def lies_as_new(want: torch.Tensor, got: torch.Tensor) -> bool:
    """Return whether a tensor is row-major, and has CPU's strides in each dimension of more than one element.

    New tensors are row-major. The stride of a dimension of size 1 has no effect, and torch does not define it.
    """
    return _leads_as(want, got) and got.stride() == torch.empty(got.shape, device="meta").stride()


def lies_as_an_argument(want: torch.Tensor, got: torch.Tensor, side: Side) -> bool:
    """Return whether a tensor has an argument's size and strides, and CPU's strides in dimensions above size 1."""
    like = any(a.tensor.shape == got.shape and a.tensor.stride() == got.stride() for a in side.arguments)
    return like and _leads_as(want, got)


def lies_densely(got: torch.Tensor) -> bool:
    """Return whether the elements of a tensor fill its memory without gaps, in any order of its dimensions."""
    expected = 1
    for size, stride in sorted(zip(got.shape, got.stride(), strict=True), key=lambda pair: pair[1]):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _leads_as(want: torch.Tensor, got: torch.Tensor) -> bool:
    """Return whether a tensor has CPU's strides in each dimension of more than one element."""
    pairs = zip(got.shape, want.stride(), got.stride(), strict=True)
    return want.shape == got.shape and all(n == 1 or a == b for n, a, b in pairs)


def _is_out(argument: Argument) -> bool:
    """Return whether the op writes an argument that has no value before the call."""
    return argument.slot.written and not argument.slot.pool


def _is_squeezed(out: Argument) -> bool:
    """Return whether an argument kept its strides, and has fewer dimensions of size 1."""
    tensor, placement = out.tensor, out.placement
    before, after = zip(placement.size, placement.stride, strict=True), zip(tensor.shape, tensor.stride(), strict=True)
    fewer = tensor.dim() < len(placement.size)
    return fewer and [pair for pair in before if pair[0] != 1] == [pair for pair in after if pair[0] != 1]


def _is_at_home(argument: Argument) -> bool:
    """Return whether an argument lies in the storage that it was given."""
    return storage_id(argument.tensor) == storage_id(argument.base)


def _stayed(argument: Argument) -> bool:
    """Return whether an argument still is the view that it was, over the storage that it was given."""
    tensor, placement = argument.tensor, argument.placement
    return tensor.shape == placement.size and tensor.stride() == placement.stride and _is_at_home(argument)


def _is_in_place(argument: Argument) -> bool:
    """Return whether an argument stayed where it was, with the offset that it had."""
    return argument.tensor.storage_offset() == argument.placement.offset and _stayed(argument)


def _changed(side: Side, argument: Argument, after: torch.Tensor) -> Mismatch | None:
    sharing = [a for a in side.arguments if a.base is argument.base]
    reached = torch.zeros(after.numel(), dtype=torch.bool)
    for a in sharing:
        _mark(reached, a)
    written = any(a.slot.written or is_written_unmarked(a, sharing) for a in sharing)
    if any(a.placement.several_indices for a in sharing):
        # CPU's threads compete for an element that they write through several indices.
        after = torch.where(reached & (argument.base != argument.before), argument.base, after)
    if _is_out(argument):
        after = torch.where(~reached & _elements_changed(argument), argument.base, after)
    return compare.untouched(argument.before, argument.base, after, reached, written, argument.slot.name)


def _written_in_vain(side: Side, argument: Argument, after: torch.Tensor) -> Mismatch | None:
    """Return a mismatch of bytes that changed in the views of a writable storage, if CPU changed nothing in it."""
    sharing = [a for a in side.arguments if a.base is argument.base]
    if not any(a.slot.written for a in sharing) or not host_memory.same_bytes(argument.base, argument.before):
        return None
    reached = torch.zeros(after.numel(), dtype=torch.bool)
    for a in sharing:
        _mark(reached, a)
    after = torch.where(reached, after, argument.base) if after.shape == argument.base.shape else after
    return compare.untouched(argument.before, argument.base, after, reached, False, argument.slot.name)


def _where_copied(argument: Argument, after: torch.Tensor, sent: torch.Tensor) -> torch.Tensor:
    """Return the bytes after a call, with CPU's in place of those that come back the same without a call."""
    if not after.shape == sent.shape == argument.base.shape:
        return after
    return torch.where(after == sent, argument.base, after)


def is_written_unmarked(argument: Argument, among: Sequence[Argument]) -> bool:
    """Return whether CPU wrote an argument that the schema does not mark, and that has one index for each element.

    False if an argument in the same storage is marked: then CPU wrote that argument.
    """
    if argument.placement.several_indices or any(a.slot.written for a in among if a.base is argument.base):
        return False
    return _stayed(argument) and not bits.same_bits(
        view(argument.before, argument.tensor.dtype, argument.placement), argument.tensor
    )


def _elements_changed(argument: Argument) -> torch.Tensor:
    """Return a mask of the bytes of all elements of a storage that a call changed."""
    changed = argument.base != argument.before
    width = argument.tensor.element_size()
    whole = changed.numel() // width * width
    of_elements = changed[:whole].view(-1, width).any(1, keepdim=True).expand(-1, width).reshape(-1)
    return torch.cat([of_elements, changed[whole:]])


def _mark(reached: torch.Tensor, argument: Argument) -> None:
    """Mark the bytes that the argument's view reaches; all bytes if the op gave it another storage or size."""
    if not _stayed(argument):
        reached.fill_(True)
        return
    tensor, placement = argument.tensor, argument.placement
    width = tensor.element_size()
    stride = [s * width for s in placement.stride]
    reached.as_strided((*placement.size, width), (*stride, 1), tensor.storage_offset() * width).fill_(True)
