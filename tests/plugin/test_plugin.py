"""The suite as a user runs it: options, exit codes, the ledger, with and without xdist."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import conformance.running.cell_runner  # noqa: F401  # loads torch, so that runs within this process do not
from conformance import backends
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plugin.ledger import LISTED
from conformance.plugin.manifest import manifest_of
from conformance.plugin.request import PACKAGE, directory_of, plan_of
from conformance.results import store
from conformance.results.store import runs
from conformance.support.exit_codes import Exit
from conformance.vocabulary import CellId
from tests import forked_runs
from tests.plugin.test_interruptions import HELD

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("forked_runs")

PATIENCE = 300  # seconds that a run may take on a loaded machine

CPU = ("--backend", "torch:cpu", "-q", "-p", "no:cacheprovider")


def run(pytester: pytest.Pytester, *args: str, family: str = "masking") -> pytest.RunResult:
    """Run pytest on one family instead of all, so that collection is fast."""
    return pytester.runpytest_subprocess("--pyargs", f"conformance.ops.{family}", *CPU, *args)


def summary(pytester: pytest.Pytester) -> dict[str, Any]:
    (file,) = Path(pytester.path).glob("results/*/summary.json")
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_every_cell_selected_by_keyword_is_counted(pytester: pytest.Pytester) -> None:
    result = run(pytester, "-k", "masked_fill_.Scalar and float32")
    assert result.ret == Exit.OK
    found = summary(pytester)
    assert found["collected"] == sum(found["by_status"].values()) == found["by_status"]["pass"] > 5
    result.stdout.fnmatch_lines(["accounting: * collected = * pass + 0 fail + 0 error + 0 crash + *"])


def test_any_number_of_workers_gives_the_same_counts(pytester: pytest.Pytester) -> None:
    selection = ("-k", "masked_fill", "--tier", "smoke")
    run(pytester, *selection, "--jobs", "1")
    alone = summary(pytester)
    for several in (("-n", "2"), ("--jobs", "3"), ("-n", "0")):
        assert run(pytester, *selection, *several).ret == Exit.OK
        together = summary(pytester)
        for key in ("collected", "by_status", "coverage", "cells", "cases"):
            assert alone[key] == together[key]


def test_a_run_with_jobs_prints_no_line_for_each_family(pytester: pytest.Pytester) -> None:
    families = ("conformance.ops.masking", "conformance.ops.copying")
    options = ("--pyargs", "--backend", "torch:cpu", "-p", "no:cacheprovider", "--tier", "smoke", "-k", "float32")
    result = pytester.runpytest_subprocess(*options, "--jobs", "2", *families)
    assert result.ret == Exit.OK
    assert "masking.py" not in result.stdout.str()


@pytest.mark.parametrize(
    ("args", "tier", "complete", "series"),
    [
        ((), "full", True, "mine"),
        (("--tier", "smoke"), "smoke", False, "mine+smoke"),
        (("--lane-tier", "smoke"), "smoke", True, "mine"),
        (("--lane-tier", "smoke", "--tier", "full"), "full", False, "mine+full"),
        (("--lane-tier", "smoke", "--dtypes", "float32"), "smoke", False, "mine+part"),
        (("-k", "masked_fill"), "full", False, "mine+part"),
        (("--tier", "smoke", "-m", "native"), "smoke", False, "mine+part"),
        (("--deselect", "ops/masking.py"), "full", False, "mine+part"),
        (("--ignore", str(PACKAGE / "ops" / "masking.py")), "full", False, "mine+part"),
        (("--ignore-glob", str(PACKAGE / "scen*")), "full", False, "mine+part"),
        (("--ignore", "vendor", "--ignore-glob", "*_slow.py"), "full", True, "mine"),
    ],
)
def test_a_run_is_complete_if_it_has_all_cells_of_its_lane(
    pytester: pytest.Pytester, args: tuple[str, ...], tier: str, complete: bool, series: str
) -> None:
    config = pytester.parseconfig("--pyargs", "conformance", "--backend", "torch:cpu", "--lane-name", "mine", *args)
    told = manifest_of(config, plan_of(config), ())
    assert (told.tier, told.complete, told.lane, told.series) == (tier, complete, "mine", series)
    assert told.every_cell == (series != "mine+part")
    assert directory_of(config, plan_of(config)).name == series


def test_a_manifest_records_that_cells_compute_in_one_thread(pytester: pytest.Pytester) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        config = pytester.parseconfig("--pyargs", "conformance", "--backend", "torch:cpu")
        assert manifest_of(config, plan_of(config), ()).threads == 1
    finally:
        torch.set_num_threads(before)


def test_the_summary_of_a_run_has_every_field(pytester: pytest.Pytester) -> None:
    run(pytester, "-k", "masked_fill.Scalar and float32-contiguous")
    assert set(summary(pytester)) == {
        "lane", "collected", "by_status", "coverage", "cells", "cases", "wall_s", "cpu_s", "raw_call_share",
        "collect_s", "corpus", "torch", "compiler", "backend_commit", "schemas", "limits", "routes", "lacking",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--dtypes", "flaot32"), "*--dtypes: unknown dtype 'flaot32'; near: float32*"),
        (("--layouts", "expandd"), "*--layouts: unknown layout 'expandd'; near: expanded*"),
        (("--contexts", "thred"), "*--contexts: unknown context 'thred'; near: thread*"),
        (("--route", "nativ"), "*--route: unknown route 'nativ'; near: native*"),
        (("--tier", "smok"), "*--tier: unknown tier 'smok'; near: smoke*"),
        (("--lane-tier", "ful"), "*--lane-tier: unknown tier 'ful'; near: full*"),
        (("--lane-tier", "ful", "--tier", "smoke"), "*--lane-tier: unknown tier 'ful'; near: full*"),
        (("--case", "ops/masking.py::masked_fil.Scalar[float32-expanded]#x"), "*--case: *near: masked_fill.Scalar*"),
        (("--case", "ops/masking.py::masked_fill.Scalar[flaot32-expanded]#x"), "*unknown cell *[[]float32-expanded]*"),
        (("--case", "ops/masking.py::masked_fill.Scalar[float32-expanded]#x"), "*unknown case *near: ops/*#*"),
        (("--case", "masked_fill"), "*--case: 'masked_fill' is not a case's id; one looks like *"),
        (
            ("--seed", str(2**64)),
            "*--seed: expected -9223372036854775808 to *, got 18446744073709551616*",
        ),
        (("--jobs", "0"), "*--jobs: expected 1 or more processes, got 0*"),
        (("--cell-timeout", "0"), "*--cell-timeout: expected a positive number of seconds, got 0*"),
        (("--death-budget", "-1"), "*--death-budget: expected 0 or more seconds, got -1*"),
        (("--failure-budget", "nan"), "*--failure-budget: expected 0 or more seconds, got nan*"),
        (("--lane-name", "../mine"), "*--lane-name: expected the name of a directory, *, got '../mine'*"),
        (("--lane-name", "a/b"), "*--lane-name: expected the name of a directory, *, got 'a/b'*"),
        (("-k", "masked_fill(", "-n", "2"), "*-k 'masked_fill(': expected names joined by and, or, not*"),
        (("--backend", ":cpu"), "*--backend :cpu: expected module:device*"),
        (("--results", "a_file"), "*--results: a_file/torch-* cannot be written*"),
        (("--expected", "nowhere.toml"), "*--expected: no file nowhere.toml*"),
        (("--after", "x"), "*--after and --runs: need --case*"),
        (("--runs", "2"), "*--after and --runs: need --case*"),
    ],
)
def test_a_wrong_option_is_one_line_that_lists_near_names(
    pytester: pytest.Pytester, args: tuple[str, ...], said: str
) -> None:
    pytester.path.joinpath("a_file").touch()
    result = pytester.runpytest_inprocess("--pyargs", "conformance.ops.masking", *CPU, *args)
    assert result.ret == (Exit.UNKNOWN_CASE if "--case" in args else Exit.USAGE)
    result.stderr.fnmatch_lines([said])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_a_second_case_does_not_replace_the_first_without_a_word(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--pyargs", "conformance", *CPU, "--case", "a", "--case", "b")
    assert result.ret == Exit.USAGE
    result.stderr.fnmatch_lines(["*--case: given twice; expected one ID, run the others after it"])


def test_an_unknown_backend_is_one_line(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--pyargs", "conformance", "--backend", "nobody")
    assert result.ret == Exit.USAGE
    result.stderr.fnmatch_lines(["*unknown backend 'nobody'*"])


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_keywords_that_select_no_cell_fail_the_run_with_near_names(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    result = run(pytester, "-k", "maskd_fill_", *workers)
    assert result.ret == Exit.NONE_SELECTED
    result.stdout.fnmatch_lines(["ERROR: no cell is selected by: *-k maskd_fill_*near: masked_fill_*"])


def test_options_that_select_no_cell_fail_the_run_and_are_listed(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--route", "native", "--dtypes", "bool", "--layouts", "conj")
    assert result.ret == Exit.NONE_SELECTED
    result.stdout.fnmatch_lines(["ERROR: no cell is selected by: *--layouts conj"])


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_blocking_broken_primitive_ends_the_run_before_any_cell(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    result = run(pytester, "--backend", "torch:meta", "--tier", "smoke", *workers)
    assert result.ret == Exit.BRING_UP
    result.stdout.fnmatch_lines(["bring-up gate: copy_bytes (Bytes sent to the device come back the same):*"])
    found = summary(pytester)
    assert found["collected"] == found["by_status"]["not_reached"] > 50
    assert sum(result.parseoutcomes().values()) < 5


SIGNALS = {
    "Ctrl-C": (os.killpg, signal.SIGINT), "SIGTERM to the group": (os.killpg, signal.SIGTERM),
    "SIGTERM": (os.kill, signal.SIGTERM),
}  # fmt: skip


@pytest.mark.parametrize(
    ("workers", "how"),
    [
        ((), "SIGTERM"), (("--jobs", "2"), "Ctrl-C"), (("--jobs", "2"), "SIGTERM to the group"),
        (("-n", "2"), "Ctrl-C"), (("-n", "2"), "SIGTERM"),
    ],
)  # fmt: skip
def test_an_interrupted_run_keeps_its_observations_and_counts_the_rest(
    pytester: pytest.Pytester, workers: tuple[str, ...], how: str
) -> None:
    selection = ("-k", "masked_fill and not Tensor")
    pytester.makepyfile(held=HELD)
    held = ("-p", "held", *workers)
    command = (sys.executable, "-m", "pytest", "--pyargs", "conformance.ops.masking", *CPU, *selection, *held)
    kill, number = SIGNALS[how]
    output = pytester.path / "said"
    with output.open("wb") as stdout:
        p = forked_runs.start(command, pytester.path, stdout)
    wait_for_cells(pytester.path, 20)
    for _ in range(2):  # an impatient user's second signal comes while the ledger closes
        with contextlib.suppress(ProcessLookupError):  # the run ended after the first signal
            kill(p.pid, number)
        time.sleep(0.3)
    assert p.wait(PATIENCE) == Exit.INTERRUPTED
    said = output.read_text()
    found = summary(pytester)
    assert found["collected"] == sum(found["by_status"].values())
    assert found["by_status"]["pass"] >= 15
    assert found["by_status"]["not_reached"] > 0
    assert "accounting:" in said
    assert "Traceback" not in said
    (closed,) = Path(pytester.path).glob("results/runs/*")
    assert not runs.opened(closed).ended
    again = run(pytester, *selection, "--resume")
    assert again.ret == Exit.OK
    assert summary(pytester)["by_status"]["not_reached"] == 0
    again.stdout.fnmatch_lines(["resumed: * of * cells were observed by an earlier run"])


def wait_for_cells(directory: Path, count: int) -> None:
    """Wait until a run has observed ``count`` cells."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if any(len(f.read_text().splitlines()) > count for f in directory.glob("results/*/observations.jsonl")):
            return
        time.sleep(0.02)
    raise AssertionError(f"no {count} cells within {PATIENCE} s")


def test_a_known_failure_that_passes_fails_the_run(pytester: pytest.Pytester) -> None:
    cells = 'op = "masked_fill.Scalar"\ndtype = "float32"\nlayout = "contiguous"'
    rule = f'[[rule]]\n{cells}\nstatus = "fail"\nreason = "once upon a time"\n'
    pytester.makefile(".toml", expected=rule)
    result = run(pytester, "-k", "masked_fill.Scalar and float32-contiguous", "--expected", "expected.toml")
    assert result.ret == Exit.EXPECTATIONS
    result.stdout.fnmatch_lines(["unexpected pass: ops/*.py::masked_fill.Scalar?float32-contiguous?"])


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_the_option_case_runs_that_case_alone(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    case = Plan(backends.find("torch:cpu"), Selection(), seed=20).case_ids(
        CellId("masking", "masked_fill_.Scalar", "float32", "step2")
    )[3]
    result = pytester.runpytest_subprocess("--pyargs", "conformance", *CPU, "--case", case, *workers)
    assert result.ret == Exit.OK
    found = summary(pytester)
    assert (found["collected"], found["cases"], found["by_status"]["pass"]) == (1, 1, 1)


@pytest.mark.parametrize("fault", ["masked_fill_writes_gaps", "crash_in_kernel"])
def test_a_failing_cell_is_stored_with_a_script_that_shows_the_failure(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setenv("REFNPU_FAULT", fault)
    selection = ("--backend", "refnpu", "-k", "masked_fill_.Scalar and float32-offset_gap", "-p", "no:cacheprovider")
    assert pytester.runpytest_subprocess("--pyargs", "conformance.ops.masking", *selection).ret == Exit.CELLS_FAILED
    (journal,) = Path(pytester.path).glob(f"results/*/{store.OBSERVATIONS}")
    (kept,) = store.read(journal).observations
    script = pytester.makepyfile(kept.script)
    shown = forked_runs.run((sys.executable, str(script)), pytester.path)
    assert shown.returncode == 1
    assert ("DIFFERS: the process died: SIGSEGV" if kept.signal else "DIFFERS: self: ") in shown.stdout
    monkeypatch.delenv("REFNPU_FAULT")
    shown = forked_runs.run((sys.executable, str(script)), pytester.path)
    assert shown.returncode == 0
    assert shown.stdout.endswith("the device does as CPU does\n")


