"""Files that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.support.whole_file import replaced, write_text


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    for text in ("old", "new ä"):
        write_text(file, text)
        assert file.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("stopped_by", [ValueError, KeyboardInterrupt])
def test_a_file_is_as_before_if_its_writer_is_stopped(tmp_path: Path, stopped_by: type[BaseException]) -> None:
    file = tmp_path / "state.json"
    write_text(file, "old")

    def write() -> None:
        with replaced(file) as scratch:
            scratch.write_text("ne", encoding="utf-8")
            raise stopped_by

    with pytest.raises(stopped_by):
        write()
    assert file.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_one(tmp_path: Path) -> None:
    file, link = tmp_path / "state.json", tmp_path / "link.json"
    link.symlink_to(file)
    write_text(link, "new")
    assert link.is_symlink()
    assert file.read_text(encoding="utf-8") == "new"


def test_a_file_that_cannot_be_written_raises(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file or directory"):
        write_text(tmp_path / "missing" / "state.json", "new")
