"""``conformance perf``: two small runs from end to end, and errors of one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from conformance.calls import file
from conformance.calls.recording import Recorder
from conformance.cli import commands
from conformance.perf import store
from conformance.perf.model import End, Size
from tests import forked_runs
from tests.perf.times import ended, record, timed


def perf(results: Path, *arguments: str) -> Result:
    return CliRunner().invoke(commands, ("perf", *arguments, "--results", str(results)))


def test_a_slower_case_is_printed_with_its_interval_and_exits_with_1(tmp_path: Path) -> None:
    timed(tmp_path, record("neg"), record("abs"), token="aaaaaa")
    timed(tmp_path, record("neg", device=2e-3), record("abs"), token="bbbbbb")
    shown = perf(tmp_path, "diff", "aaaaaa", "bbbbbb")
    assert shown.exit_code == 1
    assert "neg[float32-large] native: 2 times [2, 2], 1 -> 2 times CPU, device now 2 ms" in shown.output
    assert shown.output.endswith("no difference beyond noise: 1\n")


def test_a_run_without_regressions_exits_with_0(tmp_path: Path) -> None:
    timed(tmp_path, record("neg", device=2e-3), ended(End.CRASH, "abs"), token="aaaaaa")
    timed(tmp_path, record("neg"), record("abs"), token="bbbbbb")
    shown = perf(tmp_path, "diff", "aaaaaa", "bbbbbb")
    assert shown.exit_code == 0
    assert "faster: 1" in shown.output
    assert "abs[float32-large]: crash: why -> measured" in shown.output


def test_show_ranks_what_loses_most_first(tmp_path: Path) -> None:
    timed(tmp_path, record("neg", device=2e-3), record("abs", device=9e-3), token="aaaaaa")
    shown = perf(tmp_path, "show", "aaaaaa", "--most", "1")
    assert shown.exit_code == 0
    assert "  1. abs[float32-large] native: 7 ms lost (100.0 %)" in shown.output
    assert "... and 1 more; --most 2 lists them" in shown.output


def test_show_weights_cases_by_the_calls_of_a_recorded_program(tmp_path: Path) -> None:
    x = torch.ones(100)
    with Recorder(torch.device("cpu")) as recorder:
        for _ in range(3):
            x.neg()
        x.abs()
        x.erf()
    file.save(tmp_path / "calls", recorder.calls, facts={"counts": recorder.counts})
    timed(tmp_path, record("neg", device=4e-3), record("abs", device=9e-3), record("exp", device=9e-3))
    shown = perf(tmp_path, "show", "aaaaaa", "--recorded", str(tmp_path / "calls"))
    lines = [line for line in shown.output.splitlines() if "lost" in line]
    assert "abs[float32-large] native: 7 ms lost (53.8 %)" in lines[0]
    assert "neg[float32-large] native: 6 ms lost in 3 calls (46.2 %)" in lines[1]
    assert len(lines) == 2
    assert shown.output.endswith("not measured: erf, 1 recorded calls\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("show", "nothing"), "no perf run 'nothing'"),
        (("show", "cccccc"), "no case was measured"),
        (("diff", "aaaaaa", "cccccc"), "have no case in common"),
        (("show", "aaaaaa", "--recorded", "missing.safetensors"), "not a file of recorded calls"),
    ],
)
def test_what_cannot_be_shown_is_an_error_of_one_line(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    timed(tmp_path, record("neg"), token="aaaaaa")
    timed(tmp_path, ended(End.CRASH, "abs"), token="cccccc")
    shown = perf(tmp_path, *arguments)
    assert shown.exit_code == 2
    assert told in shown.output
    assert len(shown.output.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--overloads", "ad.Tensor"), "unknown overload 'ad.Tensor'; near: add.Tensor"),
        (("-k", "nothing_is_called_that"), "unknown overload 'nothing_is_called_that'"),
        (("-k", "neg", "--overloads", "add.Tensor"), "no overload is selected by -k 'neg'"),
        (("--sizes", "mediun"), "unknown size 'mediun'; near: medium"),
        (("--dtype", "float31"), "unknown dtype 'float31'; near: float32"),
        (("--seconds-per-case", "0"), "expected a positive number of seconds"),
        (("--backend", "nix"), "unknown backend 'nix'"),
        (("--overloads", "mm", "--results", "/proc/perf"), "--results /proc/perf/perf: cannot be created"),
    ],
)
def test_a_run_of_what_does_not_exist_lists_what_is_near(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    given = arguments if "--backend" in arguments else ("--backend", "cpu", *arguments)
    shown = CliRunner().invoke(commands, ("perf", "run", "--results", str(tmp_path), *given))
    assert shown.exit_code == 2
    assert told in shown.output
    assert store.names(tmp_path) == []


@pytest.mark.parametrize("backend", ["refnpu", "refnpu:npu"], ids=["adapter", "without adapter"])
def test_a_run_stores_a_record_of_each_overload_and_size(tmp_path: Path, backend: str) -> None:
    pytest.importorskip("refnpu", reason="the reference NPU is not installed")
    command = [sys.executable, "-m", "conformance.cli", "perf", "run", "--backend", backend]
    command += ["--overloads", "neg.out,erfinv.out,unsqueeze_", "--sizes", "small", "--seconds-per-case", "0.01"]
    command += ["--rounds", "2", "--results", str(tmp_path)]
    done = forked_runs.run(command, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (name,) = store.names(tmp_path)
    run = store.find(tmp_path, name)
    found = {r.key.overload: r for r in run.records}
    assert {r.key.size for r in run.records} == {Size.SMALL}
    assert (found["neg.out"].end, found["neg.out"].route, len(found["neg.out"].rounds)) == (End.MEASURED, "native", 2)
    assert found["unsqueeze_"].end is End.UNSUITABLE
    assert not run.manifest.complete
    work = found["erfinv.out"].work
    assert work is not None
    assert work.fallback_calls == (1 if backend == "refnpu" else None)
    assert work.copied > 0
    assert run.machine.device.bandwidth
    assert run.machine.cpu.flops


def test_a_run_that_measures_nothing_is_no_success(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "conformance.cli", "perf", "run", "--backend", "torch:cpu", "--sizes", "small"]
    command += ["--overloads", "mm", "--dtype", "bool", "--rounds", "1", "--results", str(tmp_path)]
    done = forked_runs.run(command, tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 = 0 measured + 0 unsupported + 1 unsuitable" in done.stdout


@pytest.mark.parametrize(
    ("fault", "end", "reason"),
    [
        ("crash_in_kernel", End.CRASH, "SIGSEGV"),
        ("hang_in_kernel", End.TIMEOUT, "no end after 15 s"),
        ("kernel_raises", End.UNSUPPORTED, "RuntimeError: "),
    ],
)
def test_a_case_that_the_device_cannot_run_has_a_record_and_so_has_the_next(
    tmp_path: Path, fault: str, end: End, reason: str
) -> None:
    pytest.importorskip("refnpu", reason="the reference NPU is not installed")
    command = [sys.executable, "-m", "conformance.cli", "perf", "run", "--backend", "refnpu", "--sizes", "small"]
    command += ["--overloads", "masked_fill_.Scalar,neg.out", "--seconds-per-case", "0.01", "--rounds", "1"]
    seconds = "15" if end is End.TIMEOUT else "300"
    command += ["--timeout", seconds, "--results", str(tmp_path)]
    done = forked_runs.run(command, tmp_path, REFNPU_FAULT=fault)
    assert done.returncode == 0, done.stdout + done.stderr
    (name,) = store.names(tmp_path)
    broken, sound = store.find(tmp_path, name).records
    assert (broken.end, broken.reason[: len(reason)]) == (end, reason)
    assert sound.end is End.MEASURED
