"""A forked child that answers questions until one kills it."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from conformance.support.forking import fork


class Answering:
    """A process forked from this one, in which ``answer`` is called. Questions and answers are JSON.

    The process ends when this object is deleted, or when its parent ends.
    """

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self._parent = os.getpid()
        theirs, mine = os.pipe(), os.pipe()
        self._pid = fork()
        if self._pid == 0:
            os.close(theirs[1])
            os.close(mine[0])
            _live(answer, theirs[0], mine[1])
        os.close(theirs[0])
        os.close(mine[1])
        self._questions = os.fdopen(theirs[1], "w", encoding="utf-8")
        self._answers = os.fdopen(mine[0], encoding="utf-8")

    def ask(self, question: Any) -> Any:
        """Return the answer. Raises EOFError if the child is dead, or dies of the question."""
        try:
            print(json.dumps(question), file=self._questions, flush=True)
        except BrokenPipeError as e:
            raise EOFError from e
        if line := self._answers.readline():
            return json.loads(line)
        raise EOFError

    def __del__(self) -> None:
        if os.getpid() != self._parent:  # this is the copy in a later child
            return
        for pipe in (self._questions, self._answers):
            with contextlib.suppress(BrokenPipeError):  # the child is dead
                pipe.close()
        os.kill(self._pid, signal.SIGKILL)  # closing may not end it: a later child may hold the pipe open
        os.waitpid(self._pid, 0)


def _live(answer: Callable[[Any], Any], questions: int, answers: int) -> NoReturn:
    """Answer questions until the pipe is closed, then end the process. Print an error of ``answer``, and end."""
    code = 1
    try:
        faulthandler.disable()  # the parent sees deaths
        with os.fdopen(questions, encoding="utf-8") as asked, os.fdopen(answers, "w", encoding="utf-8") as answered:
            for line in iter(asked.readline, ""):
                print(json.dumps(answer(json.loads(line))), file=answered, flush=True)
        code = 0
    except Exception:  # noqa: BLE001 - nothing above this frame may run twice
        traceback.print_exc()
    finally:
        os._exit(code)
