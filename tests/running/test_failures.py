"""Whether a case that differs fails alone, at random, or after others, with invented processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from conformance.explain import describe
from conformance.records import CaseFailure, LeftOut, Repeats, Setting
from conformance.running.failures import ASKED, MANY, ONE, TRIES, FailureInquiry, Repeated
from conformance.running.protocol import Stretch
from conformance.vocabulary import CellId


def cell(name: str) -> CellId:
    return CellId("masking", name, "float32", "contiguous")


CASE = Stretch(cell("victim"), 3, 4)
CROWD = [Stretch(cell(f"op{i}")) for i in range(100)]
SIGNATURE = ("victim", "value")


class Processes:
    """Fake fresh processes that fail by a given rule. Each takes ``cost`` seconds."""

    def __init__(self, fails: Callable[[Sequence[Stretch], int], bool], cost: float = 0.01) -> None:
        self._rule = fails
        self._cost = cost
        self.runs = 0

    def fails(self, order: Sequence[Stretch]) -> bool:
        self.runs += 1
        assert order[-1] == CASE
        return self._rule(order[:-1], self.runs)

    def clock(self) -> float:
        return self.runs * self._cost

    def inquiry(self, seconds: float = 1000) -> FailureInquiry:
        return FailureInquiry(case_by_case, seconds, self.clock)

    def ask(self, inquiry: FailureInquiry | None = None) -> Repeated:
        before = [(stretch, 0.001) for stretch in CROWD]
        return (inquiry or self.inquiry()).of(SIGNATURE, self.fails, CASE, before)


def case_by_case(stretch: Stretch) -> list[Stretch]:
    """Return the cases of a stretch, one by one. Every cell has ten cases."""
    return [Stretch(stretch.cell, i, i + 1) for i in range(stretch.first, stretch.stop or 10)]


def ran(order: Sequence[Stretch], name: str, index: int) -> bool:
    return any(s.cell == cell(name) and s.first <= index < (s.stop or 10) for s in order)


def test_a_case_that_fails_each_time_is_steady_and_costs_a_few_processes() -> None:
    processes = Processes(lambda order, run: True)
    assert processes.ask() == Repeated(Repeats.STEADY, (TRIES, TRIES))
    assert processes.runs == TRIES


def test_a_case_that_fails_in_some_processes_is_flaky_and_its_share_is_known() -> None:
    processes = Processes(lambda order, run: run % 4 == 0)
    assert processes.ask() == Repeated(Repeats.FLAKY, (MANY // 4, MANY))


@pytest.mark.parametrize(("culprit", "index"), [("op99", 9), ("op97", 0), ("op40", 4), ("op0", 9)])
def test_the_one_case_before_it_that_a_case_needs_is_found(culprit: str, index: int) -> None:
    processes = Processes(lambda order, run: ran(order, culprit, index))
    found = processes.ask()
    needed = Stretch(cell(culprit), index, index + 1)
    assert found == Repeated(Repeats.ORDERED, (0, TRIES), (needed,), (TRIES, TRIES))
    assert processes.runs < 60


def test_two_cells_that_a_case_needs_are_both_found() -> None:
    processes = Processes(lambda order, run: ran(order, "op93", 0) and ran(order, "op98", 0))
    assert processes.ask().after == (CROWD[93], CROWD[98])


def test_a_case_that_failed_once_and_never_again_is_flaky() -> None:
    processes = Processes(lambda order, run: False)
    assert processes.ask() == Repeated(Repeats.FLAKY, (0, MANY))


def test_a_chance_failure_behind_other_cells_is_not_taken_for_their_work() -> None:
    """The case fails in every seventh process, whatever ran before it."""
    found = Processes(lambda order, run: run % 7 == 0).ask()
    assert found.kind is Repeats.FLAKY
    assert found.after == ()
    assert 0 < found.alone[0] < found.alone[1] == MANY


def test_the_time_for_one_failure_is_bounded() -> None:
    processes = Processes(lambda order, run: ran(order, "op0", 0), cost=1.0)
    found = processes.ask(processes.inquiry(seconds=30))
    assert (found.kind, found.left_out) == (Repeats.UNKNOWN, LeftOut.ORDER)
    assert processes.clock() < 2 * ONE


def test_only_the_first_failures_of_an_overload_are_repeated() -> None:
    processes = Processes(lambda order, run: run % 4 == 0)
    inquiry = processes.inquiry()
    for _ in range(ASKED):
        assert processes.ask(inquiry).kind is Repeats.FLAKY
    runs = processes.runs
    found = processes.ask(inquiry)
    assert found == Repeated(Repeats.UNKNOWN, left_out=LeftOut.REPEATED, like="flaky")
    assert processes.runs == runs


def test_a_later_failure_of_an_ordered_overload_is_tried_in_the_same_order_alone() -> None:
    processes = Processes(lambda order, run: ran(order, "op40", 4))
    inquiry = processes.inquiry()
    needed = (Stretch(cell("op40"), 4, 5),)
    for _ in range(ASKED):
        assert processes.ask(inquiry).after == needed
    runs = processes.runs
    assert processes.ask(inquiry) == Repeated(Repeats.ORDERED, (0, 1), needed, (1, 1))
    assert processes.runs == runs + 2
    other = inquiry.of(SIGNATURE, lambda order: False, CASE, [])
    assert other == Repeated(Repeats.UNKNOWN, (0, 1), left_out=LeftOut.REPEATED, like="ordered")


def test_a_thousand_failing_overloads_cost_no_more_than_the_budget() -> None:
    processes = Processes(lambda order, run: True, cost=0.05)
    inquiry = processes.inquiry(seconds=30)
    found = [inquiry.of((f"op{i}", "value"), processes.fails, CASE, []) for i in range(1000)]
    assert processes.clock() < 31
    repeated = [one for one in found if one.kind is Repeats.STEADY]
    assert 100 <= len(repeated) < 1000
    assert found[-1] == Repeated(Repeats.UNKNOWN, left_out=LeftOut.TIME)


SAID = [
    (Repeated(Repeats.STEADY, (5, 5)), ""),
    (Repeated(Repeats.FLAKY, (2, 20)), "fails in 2 of 20 runs of the case alone, each in a fresh process"),
    (Repeated(Repeats.ORDERED, (0, 5), (CROWD[1],), (5, 5)), "fails only after X: 5 of 5 runs, and 0 of 5 without"),
    (Repeated(Repeats.UNKNOWN, left_out=LeftOut.TIME),
     "not repeated alone: the time budget for failures is spent (--failure-budget)"),
    (Repeated(Repeats.UNKNOWN, (0, 20), left_out=LeftOut.ORDER),
     "fails in 0 of 20 runs alone; what ran before it was not repeated in the time budget"),
    (Repeated(Repeats.UNKNOWN, left_out=LeftOut.REPEATED, like="steady"), ""),
    (Repeated(Repeats.UNKNOWN, left_out=LeftOut.REPEATED, like="ordered"),
     "not repeated alone; another failure of the overload was, and is ordered"),
]  # fmt: skip


@pytest.mark.parametrize(("found", "text"), SAID)
def test_what_the_repetition_found_as_text(found: Repeated, text: str) -> None:
    assert describe.repetition(found.record(("X",) if found.after else ())) == text


@pytest.mark.parametrize(
    ("found", "setting"),
    [
        (Repeated(Repeats.STEADY, (5, 5)), Setting()),
        (Repeated(Repeats.FLAKY, (10, 20)), Setting(runs=7)),  # 1 - 0.5 ** 7 > 0.99
        (Repeated(Repeats.FLAKY, (1, 20)), Setting(runs=90)),
        (Repeated(Repeats.FLAKY, (0, 20)), Setting(runs=100)),
        (Repeated(Repeats.UNKNOWN, left_out=LeftOut.REPEATED, like="flaky"), Setting(runs=100)),
        (Repeated(Repeats.ORDERED, (0, 5), (CROWD[1],), (5, 5)), Setting(after=("X",))),
        (Repeated(Repeats.UNKNOWN, left_out=LeftOut.TIME), Setting()),
    ],
)
def test_the_commands_of_a_failure_have_what_it_needs(found: Repeated, setting: Setting) -> None:
    case = f"{CASE.cell}#sample"
    failure = CaseFailure(case, repetition=found.record(("X",) if found.after else ()))
    assert failure.setting == setting
    assert CaseFailure.from_json(failure.to_json()) == failure
    wanted = " --after 'X'" if setting.after else f" --runs {setting.runs}" if setting.runs > 1 else ""
    commands = describe.commands(failure, "mine")
    assert commands["repeat"] == f"pytest --pyargs conformance --backend mine --case '{case}'{wanted}"
    assert commands["script"] == f"conformance repro --backend mine '{case}'{wanted}"
