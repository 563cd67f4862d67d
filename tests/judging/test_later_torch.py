"""A CPU result of a later torch excuses a device that gives the same result, and no other device."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.corpus import later
from conformance.corpus.later import Later
from conformance.judging import later_torch
from conformance.judging.later_torch import LATER
from conformance.torch_versions import later_kernel
from conformance.vocabulary import Check
from tests.two_sides import SHAPE, case_of, judge, value_of


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> dict[str, Later]:
    """Return the outcomes under a later torch by case id. A test adds them."""
    outcomes: dict[str, Later] = {}
    monkeypatch.setattr(later, "of", outcomes.get)
    return outcomes


def raises(kind: type[Exception]) -> Any:
    def op(_: torch.Tensor) -> torch.Tensor:
        raise kind("no")

    return op


def test_a_device_may_give_what_a_later_cpu_gives_and_nothing_else(stored: dict[str, Later]) -> None:
    case = case_of()
    stored[case.id] = Later(results=(value_of(case.sample.tensors[0], "float32") + 2,))
    assert judge(lambda x: x + 1, lambda x: x + 2, case).skipped == LATER
    found = judge(lambda x: x + 1, lambda x: x + 3, case)
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.VALUE])
    assert judge(lambda x: x + 1, lambda x: x + 2, case_of("transposed")).mismatches


def test_a_written_argument_may_hold_what_a_later_cpu_writes(stored: dict[str, Later]) -> None:
    case = case_of(written=True, defined=False)
    stored[case.id] = Later(results=(torch.full(SHAPE, 2.0),) * 2)
    assert judge(lambda x: x.fill_(1.0), lambda x: x.fill_(2.0), case).skipped == LATER
    assert judge(lambda x: x.fill_(1.0), lambda x: x.fill_(3.0), case).mismatches


def test_a_function_stands_for_the_later_kernel_of_an_overload_in_every_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later_torch, "later_kernel", lambda _: lambda x, device: x + 2)
    for layout in ("contiguous", "transposed"):
        assert judge(lambda x: x + 1, lambda x: x + 2, case_of(layout)).skipped == LATER
        assert judge(lambda x: x + 1, lambda x: x + 3, case_of(layout)).mismatches


def test_the_function_of_a_later_kernel_gives_what_this_cpu_gives() -> None:
    x = torch.tensor([-4, -3, -1.5, 0, 2.9, 3, 5], dtype=torch.float64)
    for args in ((x + 1, x), (x.float(), x.float()), (x / 7, x.int())):
        want, got = torch.ops.aten.hardswish_backward(*args), later_kernel("hardswish_backward")(*args)
        edge = args[1].abs() == 3
        torch.testing.assert_close(got[~edge], want[~edge])
        assert torch.equal(got[edge], torch.where(args[1] > 0, args[0], 0)[edge].to(want.dtype))
        into = later_kernel("hardswish_backward.out")(*args, out=torch.empty(0, dtype=want.dtype))
        assert torch.equal(into, got.to(want.dtype))


def test_a_device_may_raise_what_a_later_cpu_raises_and_nothing_else(stored: dict[str, Later]) -> None:
    case = case_of()
    stored[case.id] = Later("ValueError")
    assert judge(torch.neg, raises(ValueError), case).skipped == LATER
    assert judge(torch.neg, raises(IndexError), case).mismatches[0].check is Check.ERROR_PARITY
    assert judge(torch.neg, torch.abs, case).mismatches[0].check is Check.VALUE
    stored[case.id] = Later("NotImplementedError")
    assert judge(torch.neg, raises(RuntimeError), case).skipped == LATER
    assert judge(raises(RuntimeError), raises(ValueError), case).mismatches[0].check is Check.ERROR_PARITY


def test_a_device_may_return_what_a_later_cpu_returns_where_this_one_raises(stored: dict[str, Later]) -> None:
    case = case_of()
    stored[case.id] = Later(results=(value_of(case.sample.tensors[0], "float32"),))
    assert judge(raises(ValueError), torch.clone, case).skipped == LATER
    found = judge(raises(ValueError), torch.neg, case)
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.ERROR_PARITY])
