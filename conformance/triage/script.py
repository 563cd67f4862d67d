"""A small call -> a script of a few lines that shows what is wrong with torch and the backend alone."""

from __future__ import annotations

import torch

from conformance.backends import Capabilities
from conformance.calls.model import Call
from conformance.corpus.model import Arg, ComplexArg, DeviceArg, DtypeArg, EnumArg, GeneratorArg, TensorSlot
from conformance.repro import attribute
from conformance.triage.shrink import counting
from conformance.twins import torch_dtype

MOST_VALUES = 64  # of a storage that is written out

_TEMPLATE = '''"""{title}"""
import torch
{imports}

def call(device):
{body}
    return torch.ops.aten.{op}({arguments})

expected, actual = call("cpu"), call("{device}")
torch.testing.assert_close(actual, expected, check_device=False, equal_nan=True)
'''


def script(call: Call, backend: Capabilities, title: str) -> str:
    """The text. Raises ValueError for a call of too many values, or of shared storages, to be short."""
    if call.case.shared:
        raise ValueError("arguments share a storage")
    module = backend.module
    text = _TEMPLATE.format(
        title=title,
        imports="" if module == "torch" else f"import {module}\n",
        body="\n".join(f"    {_line(call, s)}" for s in call.case.sample.tensors) or "    pass",
        op=attribute(call.overload),
        arguments=", ".join(
            [_text(a) for a in call.case.sample.args] + [f"{k}={_text(a)}" for k, a in call.case.sample.kwargs]
        ),
        device=backend.device,
    )
    return text.replace("\n\n\n", "\n\n")


def own_lines(text: str) -> int:
    """Lines that are neither blank, nor imports, nor the title."""
    return sum(bool(t.strip()) and not t.startswith(("import ", '"""')) for t in text.splitlines())


def _line(call: Call, slot: TensorSlot) -> str:
    placement = call.case.placements[slot.index]
    dtype = torch_dtype(str(slot.dtype))
    made = _values(call.storages[slot.pool], placement.storage, dtype) + ("" if slot.on_host else ".to(device)")
    if placement.layout != "contiguous" or len(placement.size) != 1:
        made += f".as_strided({placement.size}, {placement.stride}, {placement.offset})"
    if placement.bit:
        made = f"torch.conj({made})" if placement.bit == "conj" else f"torch._neg_view({made})"
    return f"t{slot.index} = {made}  # {slot.name}"


def _values(data: torch.Tensor, count: int, dtype: torch.dtype) -> str:
    used = data[: count * dtype.itemsize]
    if dtype != torch.bool and torch.equal(used, counting(count, dtype)) and count <= 120:
        return f"torch.arange({count}).to({dtype})" if dtype != torch.int64 else f"torch.arange({count})"
    if count > MOST_VALUES:
        raise ValueError(f"{count} values are too many to write out")
    values = used.view(dtype).tolist()
    listed = str(values).replace("nan", 'float("nan")').replace("inf", 'float("inf")')
    return f"torch.tensor({listed}, dtype={dtype})"


def _text(arg: Arg) -> str:
    if isinstance(arg, TensorSlot):
        return f"t{arg.index}"
    if isinstance(arg, tuple):
        return "[" + ", ".join(_text(a) for a in arg) + "]"
    if isinstance(arg, (DtypeArg, EnumArg)):
        return f"torch.{arg.name}"
    if isinstance(arg, DeviceArg):
        return repr(arg.name) if arg.name else "device"
    if isinstance(arg, ComplexArg):
        return repr(complex(arg.real, arg.imag))
    if isinstance(arg, GeneratorArg):
        return f"torch.Generator(device).manual_seed({arg.seed})"
    return f'float("{arg}")' if isinstance(arg, float) else repr(arg)
