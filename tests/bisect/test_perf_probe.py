"""A search for the point from which a call is slower: invented times, and two builds of the reference NPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conformance.bisect.environments import Unusable
from conformance.bisect.perf_probe import PerfProbe
from conformance.bisect.places import Place
from conformance.bisect.points import Point
from conformance.bisect.processes import Processes
from conformance.bisect.record import Record
from conformance.bisect.report import markdown
from conformance.bisect.search import Kind
from conformance.bisect.session import Session, found
from conformance.bisect.signature import Signature
from conformance.cli import commands
from conformance.commands import bisect
from conformance.perf.model import End
from tests.bisect.test_points import history
from tests.bisect.timings import CASE, Timings, Workshop, place
from tests.bisect.worlds import question


def probe(times: Timings, **given: float) -> PerfProbe:
    return PerfProbe(times, "demo", lambda: place("good"), 60, **given)  # type: ignore[arg-type]


def test_a_call_that_takes_twice_the_time_fails_with_its_interval() -> None:
    times = Timings({"good": 1e-3, "here": 2e-3})
    outcome = probe(times).run(place("here"), CASE)
    assert (outcome.passed, outcome.judged, outcome.signature) == (False, True, Signature("slow"))
    assert outcome.output.startswith(f"{CASE}: 2")
    assert outcome.output.endswith("5 processes a side: slow")
    assert times.ran == ["here", "good", "good", "here", "here", "good", "good", "here", "here", "good"]
    assert outcome.seconds == 5.0


def test_a_call_as_fast_as_at_the_good_end_passes() -> None:
    outcome = probe(Timings({"good": 1e-3, "here": 1e-3})).run(place("here"), CASE)
    assert (outcome.passed, outcome.judged, outcome.signature) == (True, True, None)


def test_times_that_do_not_decide_are_taken_again_and_then_not_judged() -> None:
    times = Timings({"good": 1e-3, "here": 1.1e-3})
    outcome = probe(times, most_pairs=10).run(place("here"), CASE)
    assert (outcome.passed, outcome.judged) == (False, False)
    assert outcome.output.endswith("10 processes a side: cannot tell")
    assert len(times.ran) == 20


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (Timings({"good": 1e-3}, ends={"here": End.CRASH}), f"{CASE} was not measured: crash: why"),
        (Timings({"good": 1e-3, "here": 1e-3}, shapes={"here": ((7,),)}), "its arguments differ"),
        (Timings({"good": 1e-3, "here": 1e-3}, late=True), "no end after 60 s"),
    ],
    ids=["crash", "other arguments", "late"],
)
def test_a_call_without_comparable_times_is_not_judged(times: Timings, said: str) -> None:
    outcome = probe(times).run(place("here"), CASE)
    assert (outcome.passed, outcome.judged) == (False, False)
    assert outcome.output.startswith(said)


def test_a_good_end_that_cannot_be_made_is_named() -> None:
    def unusable() -> Place:
        raise Unusable("building v0 failed:", "error: no such header")

    outcome = PerfProbe(Timings({}), "demo", unusable, 60).run(place("here"), CASE)
    assert not outcome.judged
    assert outcome.output == "the good end cannot be made: building v0 failed: error: no such header"


@pytest.mark.parametrize("culprit", [1, 6, 15])
def test_the_first_slow_point_is_found_among_noisy_times(tmp_path: Path, culprit: int) -> None:
    times = Timings({f"v{n}": 1.6e-3 if n >= culprit else 1e-3 for n in range(16)}, noise=0.05)
    asked = question(perf=True, least=0.3, rate=1.0, cases=(CASE,))
    kept = Record(asked)
    timing = PerfProbe(times, "demo", lambda: place("v0"), 60, least=0.3)
    Session(kept, timing, Workshop(times), tmp_path / "state.json", lambda _: None).run()  # type: ignore[arg-type]
    result = found(kept)[CASE]
    assert (result.kind, result.first) == (Kind.CULPRIT, culprit)
    assert f"first bad v{culprit}" in markdown(kept)
    assert "# Bisect: first slow-down of" in markdown(kept)
    assert all(f"{run.output} |" in markdown(kept) for run in kept.runs)


def test_the_build_with_a_planted_slowdown_is_named(tmp_path: Path) -> None:
    """The last of three builds waits before each launch of sigmoid, so a small call takes several times as long."""
    pytest.importorskip("refnpu", reason="the reference NPU is not installed")
    case = "sigmoid.out[float32-small]"

    class Builds:
        processes = Processes()

        def make(self, point: Point) -> Place:
            fault = {"REFNPU_FAULT": "sigmoid_waits_before_launch"} if point.name == "v2" else {}
            return Place(sys.executable, tmp_path, fault, point.name)

        def close(self) -> None:
            """Do nothing: there is nothing to remove."""

    builds, asked = Builds(), question(3, perf=True, least=1.0, rate=1.0, cases=(case,))
    kept = Record(asked)
    timing = PerfProbe(
        builds.processes, "refnpu", lambda: builds.make(asked.points[0]), 300, least=1.0, seconds=0.5, pairs=1
    )
    Session(kept, timing, builds, tmp_path / "state.json", lambda _: None, ahead=0).run()  # type: ignore[arg-type]
    result = found(kept)[case]
    assert (result.kind, result.first) == (Kind.CULPRIT, 2), [run.output for run in kept.runs]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("softmx.int[float32-medium]",), "--perf: unknown overload 'softmx.int'; near: softmax.int"),
        (("softmax.int[float31-medium]",), "--perf: unknown dtype 'float31'; near: float32"),
        (("softmax.int[float32-mediun]",), "--perf: unknown size 'mediun'; near: medium"),
        (("softmax.int",), "'softmax.int' is not a case of `conformance perf`; one looks like mm[float32-medium]"),
        (("--script", "true"), "--perf: expected CASEs of `conformance perf`, not --script"),
        (("mm[float32-medium]", "--seconds-per-case", "0"), "expected a positive number of seconds, got 0"),
        (("mm[float32-medium]", "--good", ""), "--perf: expected --good"),
    ],
)
def test_a_search_for_what_cannot_be_timed_is_an_error_of_one_line(arguments: tuple[str, ...], said: str) -> None:
    good = () if "--good" in arguments else ("--good", "2.8")
    shown = CliRunner().invoke(commands, ["bisect", "--perf", *good, *arguments])
    assert shown.exit_code == 2
    assert said in shown.output
    assert len(shown.output.splitlines()) == 1


def test_a_case_of_perf_without_the_option_names_the_option() -> None:
    shown = CliRunner().invoke(commands, ["bisect", "mm[float32-medium]"])
    assert shown.exit_code == 2
    assert "with --perf it is a case of `conformance perf`" in shown.output


def test_the_command_compares_with_the_good_end_and_prepares_nothing_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = history(tmp_path / "repository", ({"value": str(n)} for n in range(3)))
    kept: dict[str, Any] = {}

    class Asked:
        """A stand-in for a session, which keeps its arguments and is interrupted."""

        def __init__(self, record: Record, timing: PerfProbe, *others: object) -> None:
            kept.update(question=record.question, probe=timing, ahead=others[-1])

        def run(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(bisect, "Session", Asked)
    given = ["--perf", CASE, "--axis", "backend", "--backend", "demo", "--repository", str(repository)]
    given += ["--good", "main~2", "--bad", "main", "--least", "0.5", "--out", str(tmp_path / "out")]
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(commands, ["bisect", *given])
    assert shown.exit_code == 2, shown.output
    asked = kept["question"]
    assert (asked.perf, asked.least, asked.rate, asked.cases, asked.good) == (True, 0.5, 1.0, (CASE,), 0)
    assert (kept["probe"].least, kept["ahead"]) == (0.5, 0)
    assert kept["probe"].good_end.args == (asked.points[0],)
