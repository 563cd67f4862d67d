"""A short script of a few small calls, which needs only torch and the backend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from conformance.backends import Capabilities
from conformance.calls.model import Call
from conformance.calls.sequence import Step
from conformance.corpus.model import Arg, ComplexArg, DeviceArg, DtypeArg, EnumArg, GeneratorArg, TensorSlot
from conformance.explain.repro import attribute, literal
from conformance.judging.views import torch_dtype
from conformance.layouts import Placement
from conformance.triage.shrink import counting

MOST_VALUES = 64  # largest storage whose values are written out
MOST_STEPS = 12

_TEMPLATE = '''"""{title}"""
import torch
{imports}

def call(device):
{body}

expected, actual = call("cpu"), call("{device}")
torch.testing.assert_close(actual, expected, check_device=False, equal_nan=True)
'''


def script(steps: Sequence[Step], backend: Capabilities, title: str, everything: bool = False) -> str:
    """Return the script. With ``everything``, it also compares the live tensors of the calls before the last.

    Raises ValueError if the calls cannot be written as a short script: for too many calls or values, for a storage with
    two dtypes, and if one of several results is freed before the others.
    """
    if len(steps) > MOST_STEPS:
        raise ValueError(f"{len(steps)} calls are too many")
    module = backend.module
    text = _TEMPLATE.format(
        title=title,
        imports="" if module == "torch" else f"import {module}\n",
        body="\n".join(f"    {line}" for line in _Writer().lines(steps, everything)),
        device=backend.device,
    )
    return text.replace("\n\n\n", "\n\n")


def own_lines(text: str) -> int:
    """Return the number of lines that are neither blank nor imports nor the title."""
    return sum(bool(t.strip()) and not t.startswith(("import ", '"""')) for t in text.splitlines())


class _Writer:
    """A writer of the lines of the function. An existing storage is used through its first variable."""

    def __init__(self) -> None:
        self._made = 0  # number of tensors written out
        self._variables: dict[int, list[str]] = {}  # number of a storage -> its variables
        self._seen: dict[int, tuple[str | None, Placement | None]] = {}  # dtype and placement of the first variable

    def lines(self, steps: Sequence[Step], everything: bool) -> list[str]:
        """Return all lines. The last one is a return statement."""
        lines: list[str] = []
        for i, step in enumerate(steps):
            lines += self._freed(step)
            texts = [self._tensor(step, slot, lines) for slot in step.call.case.sample.tensors]
            made = _call(step.call, texts)
            if i < len(steps) - 1:
                lines.append(self._result(step, made, i))
        lines.append(f"return {', '.join([made, *(self._alive() if everything else ())])}")
        return lines

    def _alive(self) -> Iterator[str]:
        """Yield an expression for every live storage."""
        for number, (first, *_) in self._variables.items():
            placement = self._seen[number][1]
            whole = f".as_strided(({placement.storage},), (1,), 0)" if placement and not placement.bit else ""
            yield first + (whole if placement and placement.layout != "contiguous" else "")

    def _freed(self, step: Step) -> list[str]:
        gone = [v for n in step.freed for v in self._variables.pop(n, ())]
        if any("[" in v for v in gone):
            raise ValueError("one of several results was freed before the others")
        return [f"del {', '.join(gone)}"] if gone else []

    def _tensor(self, step: Step, slot: TensorSlot, lines: list[str]) -> str:
        """Return the expression for an argument. For a new storage, append the line that creates it to ``lines``."""
        number, placement = step.storages[slot.index], step.call.case.placements[slot.index]
        if number is not None and number in self._variables:
            return self._again(number, slot, placement)
        variable = f"t{self._made}"
        self._made += 1
        lines.append(f"{variable} = {_values_of(step.call, slot)}  # {slot.name}")
        if number is not None:
            self._variables[number], self._seen[number] = [variable], (slot.dtype, placement)
        return variable

    def _again(self, number: int, slot: TensorSlot, placement: Placement) -> str:
        dtype, lies = self._seen[number]
        first = self._variables[number][0]
        if dtype == slot.dtype and placement == lies:
            return first
        if (dtype and dtype != slot.dtype) or (lies and lies.bit):
            raise ValueError(f"{slot.name} sees the storage of {first} in another dtype")
        return _bit(f"{first}.as_strided({placement.size}, {placement.stride}, {placement.offset})", placement)

    def _result(self, step: Step, made: str, i: int) -> str:
        """Return the line of an earlier step. Results with new storages get a variable."""
        new = [(j, n) for j, n in enumerate(step.results) if n is not None and n not in self._variables]
        for j, number in new:
            name = f"r{i}" if len(step.results) == 1 else f"r{i}[{j}]"
            self._variables[number], self._seen[number] = [name], (None, None)
        return f"r{i} = {made}" if new else made


def _call(call: Call, tensors: Sequence[str]) -> str:
    sample = call.case.sample
    arguments = [_text(a, tensors) for a in sample.args] + [f"{k}={_text(a, tensors)}" for k, a in sample.kwargs]
    return f"torch.ops.aten.{attribute(call.overload)}({', '.join(arguments)})"


def _values_of(call: Call, slot: TensorSlot) -> str:
    placement = call.case.placements[slot.index]
    dtype = torch_dtype(str(slot.dtype))
    made = _values(call.storages[slot.pool], placement.storage, dtype) + ("" if slot.on_host else ".to(device)")
    if placement.layout != "contiguous" or len(placement.size) != 1:
        made += f".as_strided({placement.size}, {placement.stride}, {placement.offset})"
    return _bit(made, placement)


def _bit(made: str, placement: Placement) -> str:
    return {"conj": f"torch.conj({made})", "neg": f"torch._neg_view({made})"}.get(placement.bit, made)


def _values(data: torch.Tensor, count: int, dtype: torch.dtype) -> str:
    used = data[: count * dtype.itemsize]
    if dtype != torch.bool and torch.equal(used, counting(count, dtype)) and count <= 120:
        return f"torch.arange({count}).to({dtype})" if dtype != torch.int64 else f"torch.arange({count})"
    if count > MOST_VALUES:
        raise ValueError(f"{count} values are too many to write out")
    listed = ", ".join(map(literal, used.view(dtype).tolist()))
    return f"torch.tensor([{listed}], dtype={dtype})"


def _text(arg: Arg, tensors: Sequence[str]) -> str:
    if isinstance(arg, TensorSlot):
        return tensors[arg.index]
    if isinstance(arg, tuple):
        return "[" + ", ".join(_text(a, tensors) for a in arg) + "]"
    if isinstance(arg, (DtypeArg, EnumArg)):
        return f"torch.{arg.name}"
    if isinstance(arg, DeviceArg):
        return repr(arg.name) if arg.name else "device"
    if isinstance(arg, ComplexArg):
        return literal(complex(arg.real, arg.imag))
    if isinstance(arg, GeneratorArg):
        return f"torch.Generator(device).manual_seed({arg.seed})"
    return literal(arg) if isinstance(arg, float) else repr(arg)
