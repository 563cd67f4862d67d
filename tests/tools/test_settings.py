"""The settings of other machines: the commands in each, the differences, and the tables that show them."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from conformance.records import Observation
from conformance.results.ledger import Ledger
from conformance.results.store import runs
from conformance.results.store.manifest import run_name
from conformance.vocabulary import Status
from tests.records import manifest, observed
from tools.settings import __main__ as settings
from tools.settings import tables
from tools.settings.model import SETTINGS, Difference, Measured, Setting

LANE = "demo-torch2.8-malloc-release"


def closed(directory: Path, *seen: Observation) -> runs.Closed:
    told = manifest(run=run_name(LANE), collected=len(seen))
    ledger = Ledger(directory / LANE, told, [o.cell for o in seen], [], ())
    for o in seen:
        ledger.enter(o)
    ledger.close(0.1, 0.1, None)
    return runs.find(directory, LANE)


def test_cells_that_end_otherwise_are_put_together_by_kind_and_reason(tmp_path: Path) -> None:
    lacking: dict[str, Any] = {"status": Status.UNSUPPORTED, "compared": 0, "reason": "CPU: no kernel"}
    first = closed(tmp_path / "a", observed("mm"), observed("neg"), observed("add"))
    other = closed(tmp_path / "b", observed("mm", **lacking), observed("neg", **lacking), observed("add"))
    (found,) = settings.differences(first, other)
    assert (found.before, found.after, found.reason, found.cells) == ("pass", "unsupported", "CPU: no kernel", 2)
    assert settings.differences(first, first) == ()


def test_a_measured_setting_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "RESULTS", tmp_path)
    one = Measured(SETTINGS[0].name, "", "tests", 0, 12, 0)
    kept = tmp_path / "as-it-is" / "tests.json"
    kept.parent.mkdir()
    kept.write_text(json.dumps(asdict(one)))
    assert settings.measured("no such program", SETTINGS[0], "tests", "full") == one


def test_a_lane_that_was_measured_in_another_tier_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "RESULTS", tmp_path)
    monkeypatch.setattr(settings, "_lane", lambda *_: Measured(SETTINGS[0].name, "", "2.13", 0, 900, 0, tier="full"))
    kept = tmp_path / "as-it-is" / "2.13.json"
    kept.parent.mkdir()
    kept.write_text(json.dumps(asdict(Measured(SETTINGS[0].name, "", "2.13", 0, 12, 0, tier="smoke"))))
    assert settings.measured("nox", SETTINGS[0], "2.13", "full").total == 900
    assert settings.measured("no such program", SETTINGS[0], "2.13", "full").total == 900


def test_the_smoke_tier_is_not_published(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        settings.main(["--tier", "smoke", "--publish"])
    assert "--publish: the docs have the tier full, not smoke" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["2.13", "tests"])
def test_results_of_an_earlier_call_do_not_count_for_one_that_ended_early(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "RESULTS", tmp_path)
    directory = tmp_path / "as-it-is"
    lane = "refnpu-torch2.13-malloc-release"
    ledger = Ledger(directory / lane, manifest(run=run_name(lane), collected=1), [observed("mm").cell], [], ())
    ledger.enter(observed("mm"))
    ledger.close(0.1, 0.1, None)
    (directory / "tests.xml").write_text('<testsuites><testsuite tests="3" failures="0" errors="0"/></testsuites>')
    with pytest.raises(settings.NotMeasured, match="ended with 1 before"):
        settings.measured("false", SETTINGS[0], command, "full")


def test_a_setting_is_chosen_by_its_whole_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(settings, "RESULTS", tmp_path)
    monkeypatch.setattr(settings, "_tests", lambda _, setting, __: Measured(setting.name, "", "tests", 0, 12, 0))
    chosen = ["four threads, four jobs, shuffled", "clang++, no oneDNN, pytest-xdist"]
    assert settings.main(["--commands", "tests", *(f"--only={name}" for name in chosen)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [name in line for name, line in zip(chosen, printed, strict=True)] == [True, True]
    with pytest.raises(SystemExit):
        settings.main(["--commands", "tests", "--only", "four threads"])
    assert "'four threads, four jobs, shuffled'" in capsys.readouterr().err


def test_a_lane_that_did_not_run_is_told_and_the_other_settings_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(settings, "RESULTS", tmp_path)
    monkeypatch.setattr(settings, "_tests", lambda _, setting, __: Measured(setting.name, "", "tests", 0, 12, 0))
    name = SETTINGS[0].name
    assert settings.main(["--nox", sys.executable, "--commands", "2.13,tests", "--only", name]) == 1
    told = capsys.readouterr()
    assert f"{name}: the lane of 2.13 ended with 2 before its last cell: {tmp_path}" in told.err
    assert "0 of 12 fail" in told.out


def test_a_setting_without_a_first_run_to_compare_with_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(settings, "RESULTS", tmp_path)
    monkeypatch.setattr(settings, "_run", lambda *_: pytest.fail("ran"))
    assert settings.main(["--commands", "2.13", "--only", SETTINGS[1].name]) == 1
    assert f'run it first: --only "{SETTINGS[0].name}" --commands 2.13' in capsys.readouterr().err


def test_tests_are_counted_from_what_pytest_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for nox writes a report of three tests with one failure."""
    report = '<testsuites><testsuite tests="3" failures="1" errors="0"/></testsuites>'
    nox = tmp_path / "nox"
    nox.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"path = next(a.partition('=')[2] for a in sys.argv if a.startswith('--junitxml='))\n"
        f"open(path, 'w').write({report!r})\nsys.exit(1)\n"
    )
    nox.chmod(0o755)
    monkeypatch.setattr(settings, "RESULTS", tmp_path / "results")
    found = settings.measured(str(nox), SETTINGS[0], "tests", "full")
    assert (found.exit, found.total, found.failing) == (1, 6, 2)  # the sum over the suite and the backend


