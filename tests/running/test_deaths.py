"""Whether a crash is steady, flaky or ordered, with invented processes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from conformance.explain import describe
from conformance.records import DeathFinding, LeftOut
from conformance.running.deaths import ASKED, TRIES, DeathInquiry, Finding
from conformance.running.protocol import Stretch
from conformance.vocabulary import CellId


def cell(name: str) -> CellId:
    return CellId("masking", name, "float32", "contiguous")


CASE = Stretch(cell("victim"), 3, 4)
CROWD = [(Stretch(cell(f"op{i}")), 0.001) for i in range(100)]
SIGNATURE = ("victim", "SIGSEGV", "device")


class Processes:
    """Fake fresh processes that die by a given rule. Each takes one second."""

    def __init__(self, dies: Callable[[Sequence[Stretch]], bool]) -> None:
        self._dies = dies
        self.runs = 0

    def dies(self, order: Sequence[Stretch]) -> bool:
        self.runs += 1
        assert order[-1] == CASE
        return self._dies(order)

    def clock(self) -> float:
        return self.runs

    def inquiry(self, seconds: float = 1000) -> DeathInquiry:
        return DeathInquiry(self.dies, case_by_case, seconds, self.clock)


def case_by_case(stretch: Stretch) -> list[Stretch]:
    """Return the cases of a stretch, one by one. Every cell has ten cases."""
    return [Stretch(stretch.cell, i, i + 1) for i in range(stretch.first, stretch.stop or 10)]


def runs_case(order: Sequence[Stretch], name: str, index: int) -> bool:
    return any(s.cell == cell(name) and s.first <= index < (s.stop or 10) for s in order)


def said(found: Finding, after: str) -> str:
    return describe.finding(found.record(after))


def ask(processes: Processes, seconds: float = 1000) -> Finding:
    return processes.inquiry(seconds).of(SIGNATURE, CASE, CROWD)


def test_a_case_that_always_dies_alone_is_steady_without_further_runs() -> None:
    processes = Processes(lambda order: True)
    found = ask(processes)
    assert said(found, "") == "steady 5/5: alone in a fresh process, it dies each time"
    assert found.record("") == DeathFinding("steady", (5, 5))
    assert processes.runs == TRIES


def test_a_case_that_sometimes_dies_alone_is_flaky() -> None:
    answers = iter([True, False, True, False, False])
    found = ask(Processes(lambda order: next(answers)))
    assert said(found, "") == "flaky 2/5: alone, 2 of 5 fresh processes died"
    assert found.record("") == DeathFinding("flaky", (2, 5))


@pytest.mark.parametrize("guilty", [0, 1, 37, 62, 98, 99])
def test_the_earlier_case_that_makes_a_case_die_is_found_anywhere(guilty: int) -> None:
    processes = Processes(lambda order: runs_case(order, f"op{guilty}", 7))
    found = ask(processes)
    assert found.after == Stretch(cell(f"op{guilty}"), 7, 8)
    assert found.kind == "ordered"
    assert said(found, "X") == "crashes only after X: 5 of 5 fresh processes died so, and 0/5 without it"
    assert found.record("X") == DeathFinding("ordered", (0, 5), (2, 2), 100, "X", (5, 5))
    assert processes.runs < 40


def test_the_case_to_blame_may_be_an_earlier_one_of_the_same_cell() -> None:
    before = [*CROWD, (Stretch(CASE.cell, 0, 3), 0.001)]
    processes = Processes(lambda order: runs_case(order[:-1], "victim", 1))
    assert processes.inquiry().of(SIGNATURE, CASE, before).after == Stretch(CASE.cell, 1, 2)


def test_no_case_is_blamed_for_a_death_that_needs_two_earlier_cases() -> None:
    found = ask(Processes(lambda order: runs_case(order, "op20", 1) and runs_case(order, "op70", 2)))
    assert found.after is None
    assert said(found, "") == "crashes only after what ran before it (100 cells): 5 of 5, and 0/5 alone"


def test_a_death_that_never_repeats_is_flaky_without_a_case_to_blame() -> None:
    found = ask(Processes(lambda order: False))
    assert said(found, "") == (
        "flaky 0/5: alone, 0 of 5 fresh processes died, and 0 of 2 after the 100 cells that ran before it"
    )


def test_a_case_is_blamed_only_if_a_second_look_confirms_it() -> None:
    processes = Processes(lambda order: TRIES < processes.runs <= TRIES + 7)
    assert ask(processes).after is None


@pytest.mark.parametrize("chance", [0.2, 0.33, 0.5])
def test_a_case_that_dies_by_chance_is_not_taken_for_ordered(chance: float) -> None:
    draws = random.Random(7)
    found = [ask(Processes(lambda order: draws.random() < chance)) for _ in range(500)]
    assert Counter(f.kind for f in found)["ordered"] <= 1
    assert sum(f.again == (2, 2) for f in found) == 0


def test_a_third_death_of_the_same_signature_is_not_repeated() -> None:
    processes = Processes(lambda order: True)
    inquiry = processes.inquiry()
    for _ in range(ASKED):
        inquiry.of(SIGNATURE, CASE, CROWD)
    runs = processes.runs
    third = inquiry.of(SIGNATURE, CASE, CROWD)
    assert third.record("") == DeathFinding("", left_out=LeftOut.REPEATED, like="steady")
    assert said(third, "") == "not repeated in fresh processes: deaths like it were (steady)"
    assert processes.runs == runs
    assert inquiry.of(("another", "SIGABRT", "device"), CASE, CROWD).kind == "steady"


def test_a_death_that_was_not_repeated_has_a_stack_as_long_as_there_is_time_for_stacks() -> None:
    def read(order: Sequence[Stretch]) -> str:
        processes.dies(order)  # takes a second
        return f"stack after {len(order) - 1}"

    processes = Processes(lambda order: True)
    inquiry = processes.inquiry(2)
    like, flaky = Finding(left_out=LeftOut.REPEATED), Finding((0, 5), (0, 2))
    assert inquiry.stack(flaky, CASE, read, "") == ""
    assert [inquiry.stack(like, CASE, read, "") for _ in range(3)] == ["stack after 0", "stack after 0", ""]
    assert inquiry.stack(Finding((5, 5)), CASE, read, "") == "stack after 0"
    assert inquiry.stack(Finding((0, 5), (2, 2), after=CROWD[0][0]), CASE, read, "") == "stack after 1"


def test_an_inquiry_without_time_left_says_that_it_left_runs_out() -> None:
    processes = Processes(lambda order: True)
    inquiry = processes.inquiry(seconds=3)
    assert inquiry.of(SIGNATURE, CASE, CROWD).alone == (3, 3)
    over = inquiry.of(("another",), CASE, CROWD)
    assert over.record("") == DeathFinding("", left_out=LeftOut.TIME)


def test_only_as_many_earlier_cells_are_repeated_as_the_time_allows() -> None:
    slow = [(stretch, 10.0) for stretch, _ in CROWD]
    found = Processes(lambda order: runs_case(order, "op99", 7)).inquiry(100).of(SIGNATURE, CASE, slow)
    assert found.before < 10
    assert found.after == Stretch(cell("op99"), 7, 8)
