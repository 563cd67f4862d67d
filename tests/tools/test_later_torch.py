"""The tool that records the results of a later torch's CPU for cases that fail with an earlier torch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conformance import backends
from conformance.corpus import later
from conformance.corpus.reader import LATER
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.records import Observation
from conformance.results.store import journal
from conformance.vocabulary import DEFAULT_SEED, CellId, Status
from tests.records import failure, manifest
from tools import later_torch

CELL = CellId("pointwise_unary", "neg", "float32", "contiguous")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the file that the tool writes."""
    monkeypatch.setattr(later_torch, "DATA", tmp_path)
    return tmp_path / LATER


def run_of(where: Path, of_torch: str, check: str = "value") -> tuple[str, str]:
    """Write a run with one failing case of ``neg``; return its file and the case."""
    case = Plan(backends.find("torch:cpu"), Selection(), DEFAULT_SEED).case_ids(CELL)[0]
    with journal.Writer(where / "run", manifest(torch=of_torch)) as writer:
        writer.append(Observation(CELL, "native", Status.FAIL, 1, (failure(case, check),)))
    return str(writer.path), case


def test_the_result_of_this_cpu_is_kept_with_its_version(tmp_path: Path, data: Path) -> None:
    file, case = run_of(tmp_path, "2.5.1")
    assert later_torch.main([file]) == 0
    assert later_torch.main([file]) == 0, "what is there stays"
    ((id_, (outcome, since)),) = later.read(data).items()
    assert (id_, since, outcome.error) == (case, later.version(torch.__version__), "")
    assert outcome.results[0] is not None
    assert outcome.results[0].dtype is torch.float32


def test_another_kind_of_failure_is_left_out(tmp_path: Path, data: Path) -> None:
    later_torch.main([run_of(tmp_path, "2.5.1", "stride")[0]])
    assert later.read(data) == {}


def test_a_large_result_is_named_and_not_kept(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(later_torch, "MOST_BYTES", -1)
    file, case = run_of(tmp_path, "2.5.1")
    later_torch.main([file])
    assert f"too large to be kept: {case}" in capsys.readouterr().out
    assert later.read(data) == {}


def test_a_run_on_a_later_torch_and_a_missing_one_are_refused(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run, said in ((run_of(tmp_path, "99.0")[0], "not earlier than this one"), (f"{tmp_path}/none", "none")):
        with pytest.raises(SystemExit):
            later_torch.main([run])
        assert said in capsys.readouterr().err
    assert not data.exists()