def test_a_setting_says_what_is_typed_otherwise() -> None:
    assert Setting("x", {"A": "1"}, ("taskset", "-c", "0"), pytest=("-n", "1")).words == "A=1 taskset -c 0 -- -n 1"
    assert len({s.name for s in SETTINGS}) == len(SETTINGS)


AVX512 = {"cpu": "A", "cpu_capability": "AVX512"}


def test_the_tables_have_a_line_a_setting_and_a_line_a_difference() -> None:
    differs = Difference("pass", "unsupported", "CPU: no kernel", 2, "ops/matmul.py::mm[float16-contiguous]")
    measured = [
        Measured("as it is", "", "2.8", 0, 1000, 0, machine=AVX512, date="2026-01-02"),
        Measured("as it is", "", "2.8", 0, 1000, 2, machine={**AVX512, "cpu_capability": "AVX2"}, date="2026-01-01"),
        Measured("as it is", "", "2.8", 0, 1000, 1, machine={"cpu": "B"}, date="2026-01-01"),
        Measured("AVX2 kernels", "ATEN_CPU_CAPABILITY=avx2", "2.8", 0, 1000, 0, 0, AVX512, (differs,), "2026-01-03"),
    ]
    head, rows = tables.ends(measured)
    assert head == ["processor", "kernels", "setting", "typed", "lane 2.8"]
    assert rows == [
        ["A", "AVX2", "as it is", "", "2 of 1,000 fail (2026-01-01)"],
        ["A", "AVX512", "as it is", "", "0 of 1,000 fail (2026-01-02)"],
        ["A", "AVX512", "AVX2 kernels", "`ATEN_CPU_CAPABILITY=avx2`", "0 of 1,000 fail (2026-01-03)"],
        ["B", "", "as it is", "", "1 of 1,000 fail (2026-01-01)"],
    ]
    assert tables.differences(measured)[1] == [
        ["A", "AVX2 kernels", "2.8", "2026-01-03", "pass → unsupported", "2", "CPU: no kernel", f"`{differs.example}`"]
    ]


def test_a_settings_outcome_is_read_back_from_its_file() -> None:
    one = Measured("x", "", "2.8", 0, 9, 1, 2, {"cpu": "y"}, (Difference("pass", "fail", "", 1, "z"),))
    assert Measured.from_json(json.loads(json.dumps(asdict(one)))) == one
