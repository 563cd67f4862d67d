"""The command line: output, and one-line errors with exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conformance.cli import commands
from conformance.hazards import runner
from conformance.results import store, summary
from conformance.vocabulary import Status
from tests.records import manifest, observed

LANE = "demo-torch2.8-malloc-release"
CELLS = (observed("mm"), observed("masked_fill_.Scalar", "bool-expanded", Status.FAIL))


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which has the results of one finished run and a program."""
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("a.py").write_text("import torch\n")
    with store.Writer(tmp_path / "results" / LANE, manifest()) as writer:
        for cell in CELLS:
            writer.append(cell)
        facts = summary.RunFacts(LANE, 2, 1.0, 1.0, 0.1, "sha256:1", "2.8.0", "g++ 12.2", "abc")
        writer.finish(summary.summarize(facts, CELLS, [summary.Target("mm", "native")]))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(commands, arguments)


def test_summary_prints_what_the_run_ended_with(results: Path) -> None:
    shown = run("summary", LANE)
    assert shown.exit_code == 0
    assert "accounting: 2 collected = 1 pass + 1 fail" in shown.output
    assert shown.output.endswith(f"results: results/{LANE}/\n")
    assert run("summary", str(results / "results" / LANE)).exit_code == 0


def test_expect_update_writes_rules_that_the_next_run_meets(results: Path) -> None:
    shown = run("expect", "update", LANE)
    assert shown.output == "matrices/expected/demo.toml: 1 rules: 0 kept, 1 new; 0 dropped\n"
    assert 'op = "masked_fill_.Scalar"' in (results / "matrices/expected/demo.toml").read_text()
    assert run("expect", "update", LANE).output == "matrices/expected/demo.toml: 1 rules: 1 kept, 0 new; 0 dropped\n"


def test_expect_update_reads_the_directory_that_results_names(results: Path) -> None:
    (results / "results").rename(results / "kept")
    shown = run("expect", "update", LANE, "--results", "kept")
    assert shown.output == "matrices/expected/demo.toml: 1 rules: 0 kept, 1 new; 0 dropped\n"


def test_expect_update_leaves_the_rules_alone_after_a_run_that_did_not_end(results: Path) -> None:
    with store.Writer(results / "results" / LANE, manifest()):
        pass
    shown = run("expect", "update", LANE)
    assert shown.exit_code == 2
    assert "the run did not end; nothing was changed" in shown.output
    assert not (results / "matrices").exists()


def test_expect_update_takes_no_shard_for_a_run(results: Path) -> None:
    with store.Writer(results / "shard", manifest(collected=0, shard="1/2")):
        pass
    shown = run("expect", "update", str(results / "shard"))
    assert (shown.exit_code, shown.output.strip().endswith("conformance merge")) == (2, True)
    assert not (results / "matrices").exists()


def test_inventory_lists_a_device_without_an_adapter() -> None:
    shown = run("inventory", "--backend", "torch:cpu", "-k", "masked_fill_.", "--format", "json")
    assert shown.exit_code == 0, shown.output
    assert [o["name"] for o in json.loads(shown.output)] == ["masked_fill_.Scalar", "masked_fill_.Tensor"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inventroy"], "unknown command 'inventroy'; near: inventory"),
        (["show"], "; `commands --help` lists them"),
        (["expect", "updat", "x"], "unknown command 'updat'; near: update"),
        (["perf", "runn"], "unknown command 'runn'; near: run"),
        (["lane", "demo", "--", "python"], "matrices/; expected <backend>.toml"),
        (
            ["summary", "nowhere"],
            "no closed run 'nowhere' in results/runs/; lanes with runs: demo-torch2.8-malloc-release",
        ),
        (["inventory", "--backend", "torch:cpu", "-k", "masked_fil_.Scalar"], "near: masked_fill_.Scalar"),
        (["inventory", "--backend", "nosuch"], "nosuch"),
        (["inventory", "--backend", "no_such_module:cpu"], "no_such_module"),
        (["inventory", "--route", "nativ"], "'nativ' is not one of"),
        (["repro", "nonsense", "--backend", "torch:cpu"], "nonsense"),
        (
            ["repro", "scenarios/masks.py::odd_bools#run", "--backend", "torch:cpu", "--after", "x"],
            "--after: the script of a program has no calls before it; run it after others with: pytest",
        ),
        (["repro", "x", "--seed", str(2**64)], "18446744073709551616 is not in the range"),
        (["diff", "--across", "torch", "--results", "nowhere"], "no two lanes differ only in it; runs: none"),
        (["expect", "update", "demo-torch2.8-malloc-release", "--expected", "a.py/x.toml"], "a.py: File exists"),
        (["report", "site", "--bisect", "tests"], "--bisect tests: has no state.json; expected the --out of"),
        (
            ["perf", "run", "--backend", "torch:cpu", "--overloads", ","],
            "expected at least one overload; known: __and__",
        ),
        (["record", "--backend", "torch:cpu", "--", "python", "no.py"], "no script no.py"),
        (["record", "--backend", "torch:cpu", "-o", "no/calls", "--", "python", "a.py"], "there is no directory no;"),
        (["record", "--backend", "torch:cpu", "--largest", "-1", "--", "python", "a.py"], "-1 is not in the range"),
        (["repro", "nonsense", "--backend", "torch:cpu", "-o", "no/case.py"], "there is no directory no;"),
        (["corpus", "generate", "--out", ".", "neg"], "--out .: has no recorded samples"),
        (["corpus", "show", "--from", "."], "--from .: has no recorded samples"),
        (["contract", "--backend", "torch:cpu", "-o", "no/ends.json"], "there is no directory no;"),
        (["contract", "--backend", "torch:cpu", "-o", "a.py"], "a.py: not JSON"),
        (["contract", "--backend", "torch:cpu", "-o", "/proc/ends.json"], "--output: /proc cannot be written"),
        (["triage", "--backend", "torch:cpu", "masked_fill"], "expected a CASE such as ops/"),
        (["triage", "--backend", "torch:cpu", "--", "python", "no.py"], "no script no.py"),
        (["triage", "--backend", "torch:cpu", "--matrix", "no.toml", "--", "a.py"], "'no.toml' does not exist"),
        (["triage", "--backend", "torch:cpu", "--python", "no/python", "--", "a.py"], "no/python: no such program"),
    ],
)
@pytest.mark.usefixtures("results")
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], message: str) -> None:
    shown = run(*arguments)
    assert shown.exit_code == 2
    assert message in shown.output
    assert "Traceback" not in shown.output
    assert isinstance(shown.exception, SystemExit)


