"""A run for a job's page and for services that read JUnit: the content, of which no text is taken for markup."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from conformance.cli import commands
from conformance.records import CaseFailure, Observation
from conformance.report import job_page, junit
from conformance.results import store, summary
from conformance.results.expectations import KnownFailure
from conformance.support import markup
from conformance.vocabulary import Status
from tests.records import manifest, observed

EVIL = "a|b `c` ``d`` <script>&amp; ]]> \x1b[31m\x00 \ud800 @all [l](u) \"q\" 'r'\n\n| x |\n<!-- y"
CELLS = (
    observed("mm", wall_ns=2_000_000_000),
    observed("mm", "float32-expanded", wall_ns=1_000_000_000),
    observed("mm", "float64-contiguous"),
    observed("mm", "float64-step2", Status.FAIL, checks=("value", "stride")),
    observed("cat", status=Status.UNSUPPORTED, reason="no kernel"),
    observed("neg", status=Status.CRASH, signal="SIGSEGV"),
    observed("abs", status=Status.NOT_REACHED, reason="the run ended"),
    observed("sum", status=Status.FAIL),
)
RULES = (
    KnownFailure(op=("sum",), reason="known <1>"),
    KnownFailure(op=("mm",), layout=("expanded",), reason="was broken"),
)


def evil(observation: Observation) -> Observation:
    return replace(observation, failures=(CaseFailure(EVIL, older=EVIL, older_check=EVIL),), signal=EVIL, reason=EVIL)


def suite(*cells: Observation, known: tuple[KnownFailure, ...] = RULES, **given: Any) -> ET.Element:
    (found,) = ET.fromstring(junit.junit([(manifest(**given), cells, known)]))
    return found


def result(cells: tuple[Observation, ...]) -> dict[str, Any]:
    facts = summary.RunFacts("demo", len(cells), 1.0, 1.0, 0.1, "sha256:1", "2.8.0", "g++ 12.2", "abc")
    return summary.summarize(facts, cells, [summary.Target("mm", "native"), summary.Target("x", "native")])


def page(*cells: Observation, known: tuple[KnownFailure, ...] = RULES, **given: Any) -> str:
    return job_page.markdown(manifest(**given), result(cells), cells, known)


def test_cells_that_are_as_expected_are_one_test_and_each_other_is_its_own() -> None:
    found = suite(*CELLS)
    tests = {(t.get("classname"), t.get("name")): (t[0].tag if len(t) else "passed") for t in found.iter("testcase")}
    assert tests == {
        ("demo.mm", "float32"): "passed", ("demo.mm", "float32-expanded"): "failure", ("demo.mm", "float64"): "passed",
        ("demo.mm", "float64-step2"): "failure", ("demo.cat", "float32"): "skipped",
        ("demo.neg", "float32-contiguous"): "failure", ("demo.abs", "float32-contiguous"): "error",
        ("demo.sum", "float32-contiguous"): "skipped",
    }  # fmt: skip
    assert [found.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["8", "3", "1", "2"]
    assert found.get("name") == "demo-torch2.8-malloc-release"
    kinds = {t.get("name"): t[0].get("type") for t in found.iter("testcase") if len(t)}
    assert kinds["float64-step2"] == "stride, value"
    assert kinds["float32-expanded"] == "unexpected pass"


def test_a_full_run_makes_a_file_that_can_be_sent() -> None:
    overloads, dtypes, layouts = 40, ("float32", "float64", "bool"), [f"l{i}" for i in range(20)]
    cells = [observed(f"op{i}", f"{d}-{at}") for i in range(overloads) for d in dtypes for at in layouts]
    text = junit.junit([(manifest(), cells, ())])
    assert text.count("<testcase") == overloads * len(dtypes)
    bad = [observed(f"op{i}", f"float32-{at}", Status.FAIL) for i in range(2) for at in [*layouts, "x", "y"]]
    shown = [t for t in suite(*bad, known=()).iter("failure") if t.text]
    assert len(shown) == 2 * junit.DETAILED


def test_characters_that_xml_does_not_allow_are_escaped() -> None:
    found = suite(evil(CELLS[3]), evil(CELLS[5]), evil(CELLS[6]), lane=EVIL)
    (first, *_) = found.iter("failure")
    assert first.text == EVIL.replace("\x1b", "\\x1b").replace("\x00", "\\x00").replace("\ud800", "\\xd800")
    assert len(list(found.iter("testcase"))) == 3


def test_the_page_says_what_the_run_came_to_and_what_to_look_at() -> None:
    text = page(*CELLS)
    assert "demo\\-torch2\\.8\\-malloc\\-release: 4 cells are not as expected" in text
    assert "| 8 | 3 | 2 | 0 | 1 | 0 | 1 | 1 | 1 |" in text
    assert "| `mm` | 2 |" in text
    assert "1 of 2 overloads compared (native 1/2)" in text
    assert "`sum`" not in text
    assert ": as expected" in page(CELLS[0], known=())
    assert ", shard 2/4: as expected" in page(CELLS[0], known=(), shard="2/4")


def test_the_page_begins_with_the_causes_of_its_failures() -> None:
    text = page(*CELLS)
    assert text.index("| cause |") < text.index("| overload |")
    case = "mm[float64-step2]#s.0"
    told = "dtype: fails in float64; all pass in float32; layout: fails in step2; all pass in contiguous, expanded"
    assert f"| `mm` | 1 | 1: mm | {markup.plain(told)} | `{case}` |" in text
    assert f"Repeat the first:\n\n```sh\npytest --pyargs conformance --backend demo --case '{case}'\n```" in text
    assert f"Triage the first:\n\n```sh\nconformance triage --backend demo '{case}'\n```" in text
    assert "| cause |" not in page(CELLS[0], known=())


def test_an_account_that_does_not_balance_is_the_page_s_first_word() -> None:
    told = {**result(CELLS), "collected": 9}
    assert "the account does not balance" in job_page.markdown(manifest(), told, CELLS, ()).splitlines()[0]


def test_no_text_from_results_is_markup_on_the_page() -> None:
    text = page(*(evil(c) for c in CELLS[3:7]), lane=EVIL, torch=EVIL, backend_commit=EVIL)
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "<" not in outside
    assert "@" not in outside
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [6, 6, 5, 5, 5]  # two causes, three overloads


@pytest.mark.parametrize("text", ["a", "`", "``", "a`b``c|d\ne", "a\\|b", EVIL])
def test_code_is_closed_by_its_own_fence_alone(text: str) -> None:
    shown = markup.code(text)
    (fence,) = {re.match("`+", shown)[0], re.search("`+$", shown)[0]}  # type: ignore[index]  # both match
    assert not re.search(f"(?<!`){fence}(?!`)", shown[len(fence) : -len(fence)])
    assert "\n" not in shown
    assert not re.search(r"(?<!\\)(\\\\)*\|", shown)  # no bar that ends a cell of the table


def test_a_page_with_thousands_of_failures_stays_small() -> None:
    told = (CaseFailure("c", older="x" * 9999, older_check="value"),)
    bad = tuple(replace(observed(f"op{i}", status=Status.FAIL), failures=told) for i in range(900))
    text = page(*bad, known=())
    assert len(text.encode()) < 20_000
    assert "... and 880 overloads more" in text


@pytest.fixture
def lane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    told = manifest(collected=len(CELLS))
    with store.Writer(tmp_path / "results" / told.lane, told) as writer:
        for cell in CELLS:
            writer.append(cell)
        writer.finish(result(CELLS))
    return told.lane


def run(*arguments: str) -> Result:
    return CliRunner().invoke(commands, ["summary", *arguments])


def test_a_summary_that_lacks_what_is_printed_is_said(lane: str) -> None:
    file = Path("results") / lane / store.SUMMARY
    file.write_text('{"by_status": {}, "coverage": {}}')
    shown = run(lane)
    assert shown.exit_code == 2
    assert f"results/{lane}: its summary has no cases, collected, wall_s" in shown.output


def test_the_command_prints_each_form_of_a_stored_run(lane: str) -> None:
    assert json.loads(run(lane, "--format", "json").output)[0]["manifest"]["lane"] == lane
    assert run(lane, "--format", "markdown").output.startswith("### demo")
    assert ET.fromstring(run(lane, "--format", "junit").output).get("tests") == "7"
    assert "accounting: 8 collected" in run(lane).output
    assert run("--format", "markdown").output == run(lane, "--format", "markdown").output
    assert run(lane, "--format", "xml").exit_code == 2
    assert "no closed run in nowhere/runs/" in run("--results", "nowhere").output
