"""A device made by hand, for tests of the judge: CPU under another name, on which an op may do something else."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from conformance.backends import Capabilities
from conformance.contexts import PLAIN, Context
from conformance.corpus.model import DeviceArg, TensorSlot
from conformance.judging.judge import CaseResult, Judge
from conformance.judging.tolerances import Criteria
from conformance.judging.twins import Twins, ValueOf
from conformance.ops.family import OpFacts
from conformance.plan.case import Case
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Route
from tests.samples import sample, slot

Op = Callable[..., Any]
SHAPE = (2, 3)


@dataclass
class Device:
    """An adapter. ``cpu:0`` is the CPU, but not equal to ``cpu``: an op can tell the sides by its device argument."""

    name: str = "hand"
    device: str = "cpu:0"
    native: int = 0
    fallback: int = 0
    blocks: int = 0
    fresh: int = 0  # the byte in fresh memory
    fills_fresh: bool = False
    damage: list[str] = field(default_factory=list)

    def route_counters(self) -> tuple[int, int]:
        return self.native, self.fallback

    def memory_stats(self) -> dict[str, int]:
        return {"live_bytes": 0, "live_blocks": self.blocks}

    def verify_memory(self) -> list[str]:
        return self.damage

    def fill_fresh(self, byte: int | None) -> None:
        self.fresh = byte or 0


def value_of(slot: TensorSlot, dtype: str) -> torch.Tensor:
    """Return 1, 2, 3, ... in the slot's shape."""
    return torch.arange(1, slot.numel + 1).reshape(slot.shape).to(getattr(torch, dtype))


def behind(x: torch.Tensor) -> float:
    """Return the float32 just past the end of a tensor's storage, which an op must not read."""
    storage = x.untyped_storage()
    return ctypes.c_float.from_address(storage.data_ptr() + storage.nbytes()).value


def third(x: torch.Tensor) -> torch.Tensor:
    """Return ``x / 3``, whose values are rounded."""
    return x / 3


def case_of(
    layout: str = "contiguous", written: bool = False, dtype: str = "float32", defined: bool = True,
    shape: tuple[int, ...] = SHAPE,
) -> Case:  # fmt: skip
    """Return a case of ``op(self, device)``. Without ``defined``, ``self`` is an output that the op fills."""
    self = slot(0, "self", shape, written=written)
    one = sample("hand", self if defined else replace(self, pool=""), DeviceArg(), dtypes=(dtype,))
    return cases(CellId("misc", "hand", dtype, layout), [one])[0]


def with_number(number: float) -> Case:
    """Return a case of ``op(self, number, device)``."""
    one = sample("hand", slot(0, "self", SHAPE), number, DeviceArg(), dtypes=("float32",))
    return cases(CellId("misc", "hand", "float32", "contiguous"), [one])[0]


def with_keyword(name: str, value: bool) -> Case:
    """Return a case of ``op(self, device, *, name)``."""
    one = sample("hand", slot(0, "self", SHAPE), DeviceArg(), dtypes=("float32",))
    return cases(CellId("misc", "hand", "float32", "contiguous"), [replace(one, kwargs=((name, value),))])[0]


def judge(
    right: Op,
    wrong: Op | None = None,
    case: Case | None = None,
    facts: OpFacts | Criteria | None = None,
    route: Route = Route.NATIVE,
    device: Device | None = None,
    values: ValueOf = value_of,
    *,
    context: Context = PLAIN,
) -> CaseResult:
    """Judge one case of an op that runs ``right`` on CPU, and ``wrong`` (by default also ``right``) on the device."""
    here = device or Device()

    def op(*given: Any, **named: Any) -> Any:
        *arguments, where = given
        if where.index is None:
            return right(*arguments, **named)
        here.native += route is Route.NATIVE
        here.fallback += route is Route.FALLBACK
        return (wrong or right)(*arguments, **named)

    vars(op)["_schema"] = getattr(right, "_schema", None)
    criteria = facts if isinstance(facts, Criteria) else Criteria(facts or OpFacts("misc"))
    judge = Judge(Twins(values), Capabilities(here, "hand"), op, route, criteria, 20, context)
    return judge.judge(case or case_of())
