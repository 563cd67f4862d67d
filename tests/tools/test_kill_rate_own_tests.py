"""The backend's own tests as finders of faults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance.lanes import matrix
from tools.kill_rate.own_tests import OwnTests

ROOT = Path(__file__).parents[2]


def own_tests(monkeypatch: pytest.MonkeyPatch, kept: Path, failing: Mapping[str, str]) -> tuple[OwnTests, list[str]]:
    """Return own tests that fail as ``failing`` says, by fault, and the list of the faults with which they ran."""
    run = list[str]()

    def first_failing(_: OwnTests, fault: str) -> str:
        run.append(fault)
        return failing.get(fault, "")

    monkeypatch.setattr(OwnTests, "_first_failing", first_failing)
    return OwnTests(ROOT, matrix.load(ROOT / "matrices" / "refnpu.toml"), "python", kept), run


def test_the_first_failing_test_of_each_fault_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, run = own_tests(monkeypatch, tmp_path / "kept.json", {"a": "tests/test_a.py::test_a"})
    for _ in range(2):
        assert own.kills(["a", "b"]) == {"a": "tests/test_a.py::test_a"}
    assert run == ["", "a", "b"]


def test_tests_that_fail_without_a_fault_say_nothing_of_faults_and_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept.json"
    own, run = own_tests(monkeypatch, kept, {"": "no end within 600 s"})
    for _ in range(2):
        assert own.kills(["a"]) is None
    assert run == ["", ""]
    assert not kept.exists()
    assert capsys.readouterr().out.startswith(
        "the backend's own tests were not used: they fail without any fault: no end"
    )


def test_what_an_earlier_measurement_found_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps({"": "", "a": "tests/test_a.py::test_a"}), encoding="utf-8")
    own, run = own_tests(monkeypatch, kept, {})
    assert own.kills(["a"]) == {"a": "tests/test_a.py::test_a"}
    assert run == []
