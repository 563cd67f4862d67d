"""A standalone script of a case, which needs only torch and the backend."""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from conformance import contexts
from conformance.backends import Capabilities
from conformance.contexts import PLAIN
from conformance.corpus.model import Arg, ComplexArg, DeviceArg, DtypeArg, EnumArg, GeneratorArg, TensorSlot
from conformance.explain import describe, program_script
from conformance.inventory import call_of
from conformance.judging.closeness import bound, growth
from conformance.judging.oracle import CallOutcome
from conformance.judging.other_references import OtherReferences
from conformance.judging.tolerances import Criteria, criteria_of
from conformance.judging.twins import CPU, Twins, is_on_host
from conformance.judging.views import torch_dtype
from conformance.ops.family import Equivalence
from conformance.plan.arguments import placed_arguments
from conformance.plan.case import Case, slot_dtype
from conformance.plan.plan import Plan
from conformance.plan.wider import dtype_on_cpu
from conformance.records import CaseFailure, Observation, Setting
from conformance.scenarios import catalogue
from conformance.torch_versions import schema_of
from conformance.vocabulary import SCENARIOS, CaseId, CellId, Check, Fact, Route

LONGEST_KEPT = 1 << 16  # characters
_HEX_COLUMNS = 96

# The first part of a script, which makes the case. The second part is both_sides.py.
_CASE = '''"""{id}

{arguments}

Exits with 1 and prints the difference if the device differs from CPU, else exits with 0.{limits}
"""

{head}
{imports}

def storage(device, *text):
    return torch.tensor(list(bytes.fromhex("".join(text))), dtype=torch.uint8).to(device)


{earlier}{context}def call(device, wide=lambda t: t):
{before}{body}
    storages = {{{storages}}}
    before = {{name: base.cpu().clone() for name, (base, _) in storages.items()}}
    torch.manual_seed({seed})
    try:
        result = {call}
        for base, _ in storages.values():
            base.cpu()  # waits for the device
    except Exception as e:
        result = e
    return result, {{name: (*pair, before[name]) for name, pair in storages.items()}}


'''

_HOW = """from collections.abc import Mapping, Sequence


class How(NamedTuple):
    variant: str
    facts: str
    delayed: Callable[[], Any]


"""

# A call before the call of the case, on the device alone.
_BEFORE = """def before_{i}(device, wide=lambda t: t):
{body}
    try:
        {call}
    except Exception as e:
        print("the call before raised", type(e).__name__)


"""

_MAIN = """if __name__ == "__main__":
    main(call, {device!r}, {written}, {bound}, contained={contained}{more})
"""