@pytest.mark.parametrize("what", [["ops/masking.py::masked_fil_.Scalar[bool-expanded]#x"], ["--aoti", "no.py"]])
def test_a_triage_of_what_is_not_there_leaves_no_directory(what: list[str], results: Path) -> None:
    shown = run("triage", "--backend", "torch:cpu", *what)
    assert shown.exit_code == 2
    assert not (results / "triage").exists()


def test_ctrl_c_is_no_failure_of_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("conformance.hazards.runner.run", interrupted)
    shown = run("hazard", "--backend", "torch:cpu")
    assert (shown.exit_code, shown.output) == (2, "Error: interrupted\n")


@pytest.mark.parametrize(
    ("lacking", "failure", "arguments", "code", "said"),
    [
        (("streams", "streams"), "", (), 2, "no hazard could run, so nothing was tried"),
        (("streams", ""), "", (), 0, "hazards: 1 run, 0 failed, 1 not run"),
        (("streams", ""), "", ("one", "other"), 2, "a requested hazard could not run"),
        (("streams", ""), "wrong", ("one", "other"), 1, "hazards: 1 run, 1 failed, 1 not run"),
    ],
)
def test_hazards_of_which_none_ran_are_no_success(
    lacking: tuple[str, str], failure: str, arguments: tuple[str, ...], code: int, said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ends = {
        name: runner.Result(name, 1, "" if lack else failure, lack) for name, lack in zip(("one", "other"), lacking)
    }
    monkeypatch.setattr(runner, "names", lambda: list(ends))
    monkeypatch.setattr(runner, "run", lambda name, *_: ends[name])
    shown = run("hazard", "--backend", "torch:cpu", *arguments)
    assert shown.exit_code == code
    assert said in shown.output


def test_samples_are_tried_again_or_generated_anew_but_not_both() -> None:
    shown = run("corpus", "generate", "--check", "--anew", "neg")
    assert shown.exit_code == 2
    assert "--check generates none, and --anew is about generated ones: give one of them" in shown.output


@pytest.mark.parametrize("command", ["aoti", "bisect", "contract", "hazard", "huge", "perf run", "replay", "triage"])
def test_a_limit_of_no_time_is_a_mistake_before_anything_runs(command: str) -> None:
    shown = run(*command.split(), "--timeout", "-1", "x")
    assert shown.exit_code == 2
    assert shown.output == "Error: --timeout: expected a positive number of seconds, got -1\n"


def test_next_ranks_what_to_fix_in_the_latest_run(results: Path) -> None:
    shown = run("next")
    assert shown.exit_code == 0
    row = next(line for line in shown.output.splitlines() if line.startswith("  1."))
    assert row.split() == ["1.", "fix", "masked_fill_", "1", "-", "-"]
    assert run("next", LANE).output == shown.output
    assert run("next", "--results", "nowhere").exit_code == 2


def test_the_doctor_leaves_torch_s_own_devices_alone() -> None:
    shown = run("doctor", "--backend", "torch:cpu")
    assert shown.exit_code == 2
    assert "expected a PrivateUse1 device" in shown.output
