"""A page of memory that a process shares with its children."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from conformance.support import shared_page
from conformance.support.shared_page import SharedPage


def test_a_record_survives_the_death_of_the_child_that_wrote_it() -> None:
    page = SharedPage("<iB")
    assert page.read() == (0, 0)
    pid = os.fork()
    if pid == 0:
        page.write(7, 2)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert page.read() == (7, 2)


def test_a_page_in_a_file_is_read_by_another_process_s_mapping(tmp_path: Path) -> None:
    page = shared_page.create(tmp_path / "page", "<i8s", -1, b"")
    other = shared_page.at(tmp_path / "page", "<i8s")
    assert other.read() == (-1, bytes(8))
    page.write(3, b"neg")
    assert other.read()[0] == 3


@pytest.mark.parametrize("content", [None, b""])
def test_a_file_without_a_page_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "page").write_bytes(content)
    with pytest.raises((OSError, ValueError)):
        shared_page.at(tmp_path / "page", "<i")