def script_of_case(
    plan: Plan, case_id: str, failure: CaseFailure | None = None, setting: Setting | None = None, *,
    contained: bool = True, without: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return the script of the case with this id, see :func:`script`.

    ``setting``: the cases before it, and the number of runs; None: the setting of ``failure``. ``without``: primitives
    of the bring-up gate that are broken, see :func:`program_script.script`. Raises LookupError with similar ids, also
    for a scenario before another case, since a script cannot repeat a scenario as one call.
    """
    wanted = CaseId.parse(case_id)
    if setting is None:
        setting = failure.setting if failure else Setting()
    if wanted is not None and wanted.cell.is_scenario and plan.knows(case_id):
        scenario = catalogue.find(wanted.cell.overload)
        return program_script.script(scenario, plan.backend, case_id, setting.runs, without)
    case = find(plan, case_id)
    before = tuple(earlier for one in setting.after for earlier in _preceding(plan, one))
    return script(plan, replace(case, before=(*before, *case.before)), failure, contained=contained, runs=setting.runs)


def _preceding(plan: Plan, id_: str) -> list[Case]:
    """Return the case with this id, or all cases of the cell with this id. Raises LookupError."""
    cell = CellId.parse(id_.partition("#")[0])
    if cell is None or cell.is_scenario or not plan.precedes(id_):
        raise LookupError(plan.unknown_case(id_))
    return [case for case in plan.all_cases(cell) if id_ in (case.id, str(cell))]


def find(plan: Plan, case_id: str) -> Case:
    """Return the case of an op with this id. Raises LookupError with similar ids."""
    wanted = CaseId.parse(case_id)
    if wanted is None or wanted.cell.is_scenario or not plan.knows(case_id):
        raise LookupError(plan.unknown_case(case_id))
    return next(c for c in plan.cases(wanted.cell) if c.id == case_id)


def script(plan: Plan, case: Case, failure: CaseFailure | None = None, *, contained: bool = True, runs: int = 1) -> str:
    """Return the script's text.

    ``failure``: the case's failure, whose bound the script uses. ``contained``: whether the op is first called in a
    child process, so that the script survives a crash and says how the process died. ``runs``: number of processes that
    make the calls, until one shows a difference.
    """
    twins = Twins(plan.corpus.value)
    judged = _Judged(case, plan.inventory[case.sample.overload].route, twins, failure)
    return script_of(case, plan.backend, twins, plan.seed, judged, contained=contained, runs=runs)


def with_script(plan: Plan, observation: Observation, without: Sequence[str] = ()) -> Observation:
    """Return a failing cell's observation with the script of its first failing case, unless that is too long.

    ``without``: the primitives that the bring-up gate found broken.
    """
    first = next((f for f in observation.failures if plan.knows(f.case)), None)
    if not observation.status.is_failure or not first:
        return observation
    precede = [one for one in first.setting.after if one.startswith(f"{SCENARIOS}/")]
    text = script_of_case(plan, first.case, first, Setting() if precede else None, without=without)
    return replace(observation, script=text) if len(text) <= LONGEST_KEPT else observation


def script_of(
    case: Case, backend: Capabilities, twins: Twins, seed: int, judged: _Judged, *, contained: bool = True,
    runs: int = 1,
) -> str:  # fmt: skip
    """Return the script of a case whose storages ``twins`` makes."""
    device = str(contexts.of(case.cell.layout).device(torch.device(backend.device)))
    writer = _Writer(case, device, twins)
    module = backend.module
    head, comparing = _comparing()
    made = _CASE.format(
        id=case.id,
        arguments="\n".join(map(describe.argument, placed_arguments(case))),
        limits=judged.limits(),
        head=head,
        imports="" if module == "torch" else f"import {module}  # loads the device\n",
        earlier="".join(_before(i, one, device, twins) for i, one in enumerate(case.before)),
        before="".join(_CALL_BEFORE.format(i=i) for i in range(len(case.before))),
        body=_body(writer),
        storages=", ".join(f'"{name}": ({base}, {tensor})' for name, base, tensor in writer.bases),
        seed=seed,
        call=writer.call(),
        context=_context(case),
    )
    contained &= backend.isolation == "fork"
    more = (f", runs={runs}" if runs > 1 else "") + (", wider=True" if dtype_on_cpu(case) else "")
    on_device = judged.on_device()
    more += f", on_device={on_device}" if on_device else ""
    main = _MAIN.format(
        device=device, written=writer.written(), bound=judged.bound(), contained=contained, more=more
    )  # fmt: skip
    return f"{made}{comparing}\n\n\n{main}"


_CALL_BEFORE = """    if torch.device(device).type != "cpu":
        before_{i}(device)
"""


def _before(i: int, case: Case, device: str, twins: Twins) -> str:
    """Return the function that makes an earlier call."""
    writer = _Writer(case, device, twins)
    return _BEFORE.format(i=i, body=_body(writer), call=writer.call())


def _body(writer: _Writer) -> str:
    return "\n".join(f"    {line}" for line in writer.lines()) or "    pass"


def _context(case: Case) -> str:
    """Return the function ``in_context`` of a case in a context, and the decorator of the script's ``call``."""
    context = contexts.of(case.cell.layout)
    decorator = f"@{context.decorator}\n" if context.decorator else ""
    if type(context).call is PLAIN.call:
        return decorator
    source = textwrap.dedent(inspect.getsource(type(context).call)).partition(") -> Any:")[2]
    helpers = "".join(f"{inspect.getsource(helper)}\n\n" for helper in context.helpers)
    return f"{_HOW}{helpers}def in_context(op, device, how, args, kwargs):{source}\n\n{decorator}"


@cache
def _comparing() -> tuple[str, str]:
    """Return the imports and the functions of both_sides.py."""
    text = Path(__file__).with_name("both_sides.py").read_text(encoding="utf-8").partition('\n"""\n')[2].strip()
    text = re.sub(r"  # noqa:.*", "", text)
    head, _, functions = text.partition("\n\n\n")
    return head, functions


@dataclass(frozen=True, slots=True)
class _Judged:
    """The script's judging of a case. ``failure``: the failure that the suite found, if there is one."""

    case: Case
    route: Route
    twins: Twins
    failure: CaseFailure | None = None

    @property
    def _criteria(self) -> Criteria:
        return criteria_of(self.case.sample.overload)

    @property
    def _values(self) -> bool:
        """Whether values are compared. They are not if they are random, or if several values are right."""
        return self._criteria.equivalence(0) is Equivalence.EQUAL

    def limits(self) -> str:
        """Return a sentence about the findings that the script cannot repeat, "" if there are none."""
        found = {m.check for m in self.failure.mismatches} if self.failure else set()
        lost = sorted({*(found & _ONLY_THE_SUITE), *(() if self._values else (Check.VALUE,))})
        checks = f"\nIt does not check: {', '.join(lost)}. Only the suite does." if lost else ""
        wide = dtype_on_cpu(self.case)
        checks += f"\nCPU lacks the op in {self.case.cell.dtype}, computes in {wide}, and rounds." if wide else ""
        delays = contexts.of(self.case.cell.layout).delays
        return checks + ("\nIt does not let work start late. Only the suite does." if delays else "")

    def on_device(self) -> list[int]:
        """Return the positions of the results that an op with a kernel of its own has to make on the device."""
        if self.route is Route.COMPOSITE:
            return []
        op = call_of(self.case.sample.overload)
        single = [not r.alias_info and isinstance(r.type, torch.TensorType) for r in schema_of(op).returns]
        others = OtherReferences(self.case, self.twins, op)
        valued = [i for i in range(len(single)) if all(single) and self._criteria.equivalence(i).is_of_values]
        return [i for i in valued if others.follows_arguments(i)]

    def bound(self) -> str:
        """Return the bound of the failure's first wrong value; without a failure, the overload's for one element."""
        if not self._values:
            return "None"
        found = self._found()
        if found["exact"]:
            return f"Bound(exact=True, signed_zeros={found.get('signed_zeros', False)})"
        dtype = torch_dtype(found["dtype"])
        eps = torch.finfo(dtype if dtype.is_floating_point or dtype.is_complex else torch.float32).eps
        steps = found.get("steps", 0.0)
        inside = torch.finfo(torch.float32).eps if steps else eps
        grown = growth(inside, found["terms"]) if found["accumulates"] else 0.0
        numbers = (found["multiple"], found["ulps"], inside, float(found["magnitude"]), grown)
        named = {name: found.get(name) for name in ("signed_zeros", "neighbours")} | {
            "unit": steps * eps, "first_dim": found.get("first_dim", 0), "directed": self._is_directed(),
        }  # fmt: skip
        given = [*map(repr, numbers), *(f"{name}={value!r}" for name, value in named.items() if value)]
        return f"Bound(False, {', '.join(given)})"

    def _is_directed(self) -> bool:
        return self.failure is not None and any(m.kind == Fact.ROUNDING for m in self.failure.mismatches)

    def _found(self) -> Mapping[str, Any]:
        mismatches = self.failure.mismatches if self.failure else ()
        for mismatch in mismatches:
            if "bound" in mismatch.facts:
                return mismatch.facts["bound"]  # type: ignore[no-any-return]  # JSON
        if self._criteria.exact or (self._criteria.stable and self.route is Route.FALLBACK):
            return {"exact": True}
        result = torch.empty(1, dtype=torch_dtype(self.case.cell.dtype))
        closeness = self._criteria.closeness(CallOutcome(self.twins.side(self.case, CPU)), result)
        return bound(result.dtype, closeness, spread=self._criteria.sums(result.dtype))


# Checks that need the backend's adapter, or several calls.
_ONLY_THE_SUITE = frozenset({
    Check.VERSION, Check.REDZONE, Check.LEAK, Check.ROUTE, Check.DETERMINISM, Check.UNINITIALIZED, Check.DISTRIBUTION,
    Check.STATE,
})  # fmt: skip


def literal(number: float | complex) -> str:
    """Return the Python text of a number. Infinities, NaN and signed zeros keep their value."""
    if isinstance(number, complex):
        return f"complex({literal(number.real)}, {literal(number.imag)})"
    return repr(number) if math.isfinite(number) else f'float("{number}")'


def attribute(overload: str) -> str:
    return overload if "." in overload else f"{overload}.default"


class _Writer:
    """Python text for one case's arguments."""

    def __init__(self, case: Case, device: str, twins: Twins) -> None:
        self._case = case
        self._device = device
        self._twins = twins
        self._shared = {slot: (earlier, distance) for slot, earlier, distance in case.shared}
        self.bases: list[tuple[str, str, str]] = []  # (slot's name, variable of the storage, of the tensor)

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
        self.bases.append((slot.name, f"s{slot.index}", variable))
        made = f"wide(s{slot.index}.view(torch.{dtype})).as_strided({where}, {placement.offset})"
        if placement.bit:
            made = f"torch.conj({made})" if placement.bit == "conj" else f"torch._neg_view({made})"
        return [
            f"s{slot.index} = storage(",
            '    "cpu",' if is_on_host(slot, self._case) else "    device,",
            *(f'    "{chunk}",' for chunk in chunks),
            ")",
            f"{variable} = {made}  # {slot.name}",
        ]

    def written(self) -> list[str]:
        """Return the arguments whose storages the call may write. If several share a storage, return the first."""
        slots = self._case.sample.tensors
        homes = {slot.index: self._shared.get(slot.index, (slot.index, 0))[0] for slot in slots if slot.written}
        return sorted({slots[home].name for home in homes.values()})

    def call(self) -> str:
        """Return the expression that makes the call."""
        sample = self._case.sample
        op = f"torch.ops.aten.{attribute(sample.overload)}"
        context = contexts.of(self._case.cell.layout)
        parts = [self._text(a) for a in sample.args]
        if type(context).call is PLAIN.call:
            return f"{op}({', '.join(parts + [f'{name}={self._text(a)}' for name, a in sample.kwargs])})"
        how = f"How({self._case.variant!r}, {context.facts_of(sample.overload)!r}, contextlib.nullcontext)"
        named = ", ".join(f"{name!r}: {self._text(a)}" for name, a in sample.kwargs)
        return f"in_context({op}, torch.device(device), {how}, [{', '.join(parts)}], {{{named}}})"

    def _text(self, arg: Arg) -> str:
        if isinstance(arg, tuple):
            return f"[{', '.join(map(self._text, arg))}]"
        if isinstance(arg, DtypeArg):
            dtype = f"torch.{arg.name or self._case.cell.dtype}"
            return f"wide(torch.empty(0, dtype={dtype})).dtype" if dtype_on_cpu(self._case) else dtype
        return _TEXTS.get(type(arg), repr)(arg)


# The Python text of an argument, by its type. All others are literals.
_TEXTS: dict[type, Callable[[Any], str]] = {
    TensorSlot: lambda arg: f"t{arg.index}",
    DeviceArg: lambda arg: repr(arg.name) if arg.name else "device",
    EnumArg: lambda arg: f"torch.{arg.name}",
    ComplexArg: lambda arg: literal(complex(arg.real, arg.imag)),
    GeneratorArg: lambda arg: f"torch.Generator(device).manual_seed({arg.seed})",
    float: literal,
}
