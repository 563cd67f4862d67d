"""Writing the generated samples."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.corpus import reader
from conformance.corpus.model import Sample
from conformance.corpus.vary import build, dtypes
from conformance.inventory import Overload
from conformance.plan.cases import of_generated


def generated(where: Path, overload: str) -> list[Sample]:
    return [s for s in reader.load(where).samples(overload) if s.axis]


def test_what_was_made_before_an_interruption_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_then_interrupted(*_: object) -> Iterator[tuple[str, list[Sample]]]:
        yield "abs", []
        raise KeyboardInterrupt

    where = Path(shutil.copytree(reader.DATA, tmp_path / "data"))
    before = generated(where, "neg")
    monkeypatch.setattr(build, "generate", one_then_interrupted)
    with pytest.raises(KeyboardInterrupt):
        build.build(where, ["abs", "neg"], of_generated)
    written = Path(shutil.copytree(where, tmp_path / "written"))
    assert not generated(written, "abs")
    assert generated(written, "neg") == before
    assert before


def test_of_an_overload_with_an_error_the_old_samples_are_kept_and_the_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_of_neg(overload: Overload, *_: object) -> Iterator[Sample]:
        if overload.name == "neg":
            raise ValueError(overload)
        yield from ()

    where = Path(shutil.copytree(reader.DATA, tmp_path / "data"))
    before = generated(where, "neg")
    monkeypatch.setattr(build, "AXES", (none_of_neg,))
    monkeypatch.setattr(dtypes, "generate", lambda *_: ())
    with pytest.raises(build.GenerationError, match="generated of neg "):
        build.build(where, ["abs", "neg"], of_generated)
    written = Path(shutil.copytree(where, tmp_path / "written"))  # a directory that is read once stays as it was read
    assert generated(written, "neg") == before
    assert before
    assert not generated(written, "abs")
