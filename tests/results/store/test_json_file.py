"""Files that hold one JSON object, and errors for files that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results.store import StoreError
from conformance.results.store.json_file import read_object, write_object


def test_an_object_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_object(tmp_path / "a.json", {"cells": 2, "lanes": ["ü"]})
    assert read_object(tmp_path / "a.json") == {"cells": 2, "lanes": ["ü"]}


@pytest.mark.parametrize(
    ("content", "said"), [(b"{", "not JSON"), (b"\xff", "not JSON"), (b"[]", "expected a JSON object, got list")]
)
def test_anything_else_is_an_error_with_the_name_of_the_file(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(StoreError, match=rf"a\.json: {said}"):
        read_object(tmp_path / "a.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"a\.json: No such file"):
        read_object(tmp_path / "a.json")
