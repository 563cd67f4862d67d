"""The reports of cells for report plugins, in one phase and in three phases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from conformance.support.exit_codes import Exit

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("forked_runs")

# Four cells that pass. A rule expects one of them to fail, so it counts as a failure.
CELLS = ("-k", "masked_fill.Scalar and float32 and (contiguous or expanded)")
RULE = """
[[rule]]
op = "masked_fill.Scalar"
dtype = "float32"
layout = "expanded"
status = "fail"
reason = "once upon a time"
"""
RECORDER = """
import json, os, pathlib, pytest

def pytest_addoption(parser):
    parser.addoption("--html", dest="htmlpath")  # as pytest-html has it

def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    kept = [report.nodeid, report.when, report.outcome, report.duration, report.longreprtext]
    with pathlib.Path("reports").open("a") as file:
        file.write(json.dumps(kept) + "\\n")

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    with pathlib.Path("made").open("a") as file:
        file.write(json.dumps([report.when, report.outcome, str(call.excinfo and call.excinfo.value)]) + "\\n")
    return report
"""


@pytest.fixture(params=[(), ("-n", "1")], ids=["alone", "one worker"])
def project(
    request: pytest.FixtureRequest, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> tuple[pytest.Pytester, tuple[str, ...]]:
    """Return a directory with a plugin that records all reports, and the arguments of a run of some cells with it."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # this test's worker is not the run's
    pytester.makepyfile(recorder=RECORDER)
    pytester.makefile(".toml", expected=RULE)
    fixed = ("--backend=torch:cpu", "-p", "no:cacheprovider", "--junitxml=junit.xml", "--expected=expected.toml")
    return pytester, ("-p", "recorder", "--pyargs", "conformance.ops.masking", *fixed, *CELLS, *request.param)


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def in_junit(file: Path) -> dict[str, tuple[str, str]]:
    """Return how each test in JUnit's XML ended, and the text of this end."""
    ended = {}
    for case in ET.parse(file).getroot().iter("testcase"):
        assert case.attrib["name"] not in ended
        ended[case.attrib["name"]] = next(((end.tag, str(end.text)) for end in case), ("passed", ""))
    return ended


@pytest.mark.parametrize("html", [(), ("--html", "page")], ids=["one phase", "three phases"])
def test_each_cell_has_one_report_with_outcome_text_and_duration(
    project: tuple[pytest.Pytester, tuple[str, ...]], html: tuple[str, ...]
) -> None:
    pytester, args = project
    result = pytester.runpytest_subprocess(*args, *html)
    assert result.ret == Exit.EXPECTATIONS
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (3, 1)
    result.stdout.fnmatch_lines(["accounting: 4 collected = 4 pass + 0 fail + *"])
    reports = lines(pytester.path / "reports")
    phases = ("setup", "call", "teardown") if html else ("call",)
    assert [sum(when == phase for _, when, *_ in reports) for phase in phases] == [4] * len(phases)
    assert len(reports) == 4 * len(phases)
    (failed,) = [report for report in reports if report[2] == "failed"]
    assert failed[1] == "call"
    assert failed[3] > 0
    assert "passed, but a known failure covers it: rule op=masked_fill.Scalar" in failed[4]
    found = in_junit(pytester.path / "junit.xml")
    assert sorted(tag for tag, _ in found.values()) == ["failure", "passed", "passed", "passed"]
    assert "passed, but a known failure" in found["masked_fill.Scalar[float32-expanded]"][1]


def test_reports_in_three_phases_carry_the_failure_in_the_call(
    project: tuple[pytest.Pytester, tuple[str, ...]],
) -> None:
    pytester, args = project
    pytester.runpytest_subprocess(*args, "--html", "page")
    made = [m for m in lines(pytester.path / "made") if m[1] == "failed"]
    assert [(when, raised.partition(":")[0]) for when, _, raised in made] == [
        ("call", "passed, but a known failure covers it")
    ]
