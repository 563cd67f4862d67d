"""The outcomes under a later torch: the stored facts, and the versions to which they apply."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conformance.corpus import later
from conformance.corpus.later import Later
from conformance.corpus.reader import DATA, LATER, CorpusError, load
from conformance.vocabulary import CaseId

RETURNS = Later(results=(torch.tensor([1 + 2j], dtype=torch.complex128), None, torch.tensor(3, dtype=torch.int16)))


def test_outcomes_that_are_written_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / LATER
    later.write(file, {"b": (Later("ValueError"), "2.7"), "a": (RETURNS, "2.13")})
    found = later.read(file)
    assert found["b"] == (Later("ValueError"), "2.7")
    complex_, none, number = found["a"][0].results
    assert (complex_, none, number) == RETURNS.results
    assert complex_ is not None
    assert complex_.dtype is torch.complex128


def test_equal_outcomes_give_equal_bytes(tmp_path: Path) -> None:
    outcomes = {"b": (Later("ValueError"), "2.7"), "a": (RETURNS, "2.13")}
    later.write(tmp_path / "one", outcomes)
    later.write(tmp_path / "two", dict(reversed(outcomes.items())))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_an_outcome_counts_for_earlier_versions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later, "_read", lambda _: {"a": (RETURNS, "2.13")})
    monkeypatch.setattr(torch, "__version__", "2.9.1+cpu")
    assert later.of("a") is RETURNS
    assert later.of("b") is None
    monkeypatch.setattr(torch, "__version__", "2.13.0")
    assert later.of("a") is None


def test_a_version_is_its_first_two_numbers() -> None:
    assert later.version("2.13.0+cpu") == "2.13"
    assert later.is_earlier("2.9.1", "2.13.0+cpu")
    assert not later.is_earlier("2.13.1", "2.13.0+cpu")


@pytest.mark.parametrize("text", [b"", b"no tensors"])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / LATER
    file.write_bytes(text)
    with pytest.raises(CorpusError, match=r"later\.safetensors: not a file of outcomes"):
        later.read(file)


def test_each_stored_outcome_is_of_a_sample_of_the_corpus() -> None:
    corpus = load()
    for case in later.read(DATA / LATER):
        id_ = CaseId.parse(case)
        assert id_ is not None
        assert id_.sample in {sample.name for sample in corpus.samples(id_.cell.overload)}, case
