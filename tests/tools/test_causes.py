"""The measurement of causes: the cells tried, where a fault lies, when its first cause is right, and the tables."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast
from unittest.mock import Mock

import pytest

from conformance.records import Observation
from conformance.results.causes import FALLBACK, FailingCell
from conformance.running.cell_runner import CellRunner
from conformance.running.progress import Progress
from conformance.vocabulary import CellId, Status
from tools.causes import __main__ as measurement
from tools.causes import asleep, clean, sample, tables
from tools.causes.clean import Clean
from tools.causes.outcome import RIGHT, UNSEEN, WRONG, causes_of, joined, lacking, lies_in, restricted, summary, verdict
from tools.causes.trial import Trial, forget_others, load


def cell(overload: str, layout: str = "contiguous") -> CellId:
    return CellId("family", overload, "float32", layout)


def asked(overload: str, *questions: tuple[str, str], route: str = "native") -> Clean:
    return Clean(cell(overload), route, "pass", frozenset(questions))


def trial(fault: str, *overloads: str) -> Trial:
    """Return the trial of a fault with which one cell of each overload fails."""
    return Trial(fault, 3, tuple(FailingCell(cell(o), "", ("empty",), 4) for o in overloads), (cell("empty"),), "", 1.5)


def test_a_fault_lies_in_the_innermost_operators_that_ask_for_it() -> None:
    found = lies_in([
        asked("clone", ("strides", "_copy_from"), ("short", "empty")),
        asked("flip", ("short", "empty_strided"), ("seed", "")),
    ])  # fmt: skip
    assert found == {
        "strides": {"_copy_from"},
        "short": {"empty", "empty_strided"},
        "seed": frozenset(),
    }


def test_the_code_of_an_operator_that_falls_back_is_the_fallback_s() -> None:
    svd, qr = (asked(name, ("copies", name), route="fallback") for name in ("svd", "qr"))
    caller = asked("pinv", ("copies", "svd"), route="composite")
    assert lies_in([svd, qr, caller]) == {"copies": {FALLBACK}}
    assert lies_in([svd, asked("neg", ("copies", "neg"))]) == {"copies": {FALLBACK, "neg"}}
    assert lies_in([svd, asked("svd", ("copies", "svd"))]) == {"copies": {"svd"}}


def test_the_first_cause_alone_is_judged() -> None:
    lies, passing = frozenset({"copy_"}), [asked("empty", ("f", "empty"))]
    assert verdict(causes_of(trial("f", "copy_", "neg"), passing), lies) == RIGHT
    assert verdict(causes_of(trial("f", "abs", "copy_"), passing), lies) == WRONG
    assert verdict(causes_of(trial("f"), passing), lies) == UNSEEN


def test_a_cell_that_never_asks_counts_as_it_ended_without_the_fault() -> None:
    failed = trial("f", "abs", "neg")
    failed = replace(failed, passing=(), failing=tuple(replace(f, kernels=("helper",)) for f in failed.failing))
    assert [c.kernel for c in causes_of(failed, [])] == ["helper"]
    assert [c.kernel for c in causes_of(failed, [asked("helper")])] == ["abs", "neg"]
    assert [c.kernel for c in causes_of(failed, [asked("helper", ("f", "helper"))])] == ["helper"]


def test_a_trial_comes_back_from_its_file(tmp_path: Path) -> None:
    one = trial("strides", "copy_", "neg")
    (tmp_path / "strides.json").write_text(json.dumps(one.to_json()))
    assert load(tmp_path, ("strides", "other")) == {"strides": one}


def test_native_cells_come_first_and_one_of_each_overload_before_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells = [
        Clean(cell("a"), "composite", "pass", frozenset()),
        asked("b"),
        replace(asked("b"), cell=cell("b", "step2")),
        asked("c"),
    ]
    assert sample.of_fault(cells) == [cell("b"), cell("c"), cell("b", "step2"), cell("a")]
    monkeypatch.setattr(sample, "MOST_OTHER", 0)
    assert sample.of_fault(cells) == [cell("b"), cell("c"), cell("b", "step2")]


@pytest.mark.parametrize(("route", "count"), [("native", 6), ("composite", 4)])
def test_causes_tries_all_native_cells_and_each_layout_of_other_overloads(route: str, count: int) -> None:
    layouts, dtypes = ("contiguous", "transposed", "expanded"), ("float32", "int64")
    plan = Mock(overloads=lambda: ["o"], inventory={"o": Mock(route=route)})
    plan.cells = lambda overload: [CellId("family", overload, d, layout) for d in dtypes for layout in layouts]
    found = sample.of_plan(plan)
    assert len(found) == count
    assert ({c.layout for c in found}, {c.dtype for c in found}) == (set(layouts), set(dtypes))


def test_cells_come_back_from_a_file_without_a_line_that_was_cut(tmp_path: Path) -> None:
    file = tmp_path / "clean.jsonl"
    one = asked("clone", ("strides", "_copy_from"))
    file.write_text(json.dumps(one.to_json()) + '\n{"cell": ["fam')
    assert clean.load(file) == {one.cell: one}
    assert clean.load(tmp_path / "none") == {}


class Work:
    """Work whose cells pass, except ``dies``, which ends its process. A file lists the overloads that ran."""

    def __init__(self, ran: Path) -> None:
        self._ran = ran

    def route(self, cell: CellId) -> str:
        return "native"

    def run(self, cell: CellId, first: int, progress: Progress) -> tuple[Observation, int | None]:
        with self._ran.open("a") as file:
            file.write(f"{cell.overload} ")
        if cell.overload == "dies":
            os._exit(3)
        return Observation(cell, "native", Status.PASS, 1), None


@contextmanager
def questions() -> Iterator[set[tuple[str, str]]]:
    found: set[tuple[str, str]] = set()
    yield found
    found.add(("strides", "_copy_from"))


def test_each_cell_runs_once_without_faults_even_after_a_death(tmp_path: Path) -> None:
    ran, file = tmp_path / "ran", tmp_path / "clean.jsonl"
    work = cast(CellRunner, Work(ran))
    cells = [cell("a"), cell("dies"), cell("b")]
    asleep.run(work, cells[:2], questions, file, 10)
    found = asleep.run(work, cells, questions, file, 10)
    assert ran.read_text().split() == ["a", "dies", "b"]
    assert [(one.status, one.faults) for one in found.values()] == [
        ("pass", {"strides"}), ("", frozenset()), ("pass", {"strides"}),
    ]  # fmt: skip
    assert clean.load(file) == found


def test_a_summary_counts_each_fault_once_and_says_where_it_lies() -> None:
    there = {c.cell: c for c in (asked("clone", ("strides", "_copy_from")), asked("neg", ("zero", "neg")))}
    trials = {t.fault: t for t in (trial("strides", "_copy_from"), trial("zero", "clone"), trial("never"))}
    made = summary(("strides", "zero", "never", "left"), trials, there, "2.13.0")
    assert {k: made[k] for k in ("faults", "right", "wrong", "unseen", "cells", "cpu_s")} == {
        "faults": 3, "right": 1, "wrong": 1, "unseen": 1, "cells": 2, "cpu_s": 4,
    }  # fmt: skip
    assert made["detail"]["strides"]["lies_in"] == ["_copy_from"]
    assert tables.totals(made)[1] == [["3", "1 of 2 (50.0 %)", "1", "1", "4"]]
    assert tables.faults(made)[1][0] == ["`strides`", "`_copy_from`", "`_copy_from`", "1 of 1 failing cells", "right"]
    assert [row[0] for row in tables.misses(made)[1]] == ["`zero`", "`never`"]


def test_causes_of_new_faults_join_those_that_are_published() -> None:
    there = {c.cell: c for c in (asked("clone", ("strides", "_copy_from")), asked("neg", ("zero", "neg")))}
    tried = {t.fault: t for t in (trial("strides", "_copy_from"), trial("zero", "clone"), trial("never"))}
    first, later = ("strides", "never"), ("zero",)
    one, other = (summary(some, {f: tried[f] for f in some}, there, "2.13") for some in (first, later))
    whole = summary(("strides", "zero", "never"), tried, there, "2.13")
    assert joined(one, other, ("strides", "zero", "never")) == whole | {"cpu_s": one["cpu_s"] + other["cpu_s"]}
    assert joined(one, other, ("zero", "strides"))["detail"].keys() == {"zero", "strides"}
    assert restricted(whole, ("zero",)) == other | {"cpu_s": whole["cpu_s"]}
    with pytest.raises(ValueError, match=r"torch 2\.13 cannot join one with 2\.6"):
        joined(one | {"torch": "2.6"}, other, ("zero",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--publish --faults seed_ignored", "causes.json, which covers all faults, and --faults leaves some out"),
        ("--unmeasured --faults seed_ignored", "causes.json covers seed_ignored already"),
        ("--unmeasured --publish", r"causes.json is of torch 2\.6, not 2\.13"),
    ],
)
def test_causes_that_cannot_be_published_are_an_error_before_the_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    file = tmp_path / "causes.json"
    file.write_text(json.dumps(summary(("seed_ignored",), {"seed_ignored": trial("seed_ignored")}, {}, "2.6")))
    monkeypatch.setattr(measurement, "PUBLISHED", file)
    with pytest.raises(SystemExit, match=message):
        measurement.main(arguments.split())


def test_trials_of_another_build_are_deleted_and_those_of_this_one_stay(tmp_path: Path) -> None:
    forget_others(tmp_path, {"build": "this"})
    (tmp_path / "strides.json").write_text(json.dumps(trial("strides").to_json()))
    (tmp_path / clean.FILE).write_text("")
    forget_others(tmp_path, {"build": "this"})
    assert list(load(tmp_path, ("strides",))) == ["strides"]
    forget_others(tmp_path, {"build": "a later one"})
    assert [file.name for file in tmp_path.iterdir()] == ["made_with.json"]


def test_faults_that_are_missed_for_the_same_reason_share_a_row() -> None:
    trials = {t.fault: t for t in (trial("early"), trial("late"), trial("zero", "clone"))}
    rows = tables.misses(summary(("early", "late", "zero"), trials, {}, "2.13.0"))[1]
    assert [row[:2] for row in rows] == [["`zero`", "wrong"], ["`early`, `late`", "no cell fails"]]


def test_a_causes_summary_of_other_faults_or_without_a_reason_is_stale() -> None:
    made = summary(("strides", "zero"), {t.fault: t for t in (trial("strides", "neg"), trial("zero"))}, {}, "2.13.0")
    assert lacking(made, ("strides", "zero"), {"strides": "why"}) == []
    assert lacking(made, ("strides", "zero"), {"strides": "why", "zero": "why"}) == []
    assert lacking(made, ("strides", "new"), {"strides": "why"}) == ["zero is no fault any more"]
    (missing,) = lacking(made, ("strides", "zero"), {"zero": "why"})
    assert missing.startswith("strides ends as 'wrong'")


def test_a_reason_for_a_right_cause_is_stale() -> None:
    clean = {c.cell: c for c in [asked("neg", ("strides", "neg"))]}
    made = summary(("strides",), {"strides": trial("strides", "neg")}, clean, "2.13.0")
    (stale,) = lacking(made, ("strides",), {"strides": "why"})
    assert stale.startswith("strides ends as 'right'")


@pytest.mark.parametrize(
    ("asking", "gate", "why"),
    [
        (3, "", "no sample of the cells that were tried shows it"),
        (0, "", "no cell that was tried asks for it"),
        (3, "copy_bytes: 7 bytes came back changed", "the bring-up gate finds it"),
    ],
)
def test_a_fault_with_which_no_cell_fails_has_its_reason_from_the_measurement(asking: int, gate: str, why: str) -> None:
    unseen = replace(trial("never"), asking=asking, gate=gate)
    made = summary(("never",), {"never": unseen}, {}, "2.13.0")
    assert tables.misses(made)[1] == [["`never`", "no cell fails", why]]
