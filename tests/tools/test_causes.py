"""The measurement of causes: the cells tried, where a fault lies, when its first cause is right, and the tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results.causes import FALLBACK
from conformance.vocabulary import CellId
from tools.causes import clean, sample, tables
from tools.causes.clean import Clean
from tools.causes.outcome import RIGHT, UNSEEN, WRONG, Named, Trial, lacking, lies_in, summary, verdict


def cell(overload: str, layout: str = "contiguous") -> CellId:
    return CellId("family", overload, "float32", layout)


def asked(overload: str, *questions: tuple[str, str], route: str = "native") -> Clean:
    return Clean(cell(overload), route, "pass", frozenset(questions))


def trial(fault: str, *kernels: str) -> Trial:
    return Trial(fault, 3, 2, len(kernels), tuple(Named(k, 1, 1) for k in kernels), "", 1.5)


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
    lies = frozenset({"copy_"})
    assert verdict(trial("f", "copy_", "neg"), lies) == RIGHT
    assert verdict(trial("f", "neg", "copy_"), lies) == WRONG
    assert verdict(trial("f"), lies) == UNSEEN


def test_each_overload_that_asks_is_tried_before_a_second_cell_of_any(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [cell("a"), cell("a", "step2"), cell("b"), cell("c")]
    assert sample.of_fault(cells) == [cell("a"), cell("b"), cell("c"), cell("a", "step2")]
    monkeypatch.setattr(sample, "MOST", 3)
    assert sample.of_fault(cells) == [cell("a"), cell("b"), cell("c")]


def test_cells_come_back_from_a_file_without_a_line_that_was_cut(tmp_path: Path) -> None:
    import json

    file = tmp_path / "clean.jsonl"
    one = asked("clone", ("strides", "_copy_from"))
    file.write_text(json.dumps(one.to_json()) + '\n{"cell": ["fam')
    assert clean.load(file) == {one.cell: one}
    assert clean.load(tmp_path / "none") == {}


def test_a_summary_counts_each_fault_once_and_says_where_it_lies() -> None:
    there = {c.cell: c for c in (asked("clone", ("strides", "_copy_from")), asked("neg", ("zero", "neg")))}
    trials = {t.fault: t for t in (trial("strides", "_copy_from"), trial("zero", "clone"))}
    made = summary(("strides", "zero", "never"), trials, there, "2.13.0")
    assert {k: made[k] for k in ("faults", "right", "wrong", "unseen", "cells", "cpu_s")} == {
        "faults": 3, "right": 1, "wrong": 1, "unseen": 1, "cells": 2, "cpu_s": 3,
    }  # fmt: skip
    assert made["detail"]["strides"]["lies_in"] == ["_copy_from"]
    assert tables.totals(made)[1] == [["3", "1 of 2 (50.0 %)", "1", "1", "3"]]
    assert tables.faults(made)[1][0] == ["`strides`", "`_copy_from`", "`_copy_from`", "1 of 1 failing cells", "right"]
    assert [row[0] for row in tables.misses(made)[1]] == ["`zero`", "`never`"]


def test_a_summary_of_other_faults_or_with_a_miss_without_a_reason_is_refused() -> None:
    made = summary(("strides", "zero"), {"strides": trial("strides", "neg")}, {}, "2.13.0")
    assert lacking(made, ("strides", "zero"), {"strides": "why", "zero": "why"}) == []
    assert lacking(made, ("strides", "new"), {"strides": "why", "zero": "why"}) == [
        "new was not measured", "zero is no fault any more",
    ]  # fmt: skip
    (missing,) = lacking(made, ("strides", "zero"), {"zero": "why"})
    assert missing.startswith("strides ends as 'wrong'")
