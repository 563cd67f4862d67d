"""Two runs compared, with invented times."""

from __future__ import annotations

from conformance.perf.diff import Change, compare
from conformance.perf.model import End, Record
from tests.perf.times import ended, record, rounds


def change(old: Record, new: Record) -> Change:
    (found,) = compare([old], [new]).cases
    return found.change


def test_a_kernel_that_takes_twice_as_long_is_slower() -> None:
    slow, fast = record(of=rounds(2e-3, seed=1)), record(of=rounds(1e-3, seed=2))
    assert change(fast, slow) is Change.SLOWER
    assert change(slow, fast) is Change.FASTER


def test_a_machine_that_is_slower_today_is_no_regression() -> None:
    assert change(record(device=1e-3, cpu=1e-3), record(device=3e-3, cpu=3e-3)) is Change.SAME


def test_noise_alone_is_no_difference() -> None:
    """None of 100 pairs differs, although the processes of each run differ by 10 %, and its blocks by 10 %."""
    noisy = [record(f"op{n}", of=rounds(1e-3, noise=0.1, seed=n)) for n in range(100)]
    again = [record(f"op{n}", of=rounds(1e-3, noise=0.1, seed=n + 1000)) for n in range(100)]
    assert {c.change for c in compare(noisy, again).cases} == {Change.SAME}


def test_a_median_beyond_the_least_change_within_its_interval_is_no_difference() -> None:
    times = [rounds(t, processes=1, noise=0)[0] for t in (0.7e-3, 1e-3, 1.2e-3, 1.3e-3, 2e-3)]
    assert record(of=times).ratio > 1.15
    assert change(record(), record(of=times)) is Change.SAME


def test_a_certain_change_smaller_than_the_least_one_is_not_reported() -> None:
    old, new = record(device=1e-3), record(device=1.05e-3)
    assert change(old, new) is Change.SAME
    assert compare([old], [new], least=0.01).cases[0].change is Change.SLOWER


def test_a_case_that_can_no_longer_be_measured_is_worse() -> None:
    lost = compare([record()], [ended(End.CRASH)])
    assert lost.cases[0].change is Change.LOST
    assert lost.is_worse
    assert change(ended(End.CRASH), record()) is Change.GAINED
    assert change(ended(End.UNSUITABLE), ended(End.UNSUITABLE)) is Change.SAME


def test_cases_with_other_arguments_are_not_compared() -> None:
    found = compare([record(device=1e-3)], [record(device=9e-3, shapes=((99,),))])
    assert found.cases[0].change is Change.OTHER
    assert not found.is_worse


def test_the_largest_factor_is_first_and_cases_of_one_run_are_counted() -> None:
    old = [record("a"), record("b"), record("gone")]
    new = [record("a", device=2e-3), record("b", device=5e-3), record("new"), record("newer")]
    found = compare(old, new)
    assert [c.key.overload for c in found.of(Change.SLOWER)] == ["b", "a"]
    assert (found.only_old, found.only_new) == (1, 2)
