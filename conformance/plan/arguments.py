"""The arguments of a case as records: where each tensor is in its storage, and plain values as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.corpus.model import Arg, ComplexArg, DeviceArg, DtypeArg, EnumArg, GeneratorArg, TensorSlot
from conformance.plan.case import Case, slot_dtype
from conformance.records import PlacedArgument


def placed_arguments(case: Case) -> tuple[PlacedArgument, ...]:
    """Return every argument of ``case``, in the order of the schema; the tensors of a list one by one."""
    names = [_positional(a, i) for i, a in enumerate(case.sample.args)]
    pairs = [*zip(names, case.sample.args, strict=True), *case.sample.kwargs]
    return tuple(placed for name, arg in pairs for placed in _placed(case, name, arg))


def _positional(arg: Arg, i: int) -> str:
    if isinstance(arg, TensorSlot):
        return arg.name
    if isinstance(arg, tuple) and arg and isinstance(arg[0], TensorSlot):
        return arg[0].argument
    return f"arg {i}"


def _placed(case: Case, name: str, arg: Arg) -> list[PlacedArgument]:
    if isinstance(arg, TensorSlot):
        return [_tensor(case, arg)]
    if isinstance(arg, tuple) and any(isinstance(a, TensorSlot) for a in arg):
        return [placed for a in arg for placed in _placed(case, f"{name}[]", a)]
    return [PlacedArgument(name, text=plain(arg))]


def _tensor(case: Case, slot: TensorSlot) -> PlacedArgument:
    """Return a slot as the twins place it. If it is in an earlier argument's storage, it has its offset there."""
    at = slot.index
    if slot.same_as:
        at = next(s.index for s in case.sample.tensors if s.name == slot.same_as)
    placement = case.placements[at]
    offset, storage, shared_with = placement.offset, placement.storage, ""
    for index, earlier, distance in case.shared:
        if index == slot.index:
            same = distance == 0 and placement == case.placements[earlier]
            offset = placement.offset if same else distance
            storage = case.placements[earlier].storage
            shared_with = case.sample.tensors[earlier].name
    return PlacedArgument(
        slot.name, slot_dtype(slot, case.cell.dtype), placement.layout, placement.size, placement.stride, offset,
        storage, placement.bit, shared_with, slot.same_as,
    )  # fmt: skip


def plain(arg: Arg) -> str:
    """Return a non-tensor argument as one would type it."""
    return _TEXTS.get(type(arg), repr)(arg)


_TEXTS: dict[type, Callable[[Any], str]] = {
    DtypeArg: lambda arg: f"torch.{arg.name}" if arg.name else "the cell's dtype",
    DeviceArg: lambda _: "the side's device",
    EnumArg: lambda arg: f"torch.{arg.name}",
    GeneratorArg: lambda arg: f"a generator seeded with {arg.seed}",
    ComplexArg: lambda arg: repr(complex(arg.real, arg.imag)),
    tuple: lambda arg: "[" + ", ".join(map(plain, arg)) + "]",
}
