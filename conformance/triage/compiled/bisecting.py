"""The first backend of ``torch.compile`` that fails, and its faulty part, found by torch's CompilerBisector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conformance.support.lines import first_line
from conformance.torch_versions.compiler_tools import Bisection
from conformance.triage.compiled.model import OWN, PLAIN, Blame

#: Returns whether a backend does not fail. The path is the directory with the bisection's state, or None.
Right = Callable[[str, Path | None], bool]


class _Found(Exception):
    """The end of a bisection at a backend whose parts cannot be switched off."""


class _Answers:
    """The answers to the questions of a bisection. Each question is tried once."""

    def __init__(self, bisection: Bisection, right: Right, tell: Callable[[str], None], has_parts: bool) -> None:
        self._bisection, self._right, self._tell, self._has_parts = bisection, right, tell, has_parts
        self._known: dict[tuple[str, ...], bool] = {}

    @property
    def tried(self) -> int:
        return len(self._known)

    @property
    def before(self) -> str:
        """The last backend that is right, without those that only add checks (``crossref``)."""
        right = [name for name in self._bisection.systems if self._known.get((name,)) and "crossref" not in name]
        return right[-1] if right else PLAIN

    def __call__(self) -> bool:
        question = self._bisection.question
        if question not in self._known:
            backend, *part = question
            own = backend == "inductor"
            if own and part and not self._has_parts:
                raise _Found
            # With a bisection's state, torch.compile uses the bisection's backend in place of the program's.
            state = self._bisection.directory if self._has_parts else None
            self._known[question] = self._right(OWN if own else backend, state)
            answer = "right" if self._known[question] else "wrong"
            self._tell(f"  {self._name(backend)}{_without(part)}: {answer}")
        return self._known[question]

    def _name(self, backend: str) -> str:
        return backend if backend != "inductor" or self._has_parts else "the program's backend"


def _without(part: list[str]) -> str:
    if not part:
        return ""
    subsystem, state, *span = part
    if state == "bisect":
        low, high = map(int, span)
        return f" with {(low + high) // 2 + 1} of {subsystem}"
    return f" without {subsystem}" if state == "test_disable" else f", counting {subsystem}"


def bisect(right: Right, tell: Callable[[str], None], own: str, of: str) -> tuple[Blame | None, str]:
    """Return the result of torch's bisection, or None and the reason why there is no result.

    ``own``: the name of the program's backend. Only Inductor has parts that can be switched off. ``of``: the name of
    the graph or program that is compiled again, for texts.
    """
    bisection = Bisection()
    answers = _Answers(bisection, right, tell, own == "inductor")
    try:
        found = bisection.run(answers)
    except _Found:
        return Blame(OWN, answers.before, of=of, runs=answers.tried), ""
    except RuntimeError as e:
        return None, f"torch's CompilerBisector came to no result: {first_line(str(e))}"
    if found is None:
        return None, f"compiled again, {of} is right with every backend: the failure depends on more than that"
    backend, subsystem, number, applied = found
    return Blame(backend, answers.before, subsystem, number, applied, of, answers.tried), ""
