"""Runs in fresh processes, with fake processes that have a reply for each overload."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.running.child import BROKEN, Death, Hang
from conformance.running.fresh_runs import STACK_TIMEOUT, FreshRuns
from conformance.running.protocol import Stretch
from conformance.vocabulary import CellId

DEATH = Death(-11, "Segmentation fault")
RAN: dict[str, Any] = {"observation": {}}


def stretch(name: str) -> Stretch:
    return Stretch(CellId("masking", name, "float32", "contiguous"), 0, 1)


class Processes:
    """Fake processes with a reply for each overload. ``ended``: how each process ended, and its requests."""

    def __init__(self, **replies: Any) -> None:
        self._replies = replies
        self._asked: list[tuple[str, float]] = []
        self.ended: list[tuple[str, list[tuple[str, float]]]] = []

    def fresh(self) -> Any:
        self._asked = []
        return self

    def ask(self, request: Any, timeout: float) -> Any:
        name = CellId(*request["cell"]).overload
        self._asked.append((name, timeout))
        return self._replies[name]

    def close(self) -> None:
        self.ended.append(("close", self._asked))

    def kill(self) -> None:
        self.ended.append(("kill", self._asked))

    @property
    def runs(self) -> FreshRuns:
        return FreshRuns(self.fresh, lambda _: 60.0)


@pytest.mark.parametrize(
    ("replies", "dies"),
    [
        ({"a": RAN, "b": DEATH}, True),
        ({"a": RAN, "b": RAN}, False),
        ({"a": DEATH, "b": DEATH}, False),  # dies before the last cell
        ({"a": RAN, "b": Hang(60.0, "")}, False),
        ({"a": RAN, "b": Death(BROKEN, "Traceback", broken=True)}, False),
    ],
)
def test_a_process_dies_in_an_order_if_it_dies_in_the_last_stretch(replies: dict[str, Any], dies: bool) -> None:
    processes = Processes(**replies)
    assert processes.runs.dies([stretch("a"), stretch("b")]) is dies
    assert len(processes.ended) == 1


@pytest.mark.parametrize(
    ("replies", "differs"),
    [
        ({"a": RAN, "b": {"checks": ["value", "mutation"]}}, True),
        ({"a": RAN, "b": {"checks": ["mutation"]}}, False),
        ({"a": DEATH, "b": {"checks": ["value"]}}, False),
        ({"a": RAN, "b": DEATH}, False),
    ],
)
def test_a_case_differs_in_an_order_if_the_same_check_fails(replies: dict[str, Any], differs: bool) -> None:
    assert Processes(**replies).runs.differs([stretch("a"), stretch("b")], "value") is differs


def test_the_stack_of_a_crash_has_a_short_limit_and_its_process_is_killed() -> None:
    processes = Processes(a=RAN, b=DEATH)
    assert processes.runs.crash([stretch("a"), stretch("b")]).message == "Segmentation fault"
    assert processes.ended == [("kill", [("a", STACK_TIMEOUT), ("b", STACK_TIMEOUT)])]


def test_a_process_that_ends_has_no_reply() -> None:
    assert Processes(a=RAN).runs.reply(stretch("a")) == RAN
    assert Processes(a=DEATH).runs.reply(stretch("a")) is None
