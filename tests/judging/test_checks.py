"""Each check of the vocabulary: a right device passes, and a wrong one is found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import torch

from conformance import contexts
from conformance.ops.family import OpFacts, Random
from conformance.plan.case import Case
from conformance.vocabulary import Check
from tests.two_sides import Device, Op, case_of, judge

PLAIN = OpFacts("misc")


@dataclass(frozen=True)
class Defect:
    """An op on CPU, and its wrong form on a device, which a check has to find."""

    right: Op
    wrong: Op
    case: Case = field(default_factory=case_of)
    facts: OpFacts = PLAIN
    device: Device = field(default_factory=Device)
    context: str = ""


def plus_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def plus_two(x: torch.Tensor) -> torch.Tensor:
    return x + 2


def with_other_strides(x: torch.Tensor) -> torch.Tensor:
    return (x + 1).t().contiguous().t()


def in_a_large_storage(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([(x + 1).flatten(), torch.zeros(100_000)])[:6].view(x.shape)


def behind_an_offset(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.zeros(1), (x + 1).flatten()])[1:].view(x.shape)


def writing_its_input(x: torch.Tensor) -> torch.Tensor:
    result = x + 1
    x.data[0, 0] = 99  # .data does not increment the version counter
    return result


def writing_before_its_input(x: torch.Tensor) -> torch.Tensor:
    x.data.as_strided((1,), (1,), 0).fill_(7)
    return x + 1


def refusing(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("not today")


def on_another_device(x: torch.Tensor) -> torch.Tensor:
    return (x + 1).to("meta")


_calls: list[torch.Tensor] = []


def never_twice_the_same(x: torch.Tensor) -> torch.Tensor:
    _calls.append(x)
    return x + 2 - len(_calls) % 2


def uniform(x: torch.Tensor) -> torch.Tensor:
    return torch.rand(x.shape)


def uniform_to_a_half(x: torch.Tensor) -> torch.Tensor:
    return torch.rand(x.shape) / 2


_device = Device()


def falling_back(x: torch.Tensor) -> torch.Tensor:
    _device.native -= 1
    _device.fallback += 1
    return x + 1


def leaking(x: torch.Tensor) -> torch.Tensor:
    _device.blocks += 1
    return x + 1


def damaging(x: torch.Tensor) -> torch.Tensor:
    _device.damage.append("8 bytes behind block 3 are not what they were")
    return x + 1


def reading_fresh_memory(x: torch.Tensor) -> torch.Tensor:
    return x + 1 + _device.fresh


def breaking_its_context(x: torch.Tensor) -> torch.Tensor:
    raise AssertionError("the call made device 1 the current one; it was 0")


def leaving_grad_mode_off(x: torch.Tensor) -> torch.Tensor:
    torch.set_grad_enabled(False)
    return x + 1


DEFECTS = {
    Check.VALUE: Defect(plus_one, plus_two),
    Check.DTYPE: Defect(plus_one, lambda x: plus_one(x).double()),
    Check.SHAPE: Defect(plus_one, lambda x: plus_one(x)[:1]),
    Check.STRIDE: Defect(plus_one, with_other_strides),
    Check.OFFSET: Defect(plus_one, behind_an_offset),
    Check.ALIASING: Defect(lambda x: x.view(-1), lambda x: x.clone().view(-1)),
    Check.MUTATION: Defect(plus_one, writing_its_input),
    Check.UNTOUCHED: Defect(plus_one, writing_before_its_input, case_of("offset1")),
    Check.VERSION: Defect(lambda x: x.add_(1), lambda x: (x.data.add_(1), x)[1], case_of(written=True)),
    Check.REDZONE: Defect(plus_one, damaging, device=_device),
    Check.LEAK: Defect(plus_one, leaking, device=_device),
    Check.ROUTE: Defect(plus_one, falling_back, device=_device),
    Check.ERROR_PARITY: Defect(plus_one, refusing),
    Check.DETERMINISM: Defect(plus_one, never_twice_the_same),
    Check.UNINITIALIZED: Defect(plus_one, reading_fresh_memory, device=_device),
    Check.DISTRIBUTION: Defect(uniform, uniform_to_a_half, facts=OpFacts("misc", random=Random("uniform"))),
    Check.STORAGE: Defect(plus_one, in_a_large_storage),
    Check.DEVICE: Defect(plus_one, on_another_device),
    Check.CONTEXT: Defect(plus_one, breaking_its_context, context="thread"),
    Check.STATE: Defect(plus_one, leaving_grad_mode_off),
}


@pytest.fixture(autouse=True)
def sound_device() -> Iterator[None]:
    _calls.clear()
    _device.damage.clear()
    with torch.enable_grad():
        yield


def test_every_check_has_a_planted_defect() -> None:
    assert set(DEFECTS) == set(Check)


@pytest.mark.parametrize("check", DEFECTS)
def test_no_check_reports_a_correct_device(check: Check) -> None:
    d = DEFECTS[check]
    found = judge(d.right, case=d.case, facts=d.facts, device=d.device, context=contexts.of(d.context))
    assert (found.mismatches, found.skipped) == ([], "")


@pytest.mark.parametrize("check", DEFECTS)
def test_each_defect_is_reported_by_its_check_alone(check: Check) -> None:
    d = DEFECTS[check]
    found = judge(d.right, d.wrong, case=d.case, facts=d.facts, device=d.device, context=contexts.of(d.context))
    assert [m.check for m in found.mismatches] == [check], found
