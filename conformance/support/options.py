"""The options of a run as they are typed: what they name, and what to say where they name nothing."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Collection, Iterable, Sequence

from conformance.support.suggestions import near, unknown

_WORD = re.compile(r"\w+")
_KEYWORD = re.compile(r"[\w:+\-.\[\]\\/]+")  # what pytest takes for a name in -k
_CONNECTIVES = frozenset({"and", "or", "not"})
_OF_AN_EXPRESSION = (ast.Name, ast.Load, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not)


class OptionError(ValueError):
    """An option that cannot be used; the message is one line, names the option and says what it takes."""


def names(option: str, what: str, given: str | None, known: Collection[str]) -> frozenset[str] | None:
    """The names of a comma-separated option, None where it was not given. Raises OptionError that lists near names."""
    if given is None:
        return None
    found = frozenset(n.strip() for n in given.split(",") if n.strip())
    if not found:
        raise OptionError(f"{option}: names no {what}; known: {', '.join(known)}")
    for name in sorted(found):
        one_of(option, what, name, known)
    return found


def one_of(option: str, what: str, given: str, known: Collection[str]) -> str:
    """The name given, which has to be a known one. Raises OptionError that lists near names."""
    if given not in known:
        raise OptionError(f"{option}: {unknown(what, given, known)}")
    return given


def seconds(option: str, given: float) -> float:
    """A span of time. Raises OptionError for one in which nothing can happen."""
    if not given > 0:
        raise OptionError(f"{option}: {given:g} is no time to run in; expected seconds, more than 0")
    return given


def keyword(given: str) -> None:
    """Check the form of -k, which under xdist only the workers would find wrong, in many lines. Raises OptionError."""
    text = _KEYWORD.sub(lambda word: word[0] if word[0] in _CONNECTIVES else "x", given).strip()
    try:
        compile(text or "x", "-k", "eval")
        sound = not re.search(r"[^\w\s()]|x\s*\(|\(\s*\)", text)
    except SyntaxError:
        sound = False
    if not sound:
        raise OptionError(f"-k {given!r}: expected names joined by and, or, not and parentheses")


def markers(given: str, known: Collection[str]) -> ast.expr:
    """Return -m as a parsed expression of known marker names, for :func:`selects`.

    Raises OptionError for another form, and for unknown names, of which it lists the near ones.
    """
    try:
        expression = ast.parse(given.strip(), "-m", "eval").body
    except (SyntaxError, ValueError):
        expression = ast.Constant(None)
    parts = list(ast.walk(expression))
    if not all(isinstance(part, _OF_AN_EXPRESSION) for part in parts):
        raise OptionError(f"-m {given!r}: expected names of markers joined by and, or, not and parentheses")
    for name in sorted(part.id for part in parts if isinstance(part, ast.Name)):
        one_of("-m", "marker", name, known)
    return expression


def selects(expression: ast.expr, names: Collection[str]) -> bool:
    """Whether an expression of :func:`markers` is true of what has the markers ``names``."""
    if isinstance(expression, ast.Name):
        return expression.id in names
    if isinstance(expression, ast.UnaryOp):
        return not selects(expression.operand, names)
    assert isinstance(expression, ast.BoolOp)
    every = all if isinstance(expression.op, ast.And) else any
    return every(selects(value, names) for value in expression.values)


def nothing_left(arguments: Sequence[str], keyword: str, known: Iterable[str]) -> str:
    """What to say when a selection leaves no cell; ``known`` are the words that a cell's name is made of."""
    text = f"no cell is left by: {shlex.join(arguments)}"
    words = list(known)
    for word in _WORD.findall(keyword):
        if word in _CONNECTIVES or any(word.casefold() in name.casefold() for name in words):
            continue
        found = near(word, words)
        text += f"; -k: no name holds {word!r}" + (f", near: {', '.join(found)}" if found else "")
    return text
