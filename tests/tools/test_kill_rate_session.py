"""The steps of a kill-rate measurement: which run, with which faults, and where an interrupted one continues."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from conformance.lanes import matrix, process
from conformance.lanes.matrix import Lane
from tools.kill_rate import tables
from tools.kill_rate.peers import PEERS
from tools.kill_rate.session import Session, measured, short
from tools.kill_rate.summary import lacking
from tools.kill_rate.trial import CLEAN, Finding, Part, TrialFile, fill

ROOT = Path(__file__).parents[2]
MATRIX = matrix.load(ROOT / "matrices" / "refnpu.toml")
# By fault: the only stage whose item fails while the fault is awake.
FOUND_IN = {"early": "quick", "middle": "contexts", "other": "quick", "never": ""}


@dataclass
class Workers:
    """A stand-in for the processes of a session, with one item in each stage. ``stop_at``: where Ctrl-C comes."""

    build: str = "this build"
    stop_at: tuple[str, str] = ("", "")  # the stage and the fault
    told: list[tuple[str, str]] = field(default_factory=list)  # the trials that ran: stage and fault
    lanes: dict[str, set[str]] = field(default_factory=dict)  # the faults that a lane looked for
    plan: tuple[str, ...] = ("item",)
    untraced: tuple[str, ...] = ()
    _stage: str = ""
    _awake: str = CLEAN

    def work(self, session: Session, lane: Lane, hunter: str, faults: tuple[str, ...], part: Part) -> None:
        """Run a stage as the worker of a lane does."""
        self._stage = hunter
        self.lanes.setdefault(short(lane, MATRIX), set()).update(faults)
        file = TrialFile(part.file(session._file(lane, hunter)), {"build": self.build})  # noqa: SLF001 - as the worker
        fill(file, self, faults, self, lambda: 0.0, lambda t: self.told.append((hunter, t.fault)), part)

    def wake(self, fault: str) -> None:
        self._awake = fault

    def trace(self) -> None:
        """Return None: the faults that an item asks for are not known."""

    def attempt(self, item: str) -> Finding | None:
        if (self._stage, self._awake) == self.stop_at:
            raise KeyboardInterrupt
        return Finding("value", item) if self._awake and FOUND_IN[self._awake] == self._stage else None

    def rest(self) -> None:
        """Do nothing: no process runs."""


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    found = Workers()

    def work(*given: Any) -> None:  # a plain function, which binds to the session
        found.work(*given)

    monkeypatch.setattr(Session, "_work", work)
    monkeypatch.setattr(process, "start", Mock())
    return found


def session(results: Path, *faults: str) -> Session:
    return Session(MATRIX, faults, (measured(MATRIX)[0],), (), ROOT, results, workers=1, own_tests=False)


def test_later_steps_run_while_a_fault_is_left_that_no_lane_has_found(tmp_path: Path, workers: Workers) -> None:
    assert session(tmp_path, "early").run()["killed"] == 1
    assert workers.told == [("quick", CLEAN), ("quick", "early")]
    workers.told.clear()
    made = session(tmp_path, "early", "middle").run()
    later = [(stage, fault) for stage in ("smoke", "contexts") for fault in (CLEAN, "middle")]
    assert workers.told == [("quick", "middle"), *later]
    assert (made["killed"], made["lanes"]["malloc"]["tried"]) == (2, 3)


def test_other_lanes_look_for_what_the_first_one_has_left(tmp_path: Path, workers: Workers) -> None:
    lanes = tuple(lane for lane in measured(MATRIX) if short(lane, MATRIX) in ("malloc", "pool"))
    made = replace(session(tmp_path, "early", "never"), lanes=lanes).run()
    assert workers.lanes == {"malloc": {"early", "never"}, "pool": {"never"}}
    assert lacking(made, ["early", "never"]) == []
    assert [row[:2] for row in tables.totals(made)[1][1:]] == [["lane `malloc`", "1 of 2"], ["lane `pool`", "0 of 1"]]


def test_lanes_in_which_work_is_late_run_all_programs(tmp_path: Path, workers: Workers) -> None:
    lanes = tuple(lane for lane in measured(MATRIX) if short(lane, MATRIX) in ("malloc", "late"))
    replace(session(tmp_path, "never"), lanes=lanes).run()
    assert [stage for stage, fault in workers.told if fault] == [
        "quick", "smoke", "contexts", "full", "quick", "hazards", "hazards", "scenarios",
    ]  # fmt: skip


def test_a_survivor_is_tried_in_every_step(tmp_path: Path, workers: Workers) -> None:
    made = session(tmp_path, "never").run()
    assert [stage for stage, fault in workers.told if fault] == ["quick", "smoke", "contexts", "full", "hazards"]
    assert [s["fault"] for s in made["survivors"]] == ["never"]


def test_an_interrupted_measurement_continues_beside_trials_of_other_faults(tmp_path: Path, workers: Workers) -> None:
    session(tmp_path, "other", "never").run()  # another measurement, in the same directory
    workers.stop_at = ("contexts", "middle")
    with pytest.raises(KeyboardInterrupt):
        session(tmp_path, "early", "middle").run()
    workers.stop_at = ("", "")
    workers.told.clear()
    made = session(tmp_path, "early", "middle").run()
    assert workers.told == [("contexts", "middle")]
    assert list(made["detail"]) == ["early", "middle"]
    alone = session(tmp_path / "alone", "early", "middle").run()
    for totals in (made["lanes"]["malloc"], alone["lanes"]["malloc"]):
        del totals["clean"]  # its durations
    assert {**made, "seconds": 0} == {**alone, "seconds": 0}


def test_a_peer_looks_for_the_sample_and_for_nothing_else(tmp_path: Path, workers: Workers) -> None:
    both = replace(session(tmp_path, "early", "other"), peers=("plain_allclose",))
    both.run()
    workers.told.clear()
    made = replace(both, sample=("early",), results=tmp_path / "sample").run()
    assert [fault for stage, fault in workers.told if stage == "plain_allclose"] == [CLEAN, "early"]
    assert [name for name, rows in made["detail"].items() if "plain_allclose" in rows] == ["early"]
    later = replace(both, sample=("early",)).run()  # trials of other faults are stored there
    assert [name for name, rows in later["detail"].items() if "plain_allclose" in rows] == ["early"]


def test_peers_run_without_lanes(tmp_path: Path, workers: Workers) -> None:
    made = replace(session(tmp_path, "early"), lanes=(), peers=("plain_allclose",), own_tests=True).run()
    assert workers.told == [("plain_allclose", CLEAN), ("plain_allclose", "early")]
    assert (made["lanes"], list(made["detail"]["early"])) == ({}, ["plain_allclose"])


def test_the_tests_of_torchcts_run_in_parts_of_which_each_is_kept(tmp_path: Path, workers: Workers) -> None:
    made = replace(session(tmp_path, "early"), lanes=(), peers=("torchcts",)).run()
    assert len([*tmp_path.glob("torchcts.*of8.jsonl")]) == PEERS["torchcts"].parts == 8
    assert made["peer_totals"]["torchcts"]["tried"] == 1  # the only item, in the first part


def test_no_trial_of_another_build_counts(tmp_path: Path, workers: Workers) -> None:
    session(tmp_path, "never").run()
    workers.build = "a later build"
    workers.told.clear()
    made = session(tmp_path, "early").run()
    assert workers.told == [("quick", CLEAN), ("quick", "early")]
    assert made["lanes"]["malloc"]["tried"] == 1
