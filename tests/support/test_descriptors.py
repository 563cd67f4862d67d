"""Waiting for file descriptors."""

from __future__ import annotations

import os

from conformance.support.descriptors import ready


def test_a_pipe_is_ready_when_there_is_something_to_read_and_at_its_end() -> None:
    (quiet, kept), (told, tells), (ended, ends) = os.pipe(), os.pipe(), os.pipe()
    assert ready([quiet, told, ended], 0) == []
    os.write(tells, b"x")
    os.close(ends)
    assert ready([quiet, told, ended], 60) == [told, ended]
    assert ready([told], None) == [told]
    for descriptor in (quiet, kept, told, tells, ended):
        os.close(descriptor)
