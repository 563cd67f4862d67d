"""A standalone script of a case, which needs only torch and the backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from conformance.backends import Capabilities
from conformance.corpus.model import Arg, ComplexArg, DeviceArg, DtypeArg, EnumArg, GeneratorArg, TensorSlot
from conformance.explain import describe
from conformance.judging.twins import Twins
from conformance.plan.arguments import placed_arguments
from conformance.plan.cases import Case, slot_dtype
from conformance.plan.plan import Plan
from conformance.records import Observation
from conformance.vocabulary import CaseId

LONGEST_KEPT = 1 << 16  # characters
_HEX_COLUMNS = 96

_TEMPLATE = '''"""{id}

{arguments}
"""

import torch
{imports}

def storage(device, *text):
    return torch.tensor(list(bytes.fromhex("".join(text))), dtype=torch.uint8).to(device)


def call(device):
{body}
    storages = {{{storages}}}
    torch.manual_seed({seed})
    try:
        result = torch.ops.aten.{op}({call})
    except Exception as e:
        result = e
    return result, storages


def show(device):
    result, storages = call(device)
    for r in result if isinstance(result, (list, tuple)) else [result]:
        if isinstance(r, torch.Tensor):
            where = f"size {{tuple(r.shape)}} stride {{r.stride()}} offset {{r.storage_offset()}}"
            print(f"{{device}}: {{r.dtype}} {{where}}\\n{{r.cpu()}}")
        else:
            print(f"{{device}}: {{r!r}}")
    return {{name: base.cpu() for name, base in storages.items()}}


expected, actual = show("cpu"), show("{device}")
for name in expected:
    different = (expected[name] != actual[name]).nonzero().flatten().tolist()
    print(f"storage of {{name}}:", f"differs at bytes {{different[:16]}}" if different else "equal")
'''


def script(plan: Plan, case: Case) -> str:
    """Return the script's text."""
    return script_of(case, plan.backend, Twins(plan.corpus.value), plan.seed)


def with_script(plan: Plan, observation: Observation) -> Observation:
    """Return a failing cell's observation with the script of its first failing case, unless that is too long."""
    first = next((f.case for f in observation.failures if plan.knows(f.case)), "")
    if not observation.status.is_failure or not first:
        return observation
    text = script(plan, find(plan, first))
    return replace(observation, script=text) if len(text) <= LONGEST_KEPT else observation


def script_of(case: Case, backend: Capabilities, twins: Twins, seed: int) -> str:
    """Return the script of a case whose storages ``twins`` makes."""
    writer = _Writer(case, backend.device, twins)
    module = backend.module
    return _TEMPLATE.format(
        id=case.id,
        arguments="\n".join(map(describe.argument, placed_arguments(case))),
        imports="" if module == "torch" else f"import {module}  # loads the device\n",
        body="\n".join(f"    {line}" for line in writer.lines()) or "    pass",
        storages=", ".join(f'"{name}": {base}' for name, base in writer.bases),
        seed=seed,
        op=attribute(case.sample.overload),
        call=writer.call(),
        device=backend.device,
    )


def find(plan: Plan, case_id: str) -> Case:
    """Return the case with this id. Raises LookupError with similar ids."""
    wanted = CaseId.parse(case_id)
    if wanted is None or not plan.knows(case_id):
        raise LookupError(plan.unknown_case(case_id))
    return next(c for c in plan.cases(wanted.cell) if c.id == case_id)


def attribute(overload: str) -> str:
    return overload if "." in overload else f"{overload}.default"


class _Writer:
    """Python text for one case's arguments."""

    def __init__(self, case: Case, device: str, twins: Twins) -> None:
        self._case = case
        self._device = device
        self._twins = twins
        self._shared = {slot: (earlier, distance) for slot, earlier, distance in case.shared}
        self.bases: list[tuple[str, str]] = []  # (slot's name, variable)

    def lines(self) -> list[str]:
        """Return statements that create the tensor arguments ``t0``, ``t1``, … in the order of the slots."""
        lines: list[str] = []
        for slot in self._case.sample.tensors:
            lines += self._slot(slot)
        return lines

    def _slot(self, slot: TensorSlot) -> list[str]:
        placement = self._case.placements[slot.index]
        variable = f"t{slot.index}"
        if slot.same_as:
            of = next(s.index for s in self._case.sample.tensors if s.name == slot.same_as)
            return [f"{variable} = t{of}  # {slot.name}"]
        where = f"{placement.size}, {placement.stride}"
        if slot.index in self._shared:
            earlier, distance = self._shared[slot.index]
            same = distance == 0 and placement == self._case.placements[earlier]
            made = f"t{earlier}" if same else f"t{earlier}.as_strided({where}, {distance})"
            return [f"{variable} = {made}  # {slot.name}"]
        dtype = slot_dtype(slot, self._case.cell.dtype)
        text = self._twins.storage(slot, placement, dtype).numpy().tobytes().hex()
        chunks = [text[i : i + _HEX_COLUMNS] for i in range(0, len(text), _HEX_COLUMNS)] or [""]
        self.bases.append((slot.name, f"s{slot.index}"))
        made = f"s{slot.index}.view(torch.{dtype}).as_strided({where}, {placement.offset})"
        if placement.bit:
            made = f"torch.conj({made})" if placement.bit == "conj" else f"torch._neg_view({made})"
        return [
            f"s{slot.index} = storage(",
            '    "cpu",' if slot.on_host else "    device,",
            *(f'    "{chunk}",' for chunk in chunks),
            ")",
            f"{variable} = {made}  # {slot.name}",
        ]

    def call(self) -> str:
        """Return the arguments of the call."""
        sample = self._case.sample
        parts = [self._text(a) for a in sample.args]
        return ", ".join(parts + [f"{name}={self._text(a)}" for name, a in sample.kwargs])

    def _text(self, arg: Arg) -> str:
        if isinstance(arg, tuple):
            return f"[{', '.join(map(self._text, arg))}]"
        if isinstance(arg, DtypeArg):
            return f"torch.{arg.name or self._case.cell.dtype}"
        return _TEXTS.get(type(arg), repr)(arg)


# The Python text of an argument, by its type. All others are literals.
_TEXTS: dict[type, Callable[[Any], str]] = {
    TensorSlot: lambda arg: f"t{arg.index}",
    DeviceArg: lambda arg: repr(arg.name) if arg.name else "device",
    EnumArg: lambda arg: f"torch.{arg.name}",
    ComplexArg: lambda arg: repr(complex(arg.real, arg.imag)),
    GeneratorArg: lambda arg: f"torch.Generator(device).manual_seed({arg.seed})",
    float: lambda arg: f'float("{arg}")',  # infinity and NaN are no literals
}
