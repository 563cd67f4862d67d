"""The roofline and the ranking, with invented times. The machine's device copies 1 GB/s and CPU 2 GB/s."""

from __future__ import annotations

import pytest

from conformance.perf.model import End, Limits, Machine, Size, Work
from conformance.perf.ranking import Bound, attainable, best, floor, rank, unmeasured
from tests.perf.times import MACHINE, ended, record

COPY = Work(1_000_000, 4_000_000, 4_000_000)  # 8 MB: 4 ms at 2 GB/s


def test_the_floor_is_the_largest_of_three_bounds() -> None:
    limits = Limits(bandwidth=1e9, flops=1e10, launch=1e-6)
    assert floor(record(work=COPY), limits).bound is Bound.BANDWIDTH
    assert floor(record(work=COPY), limits).seconds == pytest.approx(8e-3)
    assert floor(record(work=Work(10, 40, 40)), limits).bound is Bound.LAUNCH
    product = floor(record(work=Work(10**6, 8_000_000, 4_000_000, flops=2 * 10**9)), limits)
    assert product.bound is Bound.FLOPS
    assert product.seconds == pytest.approx(0.2)


def test_the_device_is_held_to_cpu_s_limits_where_they_are_better() -> None:
    assert best(MACHINE) == Limits(2e9, 1e10, 1e-6)
    faster = Machine(Limits(5e11, 1e13, 4e-6), MACHINE.cpu)
    assert best(faster) == faster.device


def test_an_op_that_cpu_does_at_its_limit_can_reach_the_device_s_limit() -> None:
    gpu = Machine(Limits(2e11, None, 1e-6), MACHINE.cpu)
    assert attainable(record(cpu=4e-3, work=COPY), gpu).seconds == pytest.approx(4e-5)


def test_an_op_that_keeps_cpu_from_its_limit_keeps_the_device_from_its_own() -> None:
    gpu = Machine(Limits(2e11, None, 1e-6), MACHINE.cpu)
    assert attainable(record(cpu=12e-3, work=COPY), gpu).seconds == pytest.approx(3 * 4e-5)


def test_no_time_is_lost_by_a_call_that_is_faster_than_attainable() -> None:
    (found,) = rank([record(device=1e-9, work=COPY)], MACHINE)
    assert found.lost == 0


def test_cases_are_ranked_by_lost_seconds_and_not_by_their_ratio_to_cpu() -> None:
    long = record("long", device=40e-3, cpu=10e-3, work=COPY)
    short = record("short", Size.SMALL, device=1e-3, cpu=1e-6, work=Work(100, 400, 400))
    assert [r.record.key.overload for r in rank([short, long], MACHINE)] == ["long", "short"]


def test_recorded_calls_weight_the_case_of_the_nearest_size() -> None:
    small = record("neg", Size.SMALL, device=1e-3, cpu=1e-6, work=Work(100, 400, 400))
    large = record("neg", Size.LARGE, device=40e-3, cpu=10e-3, work=COPY)
    other = record("abs", Size.LARGE, device=80e-3, cpu=10e-3, work=COPY)
    found = rank([small, large, other], MACHINE, {("neg", 64): 1000, ("neg", 300): 50, ("neg", 2_000_000): 2})
    assert [(r.record.key.size, r.calls) for r in found] == [(Size.SMALL, 1050), (Size.LARGE, 2)]
    assert found[0].lost == pytest.approx(1050 * (small.device.median - found[0].attainable))


def test_recorded_overloads_that_were_not_measured_are_named_with_their_calls() -> None:
    calls = {("neg", 1): 3, ("erf", 1): 2, ("erf", 9): 5, ("add.Tensor", 1): 1}
    assert unmeasured([record("neg"), ended(End.CRASH, "erf")], calls) == {"erf": 7, "add.Tensor": 1}


def test_a_machine_without_limits_has_no_floor() -> None:
    found = attainable(record(work=COPY), Machine())
    assert (found.seconds, found.bound) == (0, Bound.LAUNCH)
