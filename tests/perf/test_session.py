"""A measured run over children that answer, die, or hang."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from conformance.corpus import codec
from conformance.corpus.model import Sample
from conformance.perf.model import End, Machine, Record, Size
from conformance.perf.session import Session, counts
from conformance.running.child import Death, Hang
from tests.perf.times import MACHINE, rounds

ENCODED = codec.encode(Sample("own.x.1*2", "neg", "float32", ("float32",), (), (), ()), 0)
ROUND = {"end": "measured", "round": asdict(rounds(1e-3)[0])}
WORK = {"elements": 10, "read": 80, "written": 40}

Reply = dict[str, Any] | Death | Hang


class Fake:
    """A child whose replies to measurements are made by a function of the overload and its number of requests."""

    def __init__(self, reply: Callable[[str, int], Reply]) -> None:
        self.reply = reply
        self.asked: dict[str, int] = {}
        self.started = 0
        self.open = 0

    def start(self) -> Fake:
        self.started += 1
        self.open += 1
        return self

    def close(self) -> None:
        self.open -= 1

    def kill(self) -> None:
        self.close()

    def ask(self, request: Any, timeout: float) -> Reply:
        if request["do"] == "limits":
            return asdict(MACHINE)
        name = request["overload"]
        if request["do"] == "size":
            if name == "dies_on_cpu":
                return Death(-11, "a stack\nSegmentation fault")
            return {"reason": "no sample runs in float32"} if name == "has_none" else {"sample": ENCODED}
        self.asked[name] = self.asked.get(name, 0) + 1
        reply = self.reply(name, self.asked[name])
        return reply | {"work": WORK} if isinstance(reply, dict) and request["facts"] and "round" in reply else reply


def ran(fake: Fake, *overloads: str, sizes: tuple[Size, ...] = (Size.SMALL,)) -> tuple[dict[str, Record], Machine]:
    routes = dict.fromkeys(overloads, "native")
    records, machine = Session(fake.start, 1.0, lambda _: None).run(routes, "float32", sizes, rounds=3)
    assert sum(counts(records).values()) == len(overloads) * len(sizes)
    assert fake.open == 0
    return {r.key.overload: r for r in records}, machine


def test_each_case_has_a_round_of_each_process() -> None:
    fake = Fake(lambda *_: ROUND)
    found, machine = ran(fake, "neg", "abs")
    assert {len(r.rounds) for r in found.values()} == {3}
    assert found["neg"].work is not None
    assert found["neg"].sample == "own.x.1*2"
    assert machine == MACHINE
    assert fake.started == 4  # one child to find samples, and one per round


def test_a_death_is_a_crash_and_the_cases_after_it_are_measured() -> None:
    found, _ = ran(Fake(lambda name, _: Death(-11, "") if name == "abs" else ROUND), "abs", "neg")
    assert (found["abs"].end, found["abs"].reason) == (End.CRASH, "SIGSEGV")
    assert found["neg"].end is End.MEASURED


def test_a_death_in_the_last_round_alone_is_not_lost() -> None:
    found, _ = ran(Fake(lambda _, n: Death(1, "it says so") if n == 3 else ROUND), "neg")
    assert (found["neg"].end, found["neg"].reason) == (End.CRASH, "exit code 1: it says so")
    assert found["neg"].rounds == ()


def test_a_case_that_hangs_is_not_tried_again() -> None:
    fake = Fake(lambda *_: Hang(1.0, ""))
    found, _ = ran(fake, "neg")
    assert (found["neg"].end, found["neg"].reason) == (End.TIMEOUT, "no end after 1 s")
    assert fake.asked == {"neg": 1}


def test_what_the_device_refuses_is_unsupported() -> None:
    reply: Reply = {"end": "unsupported", "reason": "NotImplementedError: no kernel"}
    found, _ = ran(Fake(lambda *_: reply), "neg")
    assert (found["neg"].end, found["neg"].reason) == (End.UNSUPPORTED, "NotImplementedError: no kernel")


def test_an_error_of_the_suite_is_told_apart_from_a_crash() -> None:
    found, _ = ran(Fake(lambda *_: Death(70, "Traceback\nKeyError: 1", broken=True)), "neg")
    assert (found["neg"].end, found["neg"].reason) == (End.ERROR, "KeyError: 1")


def test_overloads_without_a_sample_have_a_record_of_each_size() -> None:
    fake = Fake(lambda *_: ROUND)
    found, _ = ran(fake, "has_none", "dies_on_cpu", sizes=tuple(Size))
    assert {r.end for r in found.values()} == {End.UNSUITABLE}
    assert "tried on CPU: SIGSEGV" in found["dies_on_cpu"].reason
    assert fake.asked == {}


def test_an_interruption_leaves_a_record_of_each_case() -> None:
    def interrupted(name: str, n: int) -> Reply:
        if n == 2 and name == "neg":
            raise KeyboardInterrupt
        return {"end": "unsupported", "reason": "x"} if name == "abs" else ROUND

    found, _ = ran(Fake(interrupted), "abs", "neg")
    assert (found["abs"].end, found["neg"].end) == (End.UNSUPPORTED, End.NOT_REACHED)
