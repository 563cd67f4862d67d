"""The text a person reads about a failing case: the call, how its arguments lie, what differs, how to repeat it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from conformance.corpus.model import Arg, ComplexArg, DeviceArg, DtypeArg, EnumArg, GeneratorArg, TensorSlot
from conformance.layouts import Placement
from conformance.plan.cases import Case, slot_dtype

if TYPE_CHECKING:
    from conformance.judging.compare import Mismatch


def failure(case: Case, mismatches: Sequence[Mismatch], route: str, backend: str) -> str:
    """The whole message of a failing case."""
    lines = [
        f"{case.sample.overload} ({route}) in {case.cell.dtype}, layout {case.cell.layout}"
        + (f" on {case.variant}" if case.variant else ""),
        *(f"  {line}" for line in arguments(case)),
        *(f"  {m.check}: {m.message}" for m in mismatches),
        f"  repeat: {repeat(case.id, backend)}",
        f"  script: {script(case.id, backend)}",
    ]
    return "\n".join(lines)


def repeat(case_id: str, backend: str) -> str:
    """The command that runs just this case."""
    return f"pytest --pyargs conformance --backend {backend} --case '{case_id}'"


def script(case_id: str, backend: str) -> str:
    """The command that writes a standalone script of just this case."""
    return f"conformance repro --backend {backend} '{case_id}'"


def arguments(case: Case) -> list[str]:
    """One line an argument; for a tensor its dtype, size, stride, offset and the length of its storage."""
    shared = {slot: earlier for slot, earlier, _ in case.shared}
    names = [_positional(a, i) for i, a in enumerate(case.sample.args)]
    lines: list[str] = []
    for name, arg in [*zip(names, case.sample.args, strict=True), *case.sample.kwargs]:
        lines += _argument(case, name, arg, shared)
    return lines


def _positional(arg: Arg, i: int) -> str:
    if isinstance(arg, TensorSlot):
        return arg.name
    if isinstance(arg, tuple) and arg and isinstance(arg[0], TensorSlot):
        return arg[0].name.partition("[")[0]
    return f"arg {i}"


def _argument(case: Case, name: str, arg: Arg, shared: dict[int, int]) -> list[str]:
    if isinstance(arg, TensorSlot):
        return [_tensor(case, arg, shared)]
    if isinstance(arg, tuple) and any(isinstance(a, TensorSlot) for a in arg):
        return [line for a in arg for line in _argument(case, f"{name}[]", a, shared)]
    return [f"{name}: {plain(arg)}"]


def _tensor(case: Case, slot: TensorSlot, shared: dict[int, int]) -> str:
    placement = case.placements[slot.index]
    text = f"{slot.name}: {slot_dtype(slot, case.cell.dtype)} {figures(placement)}"
    if slot.index in shared:
        text += f", over the storage of {case.sample.tensors[shared[slot.index]].name}"
    if slot.same_as:
        text += f", the same tensor as {slot.same_as}"
    return text


def figures(placement: Placement) -> str:
    """Size, stride, offset and storage of a placement, in elements."""
    bit = f", {placement.bit} bit" if placement.bit else ""
    return (
        f"{placement.layout}: size {list(placement.size)}, stride {list(placement.stride)}, "
        f"offset {placement.offset}, storage {placement.storage}{bit}"
    )


def plain(arg: Arg) -> str:
    """An argument that is no tensor, as one would type it."""
    if isinstance(arg, DtypeArg):
        return f"torch.{arg.name}" if arg.name else "the cell's dtype"
    if isinstance(arg, DeviceArg):
        return "the side's device"
    if isinstance(arg, EnumArg):
        return f"torch.{arg.name}"
    if isinstance(arg, GeneratorArg):
        return f"a generator seeded with {arg.seed}"
    if isinstance(arg, ComplexArg):
        return repr(complex(arg.real, arg.imag))
    if isinstance(arg, tuple):
        return "[" + ", ".join(plain(a) for a in arg) + "]"
    return repr(arg)
