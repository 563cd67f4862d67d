"""The pure parts of the kill-rate: the order of cells, stored trials, the summary and its tables."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from conformance import backends
from conformance.records import CaseFailure, Death, Observation
from conformance.vocabulary import CellId, Status
from tools.kill_rate import order, tables
from tools.kill_rate.forked import Check, ForkedHunter
from tools.kill_rate.hazard_hunter import HazardHunter
from tools.kill_rate.reach import Reach
from tools.kill_rate.suite_hunter import GATE, SuiteHunter, found_in
from tools.kill_rate.summary import Facts, Hunt, lacking, summary, unmeasured
from tools.kill_rate.trial import CLEAN, Finding, Kills, Part, Trial, TrialFile, fill, hunt, read

CELLS = [CellId("f", "op", d, la) for d in ("bool", "float32", "int64") for la in ("contiguous", "step2", "expanded")]


class Fake:
    """A device on which an item fails while the fault of the same name is awake; ``noisy`` always fails.

    If it ``traces``, each item asks for the fault of the same name.
    """

    plan: Sequence[str] = ("copy", "noisy", "fill")

    def __init__(self, traces: bool = False) -> None:
        self.awake = CLEAN
        self.tried: list[str] = []
        self.stop_at = ""
        self.traces = traces
        self.untraced: set[str] = set()

    def wake(self, fault: str) -> None:
        self.awake = fault

    def trace(self) -> Callable[[], set[str]] | None:
        return (lambda: {self.tried[-1]}) if self.traces else None

    def attempt(self, item: str) -> Finding | None:
        if self.awake and self.awake == self.stop_at:
            raise KeyboardInterrupt
        self.tried.append(item)
        return Finding("value", item) if item in (self.awake, "noisy") else None

    def rest(self) -> None:
        """Do nothing: no process runs."""


def run(fake: Fake, path: Path, faults: Sequence[str], made_with: str = "this plan") -> list[str]:
    """Try the faults. Return those that were tried; ``CLEAN`` stands for no fault."""
    told: list[str] = []
    file = TrialFile(path, {"plan": made_with})
    fill(file, fake, faults, fake, lambda: 0.0, lambda t: told.append(t.fault))
    return told


def test_an_overload_s_first_cell_is_float32_contiguous_and_others_vary() -> None:
    first = [(c.dtype, c.layout) for c in order.varied(CELLS)[:3]]
    assert first == [("float32", "contiguous"), ("float32", "step2"), ("bool", "contiguous")]


def test_one_at_a_time_selects_each_dtype_and_layout_but_not_each_pair() -> None:
    chosen = order.one_at_a_time(CELLS)
    assert len(chosen) == 5
    assert {c.dtype for c in chosen} == {"bool", "float32", "int64"}
    assert {c.layout for c in chosen} == {"contiguous", "step2", "expanded"}


def test_a_selection_of_cells_keeps_the_order_of_the_cells() -> None:
    many = [CellId("f", "op", d, la) for d in ("bool", "float32", "int8", "int64") for la in "abcdefg"]
    chosen = order.one_at_a_time(many)
    assert chosen == [cell for cell in order.varied(many) if cell in set(chosen)]


def test_overloads_take_turns() -> None:
    assert order.turns([[1, 2, 3], [4], [5, 6]]) == [1, 4, 5, 2, 6, 3]


def test_a_trial_ends_at_its_first_finding_that_is_no_false_alarm(tmp_path: Path) -> None:
    fake = Fake()
    run(fake, tmp_path / "lane.jsonl", ["copy", "fill", "asleep"])
    clean, copy, filled, asleep = read(tmp_path / "lane.jsonl")
    assert [f.where for f in clean.findings] == ["noisy"]
    assert (copy.killed, copy.tried) == (Finding("value", "copy"), 1)
    assert (filled.killed, filled.tried) == (Finding("value", "fill"), 2)
    assert asleep.killed is None
    assert fake.awake == CLEAN


def test_an_interrupted_run_keeps_its_trials_and_goes_on_after_them(tmp_path: Path) -> None:
    path, fake = tmp_path / "lane.jsonl", Fake()
    fake.stop_at = "fill"
    with pytest.raises(KeyboardInterrupt):
        run(fake, path, ["copy", "fill"])
    assert fake.awake == CLEAN
    with path.open("a") as file:
        file.write('{"fault": "fi')  # cut short
    fake.stop_at = ""
    assert run(fake, path, ["copy", "fill"]) == ["fill"]
    assert [t.fault for t in read(path)] == [CLEAN, "copy", "fill"]


def test_trials_made_with_another_plan_are_made_again(tmp_path: Path) -> None:
    run(Fake(), tmp_path / "lane.jsonl", ["copy"])
    assert run(Fake(), tmp_path / "lane.jsonl", ["copy"], "another plan") == [CLEAN, "copy"]


def test_a_fault_is_tried_on_the_items_that_ask_for_it_alone(tmp_path: Path) -> None:
    fake = Fake(traces=True)
    run(fake, tmp_path / "lane.jsonl", ["fill", "asleep"])
    _, filled, asleep = read(tmp_path / "lane.jsonl")
    assert (filled.killed, filled.tried) == (Finding("value", "fill"), 1)
    assert (asleep.killed, asleep.tried) == (None, 0)
    assert fake.tried == [*Fake.plan, "fill"]


def test_an_item_that_starts_processes_is_tried_with_each_fault(tmp_path: Path) -> None:
    fake = Fake(traces=True)
    fake.untraced = {"fill"}
    run(fake, tmp_path / "lane.jsonl", ["copy", "asleep"])
    assert fake.tried == [*Fake.plan, "copy", "fill"]


def test_what_items_ask_for_is_kept_for_an_interrupted_run(tmp_path: Path) -> None:
    fake = Fake(traces=True)
    run(fake, tmp_path / "lane.jsonl", [])
    run(fake, tmp_path / "lane.jsonl", ["copy"])
    assert fake.tried == [*Fake.plan, "copy"]


def test_nothing_is_kept_of_what_items_of_another_plan_asked_for(tmp_path: Path) -> None:
    run(Fake(traces=True), tmp_path / "lane.jsonl", [])
    untraced = Fake()
    run(untraced, tmp_path / "lane.jsonl", ["asleep"], "another plan")
    assert untraced.tried == [*Fake.plan, "copy", "fill"]


def test_two_parts_share_the_items_and_each_knows_what_the_other_found(tmp_path: Path) -> None:
    whole, halves = tmp_path / "lane.jsonl", Part(0, 2).all
    assert [part.file(whole).name for part in halves] == ["lane.0of2.jsonl", "lane.1of2.jsonl"]
    assert [Part.parse(str(part)) for part in halves] == halves
    fakes = [Fake(), Fake()]
    for part, fake in zip(halves, fakes, strict=True):
        elsewhere = Kills((other.file(whole) for other in halves if other != part), {})
        file = TrialFile(part.file(whole), {})
        fill(file, fake, ["fill", "noisy"], fake, lambda: 0.0, lambda t: None, part, elsewhere)
    first, second = (read(part.file(whole)) for part in halves)
    assert [(t.fault, t.tried) for t in first] == [(CLEAN, 2), ("fill", 2), ("noisy", 2)]
    assert first[1].killed == Finding("value", "fill")
    assert [(t.fault, t.tried, bool(t.findings)) for t in second] == [(CLEAN, 1, True), ("noisy", 0, False)]
    assert Part().file(whole) == whole
    found = Kills([halves[0].file(whole)], {})
    assert ("fill" in found, "cat" in found) == (True, False)
    assert "fill" not in Kills([halves[0].file(whole)], {"build": "another"})


def test_a_trial_ends_when_another_process_has_found_the_fault() -> None:
    fake = Fake()
    trial = hunt(fake, "asleep", ("copy", "fill", "cat"), lambda: 0.0, found_elsewhere=lambda: len(fake.tried) > 1)
    assert (trial.tried, trial.killed) == (2, None)


def test_the_faults_of_items_are_written_and_read(tmp_path: Path) -> None:
    Reach({"a": {"x", "y"}, "b": {"y", "x"}, "c": set()}).save(tmp_path / "reach.json")
    read_again = Reach.load(tmp_path / "reach.json")
    assert read_again.items(["c", "b", "new", "a"], "x") == ["b", "a"]
    assert Reach.load(tmp_path / "missing.json").items(["c", "b"], "x") == ["c", "b"]


def test_a_crash_is_a_check_of_its_own_and_a_pass_is_no_finding() -> None:
    died = CaseFailure("op[float32-step2]#s", death=Death("SIGSEGV"))
    found = found_in(Observation(CELLS[0], "native", Status.CRASH, 1, (died,)))
    assert found == Finding("crash", str(CELLS[0]), "the process died: SIGSEGV, between cases")
    assert found_in(Observation(CELLS[0], "native", Status.PASS, 1)) is None


def trial(fault: str, *where: str) -> Trial:
    return Trial(fault, 10, 1.5, 1.0, tuple(Finding("value", w) for w in where))


HUNTS = [
    Hunt("plain", (trial(CLEAN), trial("a", "cell 1"), trial("b"), trial("c"), trial("b", "cell 2"))),
    Hunt("guard", (trial(CLEAN), trial("a"), trial("b"), trial("c"))),
    Hunt("peer", (trial(CLEAN, "x", "y"), trial("a", "x"), trial("b"), trial("c")), peer=True),
]
MADE = summary(Facts(("a", "b", "c"), "2.0", 60), HUNTS, {"c": "tests/test_c.py::test_c"})


def test_a_fault_is_killed_where_any_lane_kills_it_in_any_stage() -> None:
    assert (MADE["faults"], MADE["killed"], MADE["false_alarms"]) == (3, 2, 0)
    assert [(s["fault"], s["found_by_own_tests"]) for s in MADE["survivors"]] == [("c", "tests/test_c.py::test_c")]
    assert MADE["peers"] == {"peer": 1}
    assert MADE["peer_totals"]["peer"]["false_alarms"] == 2
    assert MADE["detail"]["b"]["plain"] == {"killed_by": "value", "where": "cell 2", "tried": 20, "seconds": 3.0}


def test_a_summary_lacks_a_new_fault_and_a_survivor_that_a_lane_did_not_try() -> None:
    assert lacking(MADE, ["a", "b", "c"]) == []
    assert lacking(MADE, ["a", "b", "d"]) == ["c is no fault any more"]
    assert unmeasured(MADE, ["a", "b", "d"]) == ["d"]
    short = summary(Facts(("a", "c"), "2.0", 60), [HUNTS[0], Hunt("pool", (trial(CLEAN),))], {})
    assert lacking(short, ["a", "c"]) == ["c was not tried by pool"]


def test_the_tables_have_a_row_for_each_fault_and_each_lane() -> None:
    assert tables.totals(MADE)[1][0] == ["the suite, all lanes", "2 of 3", "0", ""]
    assert [row[0] for row in tables.totals(MADE)[1][1:]] == ["lane `plain`", "lane `guard`", "peer `peer`"]
    assert tables.faults(MADE)[1][0] == ["`a`", "value", "-", "value"]
    assert tables.classes(MADE, {"a": "size", "b": "values", "c": "size", "new": "size"}) == (
        ["class", "faults", "measured", "the suite", "`peer`"],
        [["size", "3", "2", "1", "1"], ["values", "1", "1", "1", "0"]],
    )
    assert tables.cells(MADE)[1][1] == ["`b`", "`plain`", "`cell 2`", "20", "3.0"]
    assert tables.survivors(MADE)[1] == [["`c`", "", "`tests/test_c.py::test_c`"]]


def test_the_backend_s_own_tests_may_be_left_out() -> None:
    made = summary(Facts(("a", "b", "c"), "2.0", 60), HUNTS, None)
    assert tables.survivors(made)[1] == [["`c`", "", "not tried"]]


def attempted(hunter: ForkedHunter) -> dict[str, Finding | None]:
    found = {item: hunter.attempt(item) for item in (*hunter.plan, hunter.plan[0])}
    hunter.rest()
    return found


def test_a_check_in_a_child_is_a_finding_if_it_raises_dies_or_hangs() -> None:
    def fails() -> None:
        raise AssertionError("values differ")

    runs = {"passes": lambda: None, "fails": fails, "dies": lambda: os._exit(3)}
    found = attempted(ForkedHunter({f"{name} op": Check("kind", run) for name, run in runs.items()}, timeout=300))
    found |= attempted(ForkedHunter({"hangs op": Check("kind", lambda: time.sleep(60))}, timeout=0.5))
    assert {item: finding.check if finding else "" for item, finding in found.items()} == {
        "passes op": "", "fails op": "kind", "dies op": "crash", "hangs op": "timeout",
    }  # fmt: skip
    assert found["fails op"] == Finding("kind", "fails op", "AssertionError: values differ")


def test_a_hunter_that_has_rested_attempts_the_next_fault() -> None:
    testing = pytest.importorskip("refnpu.testing", reason="the reference NPU is not installed")
    hunter = SuiteHunter(backends.find("refnpu"), "quick", timeout=600)
    assert hunter.attempt(GATE) is None
    hunter.rest()
    testing.set_fault("output_alias_lost")
    try:
        found = hunter.attempt(GATE)
    finally:
        testing.set_fault(None)
        hunter.rest()
    assert found is not None
    assert (found.check, found.where) == ("gate", GATE)


def test_scenarios_that_start_processes_are_tried_with_each_fault() -> None:
    pytest.importorskip("refnpu", reason="the reference NPU is not installed")
    untraced = SuiteHunter(backends.find("refnpu"), "scenarios", timeout=600).untraced
    assert "scenarios/importing.py::importing_changes_nothing_else" in untraced
    assert "scenarios/groups.py::barriers_of_two_processes" in untraced
    assert "scenarios/masks.py::masked_fill" not in untraced


def test_a_hazard_that_fails_is_a_finding_and_one_that_holds_is_none() -> None:
    testing = pytest.importorskip("refnpu.testing", reason="the reference NPU is not installed")
    hunter = HazardHunter(backends.find("refnpu"), timeout=600)
    assert "kernels_run_in_order" in hunter.plan
    assert hunter.attempt("kernels_run_in_order") is None
    testing.set_fault("work_overtakes")
    try:
        found = hunter.attempt("kernels_run_in_order")
    finally:
        testing.set_fault(None)
    assert found is not None
    assert (found.check, found.where) == ("hazard", "hazard kernels_run_in_order")
    assert found.message.startswith("missing dependency: ")
