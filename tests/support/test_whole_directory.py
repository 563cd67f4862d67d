"""Directories that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conformance.support.whole_directory import scratch_beside


def test_a_scratch_directory_that_is_renamed_stays_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "new" / "run"
    with scratch_beside(target) as scratch:
        (scratch / "file").write_text("whole")
        assert not target.exists()
        scratch.rename(target)
    assert (target / "file").read_text() == "whole"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("stopped_by", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_of_a_directory_whose_writer_is_stopped(
    tmp_path: Path, stopped_by: type[BaseException]
) -> None:
    def write() -> None:
        with scratch_beside(tmp_path / "run") as scratch:
            (scratch / "file").write_text("half")
            raise stopped_by

    with pytest.raises(stopped_by):
        write()
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_of_the_same_number_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / f".run.{os.getpid()}"
    left.mkdir()
    (left / "half").touch()
    with scratch_beside(tmp_path / "run") as scratch:
        assert not list(scratch.iterdir())
