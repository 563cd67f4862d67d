"""The files of recorded models."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from conformance.layouts import Placement
from conformance.models import file
from tests.models.calls import call, recording, slot

STRIDED = Placement("recorded", (2, 3), (1, 2), 1, 9)


def test_a_model_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = recording(call("mm", slot(), slot(1), count=3, made=8), call("neg", placed=(STRIDED,)))
    assert file.read(file.write(tmp_path, made, ("inference", "training"))) == made


def test_the_same_calls_give_the_same_bytes(tmp_path: Path) -> None:
    made = recording(call("neg"))
    first = file.write(tmp_path, made, ("inference",)).read_bytes()
    assert file.write(tmp_path, made, ("inference",)).read_bytes() == first


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"no gzip", "cannot be read"),
        (gzip.compress(b"no json"), "cannot be read"),
        (gzip.compress(b'{"format": 0}'), "expected a recorded model of format 1"),
        (gzip.compress(json.dumps({"format": 1, "programs": [], "calls": [["neg"]]}).encode()), "not a recorded model"),
    ],
    ids=["no gzip", "no json", "another format", "a row that is cut"],
)
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "demo.json.gz"
    path.write_bytes(content)
    with pytest.raises(file.ModelsError, match=told) as raised:
        file.read(path)
    assert str(path) in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(file.ModelsError, match="cannot be read"):
        file.read(tmp_path / "demo.json.gz")