COMMAND = re.compile(r"^ +(repeat|script|triage): (.+)$", re.MULTILINE)


def test_every_command_printed_by_a_run_without_adapter_works(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFNPU_FAULT", "masked_fill_writes_gaps")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    selection = ("--backend", "refnpu:npu", "--dtypes", "float32", "-k", "masked_fill_.Scalar and offset_gap")
    said = pytester.runpytest_subprocess("--pyargs", "conformance.ops.masking", *CPU[2:], *selection)
    assert said.ret == Exit.CELLS_FAILED
    printed = sorted(set(COMMAND.findall(said.stdout.str())))
    assert {what for what, _ in printed} == {"repeat", "script", "triage"}
    for what, command in printed:
        if what == "repeat":
            assert pasted(f"{command} --results elsewhere", pytester.path).returncode == Exit.CELLS_FAILED, command
        elif what == "script":
            (pytester.path / "script.py").write_text(pasted(command, pytester.path).stdout)
            assert pasted("python script.py", pytester.path).returncode == 1, command
        else:
            assert pasted(f"{command} --lanes ''", pytester.path).returncode == Exit.CELLS_FAILED, command


def pasted(command: str, where: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, shell=True, cwd=where, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("asked", "listed"), [((), 0), (("-rf",), 11)])
def test_failing_cells_are_listed_one_by_one_only_on_request(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...], listed: int
) -> None:
    monkeypatch.setenv("REFNPU_FAULT", "masked_fill_writes_gaps")
    selection = ("--backend", "refnpu", "-k", "masked_fill_.Tensor and step2 and not bool", *asked)
    said = pytester.runpytest_subprocess("--pyargs", "conformance.ops.masking", *CPU[2:], *selection)
    assert said.parseoutcomes()["failed"] > LISTED
    behind = said.stdout.str().partition("accounting: ")[2]
    assert behind.count("FAILED ") >= listed
    assert listed or "FAILED" not in behind
    assert said.ret == Exit.CELLS_FAILED


