"""Children that answer questions."""

from __future__ import annotations

import os
from typing import Any

import pytest

from conformance.corpus.vary.answering import Answering


def itself_in(_: Any) -> int:
    return os.getpid()


def test_a_child_ends_with_its_object_while_a_later_child_lives() -> None:
    first, second = Answering(itself_in), Answering(itself_in)
    pid = first.ask(None)
    del first
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert second.ask(None) != pid


def test_a_child_that_drops_its_copy_of_an_earlier_one_leaves_it_alive() -> None:
    earlier = [Answering(itself_in)]
    later = Answering(lambda _: earlier.clear())
    later.ask(None)
    assert earlier[0].ask(None) != os.getpid()


def test_a_dead_child_answers_no_question() -> None:
    deadly = Answering(os._exit)
    with pytest.raises(EOFError):
        deadly.ask(1)
    with pytest.raises(EOFError):
        deadly.ask(1)
