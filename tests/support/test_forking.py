"""Forks of a process with several threads."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable

import pytest

from conformance.support import forking
from conformance.support.forking import asked_in_fork, fork


def test_a_fork_beside_a_thread_warns_of_nothing() -> None:
    done = threading.Event()
    beside = threading.Thread(target=done.wait)
    beside.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pid = fork()
            if not pid:
                os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        done.set()
        beside.join()


def test_a_question_in_a_fork_changes_nothing_here() -> None:
    asked: list[int] = []
    assert asked_in_fork(lambda: asked.append(1) or len(asked)) == 1  # type: ignore[func-returns-value]
    assert asked == []


@pytest.mark.parametrize(
    "end", [lambda: os._exit(3), lambda: 1 // 0, lambda: time.sleep(60)], ids=["dies", "raises", "hangs"]
)
def test_a_fork_that_does_not_answer_leaves_the_question_to_this_process(
    end: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "ANSWER_SECONDS", 0.2)
    here = os.getpid()
    assert asked_in_fork(lambda: 3 if os.getpid() == here else int(bool(end()))) == 3
