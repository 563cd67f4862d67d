"""Repeated calls of random ops, with no seed between them."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
import torch

from conformance.judging import repetition
from conformance.judging.views import Unreadable
from conformance.ops.family import SUMMED, OpFacts, Random
from conformance.plan.case import Case
from conformance.vocabulary import Check
from tests.two_sides import Device, case_of, judge

UNIFORM = OpFacts("misc", random=Random("uniform"))


def uniform(x: torch.Tensor) -> torch.Tensor:
    return torch.rand(x.shape)


def from_a_copy_of_the_generator(x: torch.Tensor) -> torch.Tensor:
    before = torch.get_rng_state()
    drawn = torch.rand(x.shape)
    torch.set_rng_state(before)
    return drawn


def in_place(x: torch.Tensor) -> torch.Tensor:
    return x.copy_(uniform(x))


def in_place_from_a_copy(x: torch.Tensor) -> torch.Tensor:
    return x.copy_(from_a_copy_of_the_generator(x))


def rare(x: torch.Tensor) -> torch.Tensor:
    return torch.rand(x.shape) < 0.001


def test_a_device_whose_generator_moves_on_is_right() -> None:
    assert not judge(uniform, uniform, facts=UNIFORM).mismatches
    assert not judge(in_place, in_place, case=case_of(written=True), facts=UNIFORM).mismatches


def test_a_device_that_draws_from_a_copy_of_its_generator_is_wrong() -> None:
    (found,) = judge(uniform, from_a_copy_of_the_generator, facts=UNIFORM).mismatches
    assert (found.check, found.facts) == (Check.DISTRIBUTION, {"kind": "same_stream", "calls": 24})
    (found,) = judge(in_place, in_place_from_a_copy, case=case_of(written=True), facts=UNIFORM).mismatches
    assert found.kind == "same_stream"


def test_draws_that_are_equal_by_chance_are_no_finding() -> None:
    def rare_from_a_copy(x: torch.Tensor) -> torch.Tensor:
        return from_a_copy_of_the_generator(x) < 0.001

    assert not judge(rare, rare_from_a_copy, facts=UNIFORM).mismatches
    assert not judge(from_a_copy_of_the_generator, from_a_copy_of_the_generator, facts=UNIFORM).mismatches


def test_a_device_that_draws_the_usual_alone_is_asked_until_chance_cannot_be_why() -> None:
    one = case_of(shape=())
    calls = iter(range(10_000))

    def one_in_eight(x: torch.Tensor) -> torch.Tensor:
        return torch.rand(x.shape) < 0.125

    def never(x: torch.Tensor) -> torch.Tensor:
        return torch.rand(x.shape) < 0

    def never_at_first(x: torch.Tensor) -> torch.Tensor:
        return one_in_eight(x) if next(calls) > 60 else never(x)

    (found,) = judge(one_in_eight, never, case=one, facts=UNIFORM).mismatches
    assert (found.check, found.kind) == (Check.DISTRIBUTION, "same_draws")
    assert found.facts["seeds"] > 40
    assert not judge(one_in_eight, never_at_first, case=one, facts=UNIFORM).mismatches


def coins(x: torch.Tensor) -> torch.Tensor:
    return (torch.rand(x.shape) < 0.5).float()


def coins_but_for_the_end(x: torch.Tensor) -> torch.Tensor:
    drawn = coins(x)
    drawn[..., -1] = 1
    return drawn


def of_one_seed(x: torch.Tensor) -> torch.Tensor:
    return torch.rand(x.shape, generator=torch.Generator().manual_seed(1))


def of_another_seed(x: torch.Tensor) -> torch.Tensor:
    return torch.rand(x.shape, generator=torch.Generator().manual_seed(2))


def test_the_ends_of_long_results_are_drawn_often_enough_to_see_one_that_never_changes() -> None:
    long = case_of(shape=(4099,))
    (found,) = judge(coins, coins_but_for_the_end, long, UNIFORM).mismatches
    assert (found.facts["kind"], found.facts["position"], found.facts["value"]) == ("stuck_draws", 4098, 1.0)
    assert not judge(coins, coins, long, UNIFORM).mismatches


def test_long_results_that_are_the_same_in_each_call_as_on_cpu_are_no_finding() -> None:
    assert not judge(of_one_seed, of_another_seed, case_of(shape=(4099,)), UNIFORM).mismatches


def generated(axis: str, *, written: bool = False) -> Case:
    """Return a case of a generated sample."""
    one = case_of(written=written)
    return replace(one, cell=replace(one.cell, layout=axis))


class TestUninitializedMemory:
    """A device whose results depend on the bytes in fresh memory, in large calls and with other arguments."""

    @pytest.mark.parametrize("layout", ["sizes", "variants"])
    def test_a_native_kernel_that_reads_it_fails(self, layout: str) -> None:
        device = Device(fills_fresh=True)
        (found,) = judge(torch.neg, lambda x: -x + device.fresh, generated(layout), device=device).mismatches
        assert (found.check, found.subject, found.facts["byte"]) == (Check.UNINITIALIZED, "result", 255)

    def test_a_kernel_that_reads_it_and_writes_an_argument_fails(self) -> None:
        device, case = Device(fills_fresh=True), generated("sizes", written=True)
        assert not judge(torch.neg_, torch.neg_, case, device=device).mismatches
        (found,) = judge(torch.neg_, lambda x: x.neg_().add_(device.fresh), case, device=device).mismatches
        assert (found.check, found.subject) == (Check.UNINITIALIZED, "self")

    def test_a_kernel_that_sums_in_another_order_each_time_passes(self) -> None:
        device, calls = Device(), count(1)

        def total(x: torch.Tensor) -> torch.Tensor:
            return x.sum() * (1 + next(calls) * torch.finfo(x.dtype).eps)

        facts = OpFacts("misc", SUMMED)
        assert not judge(torch.sum, total, generated("sizes"), facts, device=device).mismatches
        assert next(calls) == 3


class TestSoiledMemory:
    """A device that leaves elements unwritten, and is called while fresh memory is filled."""

    @pytest.mark.parametrize("layout", ["values", "expanded", "contiguous"])
    def test_values_that_follow_what_memory_holds_are_said_to(self, layout: str) -> None:
        device = Device()
        (found,) = judge(torch.neg, lambda x: -x + device.fresh, generated(layout), device=device).mismatches
        assert (found.check, found.subject, found.facts["byte"]) == (Check.UNINITIALIZED, "result", 0x7B)
        assert found.facts["difference"]["kind"] == "elements"

    def test_values_that_are_wrong_over_any_memory_are_wrong_values(self) -> None:
        (found,) = judge(torch.neg, lambda x: 1 - x, generated("values"), device=Device()).mismatches
        assert found.check is Check.VALUE

    def test_values_that_change_with_each_call_are_wrong_values(self) -> None:
        calls = count(1)
        (found,) = judge(torch.neg, lambda x: next(calls) - x, generated("values"), device=Device()).mismatches
        assert found.check is Check.VALUE

    def test_an_environment_that_fills_memory_keeps_its_fill(self) -> None:
        device = Device(fills_fresh=True)
        assert not judge(torch.neg, lambda x: -x + device.fresh, generated("values"), device=device).mismatches

    def test_a_wrong_result_beside_one_that_follows_memory_is_a_wrong_value(self) -> None:
        device = Device()

        def right(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return -x, x + 1

        def wrong(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return -x + device.fresh, x + 2

        found = judge(right, wrong, generated("values"), device=device).mismatches
        assert [(m.subject, m.check) for m in found] == [
            ("result[0]", Check.UNINITIALIZED),
            ("result[1]", Check.VALUE),
        ]

    def test_a_written_argument_that_follows_memory_is_said_to(self) -> None:
        device, case = Device(), generated("values", written=True)
        (found,) = judge(torch.neg_, lambda x: x.neg_().add_(device.fresh), case, device=device).mismatches
        assert (found.check, found.subject) == (Check.UNINITIALIZED, "self")

    def test_a_device_that_cannot_be_read_any_more_keeps_its_wrong_values(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unreadable(*_: object) -> bool:
            raise Unreadable

        monkeypatch.setattr(repetition, "_same", unreadable)
        (found,) = judge(torch.neg, lambda x: 1 - x, generated("values"), device=Device()).mismatches
        assert found.check is Check.VALUE
