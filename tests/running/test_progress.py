"""A child's notes of its progress, as its parent reads them."""

from __future__ import annotations

import os

from conformance.running.progress import Progress


def test_a_script_is_known_until_the_next_note_also_if_its_process_ends() -> None:
    progress = Progress()
    if not (child := os.fork()):
        progress.note(3, "device")
        progress.note_script(["x = 1", 'y = "ü"' * 5000])
        os._exit(1)
    os.waitpid(child, 0)
    assert progress.read() == (3, "device")
    assert progress.script() == ("x = 1", 'y = "ü"' * 5000)
    progress.note(4, "cpu")
    assert progress.script() == ()


def test_a_script_that_has_ended_is_not_known_any_more() -> None:
    progress = Progress()
    progress.note(0, "device")
    progress.note_script(["x = 1"])
    progress.note_script(())
    assert (progress.read(), progress.script()) == ((0, "device"), ())
