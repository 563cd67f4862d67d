"""Opening the corpus, and errors for damaged files."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from conformance.corpus.reader import DATA, GENERATED, INDEX, LATER, VALUES, CorpusError, load


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for name in (INDEX, VALUES, GENERATED, LATER):
        shutil.copy(DATA / name, tmp_path / name)
    return tmp_path


def test_the_corpus_has_thousands_of_recorded_samples() -> None:
    corpus = load(generated=False)
    assert sum(len(corpus.samples(o)) for o in corpus.overloads) > 5000


def test_the_hash_is_the_same_wherever_it_lies(copied: Path) -> None:
    assert load(copied).hash == load().hash


def test_generated_samples_of_another_index_are_refused(copied: Path) -> None:
    text = gzip.decompress((copied / GENERATED).read_bytes())
    other = text.replace(load(generated=False).hash.encode(), b"0" * 64, 1)
    (copied / GENERATED).write_bytes(gzip.compress(other))
    with pytest.raises(CorpusError, match="not of the same build"):
        load(copied)


def test_generated_samples_are_left_out_on_request(copied: Path) -> None:
    samples = load(copied, generated=False).samples("masked_fill_.Scalar")
    assert samples
    assert not any(s.axis for s in samples)
    assert load(copied).samples("masked_fill_.Scalar")[: len(samples)] == samples


def test_samples_have_unique_names_and_know_their_overload() -> None:
    samples = load().samples("masked_fill_.Scalar")
    assert len({s.name for s in samples}) == len(samples) > 5
    assert {s.overload for s in samples} == {"masked_fill_.Scalar"}
    assert [t.name for t in samples[0].tensors] == ["self", "mask"]


def test_an_overload_without_samples_has_none() -> None:
    assert load().samples("no_such_overload") == ()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"index\.jsonl\.gz: No such file or directory; restore it, or run"):
        load(tmp_path)


def test_a_foreign_file_is_named(copied: Path) -> None:
    (copied / INDEX).write_bytes(b"not gzip")
    with pytest.raises(CorpusError, match="not an index of samples"):
        load(copied)


def test_a_truncated_index_is_named(copied: Path) -> None:
    lines = gzip.decompress((copied / INDEX).read_bytes()).splitlines(keepends=True)
    (copied / INDEX).write_bytes(gzip.compress(b"".join(lines[:-1])))
    with pytest.raises(CorpusError, match=f"lists {len(lines) - 1} overloads, {len(lines) - 2} lines follow"):
        load(copied)


def test_a_newer_format_asks_for_an_update(copied: Path) -> None:
    (copied / INDEX).write_bytes(gzip.compress(json.dumps({"format": 99}).encode() + b"\n"))
    with pytest.raises(CorpusError, match="format 99, this version reads 1; update op-conformance"):
        load(copied)


def test_values_of_another_build_are_refused(copied: Path) -> None:
    data = bytearray((copied / VALUES).read_bytes())
    data[-1] ^= 1
    (copied / VALUES).write_bytes(data)
    corpus = load(copied)
    sample = corpus.samples("masked_fill_.Scalar")[0]
    with pytest.raises(CorpusError, match="index and values are not of the same build, or damaged"):
        corpus.value(sample.tensors[0], sample.dtypes[0])
