"""Writing the generated samples."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.corpus import reader
from conformance.corpus.model import Sample
from conformance.corpus.reader import Corpus
from conformance.corpus.vary import build, dtypes, forms
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload
from conformance.plan.cases import of_generated


def generated(where: Path, overload: str) -> list[Sample]:
    return [s for s in reader.load(where).samples(overload) if s.axis]


@pytest.fixture
def where(tmp_path: Path) -> Path:
    """Return the directory of a corpus with generated samples of two overloads."""
    corpus = reader.load()
    corpus.load_values()
    of_two = {overload: [s for s in corpus.samples(overload) if s.axis] for overload in ("abs", "neg")}
    small = Path(shutil.copytree(reader.DATA, tmp_path / "small"))
    build.write(small, of_two, of_generated)
    return Path(shutil.copytree(small, tmp_path / "data"))  # the reader caches each directory that it has read


def test_what_was_made_before_an_interruption_is_written(
    where: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_then_interrupted(*_: object) -> Iterator[tuple[str, list[Sample]]]:
        yield "abs", []
        raise KeyboardInterrupt

    before = generated(where, "neg")
    monkeypatch.setattr(build, "generate", one_then_interrupted)
    with pytest.raises(KeyboardInterrupt):
        build.build(where, ["abs", "neg"], of_generated, anew=True)
    written = Path(shutil.copytree(where, tmp_path / "written"))
    assert not generated(written, "abs")
    assert generated(written, "neg") == before
    assert before


def test_of_an_overload_with_an_error_the_old_samples_are_kept_and_the_others_are_written(
    where: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_of_neg(overload: Overload, *_: object) -> Iterator[Sample]:
        if overload.name == "neg":
            raise ValueError(overload)
        yield from ()

    before = generated(where, "neg")
    monkeypatch.setattr(build, "AXES", (none_of_neg,))
    monkeypatch.setattr(dtypes, "generate", lambda *_: ())
    with pytest.raises(build.GenerationError, match="generated of neg "):
        build.build(where, ["abs", "neg"], of_generated, anew=True)
    written = Path(shutil.copytree(where, tmp_path / "written"))
    assert generated(written, "neg") == before
    assert before
    assert not generated(written, "abs")


def test_cells_of_samples_for_own_kernels_are_known_apart_before_these_are_read(where: Path, tmp_path: Path) -> None:
    plain, *own = (s for s in generated(where, "neg") if s.axis == "sizes")
    own = [replace(s, own_kernel=True) for s in own]
    build.write(where, {"neg": [plain, *own]}, of_generated)
    written = reader.load(shutil.copytree(where, tmp_path / "written"))
    assert set(written.generated_cells("neg", own_kernel=False)["sizes"]) == set(plain.dtypes)
    assert set(written.generated_cells("neg")["sizes"]) == {d for s in (plain, *own) for d in s.dtypes}
    assert [s.own_kernel for s in written.samples("neg") if s.axis] == [False] + [True] * len(own)


@pytest.mark.parametrize("anew", [False, True])
def test_other_forms_are_compared_with_the_samples_that_an_overload_will_have(
    where: Path, monkeypatch: pytest.MonkeyPatch, anew: bool
) -> None:
    compared: list[Sample] = []

    def at_once(
        wanted: Sequence[str], corpus: Corpus, make: Callable[[str, Trials], list[Sample]], _: int
    ) -> Iterator[tuple[str, list[Sample]]]:
        return ((overload, make(overload, Trials(corpus, timed=False))) for overload in wanted)

    def noting(_: Overload, own: list[Sample], *__: object) -> list[Sample]:
        compared.extend(own)
        return []

    before = generated(where, "neg")
    monkeypatch.setattr(build, "AXES", ())
    monkeypatch.setattr(build, "generate", at_once)
    monkeypatch.setattr(dtypes, "generate", lambda *_: ())
    monkeypatch.setattr(forms, "generate", noting)
    build.build(where, ["neg"], of_generated, anew=anew)
    assert before
    assert [s for s in compared if s.axis] == ([] if anew else before)


def test_samples_of_earlier_rules_stay_beside_new_ones_unless_they_are_made_anew(
    where: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, changed, *_ = before = generated(where, "neg")
    new = [replace(changed, dtypes=changed.dtypes[:1]), replace(kept, name=kept.name + ".new")]
    monkeypatch.setattr(build, "generate", lambda *_: iter([("neg", new)]))
    build.build(where, ["neg"], of_generated)
    written = Path(shutil.copytree(where, tmp_path / "written"))
    assert generated(written, "neg") == sorted([*new, *(s for s in before if s != changed)], key=lambda s: s.name)
    build.build(where, ["neg"], of_generated, anew=True)
    anew = Path(shutil.copytree(where, tmp_path / "anew"))
    assert generated(anew, "neg") == sorted(new, key=lambda s: s.name)