def test_the_cache_of_pytest_does_not_store_the_ids_of_cells(pytester: pytest.Pytester) -> None:
    selection = ("-k", "masked_fill.Scalar and float32-contiguous", "--backend", "torch:cpu")
    pytester.runpytest_subprocess("--pyargs", "conformance.ops.masking", *selection).assert_outcomes(passed=2)
    assert not (Path(pytester.path) / ".pytest_cache/v/cache/nodeids").exists()


def test_scenarios_are_cells_of_a_run(pytester: pytest.Pytester) -> None:
    selection = ("-k", "masks and fill or storages and set_to", "-vv", "--jobs", "1")
    result = pytester.runpytest_subprocess("--pyargs", "conformance", *CPU, *selection)
    assert result.ret == Exit.OK
    lines = ["masks.py::masked_fill PASSED*", "storages.py::set_to_another_storage PASSED*"]
    result.stdout.fnmatch_lines([*(f"*scenarios/{line}" for line in lines), "*accounting: 2 collected = 2 pass*"])
    results = Path(pytester.path) / "results"
    (series,) = runs.every_series(results)
    stored = runs.load(runs.find(results, series))
    assert [o.cell.overload for o in stored] == ["masks:masked_fill", "storages:set_to_another_storage"]


def test_a_case_of_a_scenario_runs_alone(pytester: pytest.Pytester) -> None:
    case = "scenarios/handles.py::items#run"
    result = pytester.runpytest_subprocess("--pyargs", "conformance", *CPU, "--case", case)
    result.stdout.fnmatch_lines(["*accounting: 1 collected = 1 pass*"])
    unknown = pytester.runpytest_subprocess("--pyargs", "conformance", *CPU, "--case", f"{case}s")
    assert unknown.ret == Exit.UNKNOWN_CASE
    unknown.stderr.fnmatch_lines([f"*near: {case}*"])


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--after", "scenarios/handles.py::itms"), "*--after: unknown case *near: scenarios/handles.py::items*"),
        (("--after", "ops/masking.py::masked_fil.Scalar[[]float32-expanded]"), "*--after: *near: masked_fill.Scalar*"),
        (("--runs", "0"), "*--runs: expected 1 or more, got 0*"),
    ],
)
def test_a_mistake_in_the_setting_of_a_case_gets_one_line(
    pytester: pytest.Pytester, args: tuple[str, ...], said: str
) -> None:
    case = ("--case", "scenarios/handles.py::items#run")
    result = pytester.runpytest_inprocess(
        "--pyargs", "conformance", *CPU, *case, *(a.replace("[[]", "[") for a in args)
    )
    assert result.ret == Exit.USAGE
    result.stderr.fnmatch_lines([said])


def test_a_case_runs_after_others_and_in_several_processes(pytester: pytest.Pytester) -> None:
    case, earlier = ("--case", "scenarios/handles.py::items#run"), ("--after", "scenarios/masks.py::masked_fill")
    result = pytester.runpytest_subprocess("--pyargs", "conformance", *CPU, *case, *earlier, "--runs", "2")
    result.stdout.fnmatch_lines(["*accounting: 1 collected = 1 pass*"])
