"""Parsing of option values, with errors that list similar names."""

from __future__ import annotations

import ast
import math
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.support.suggestions import listed, near, unknown

_WORD = re.compile(r"\w+")
_KEYWORD = re.compile(r"[\w:+\-.\[\]\\/]+")  # a name in -k, as pytest parses it
_CONNECTIVES = frozenset({"and", "or", "not"})
_OF_AN_EXPRESSION = (ast.Name, ast.Load, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not)

SEEDS = range(-(2**63), 2**63)


class OptionError(ValueError):
    """An invalid option value. The message is one line: the option, the value, and what is expected."""


def names(
    option: str, what: str, given: str | None, known: Collection[str], listed_by: str = ""
) -> frozenset[str] | None:
    """Return the names of a comma-separated option, None if it is not given. Raises OptionError for unknown names.

    ``listed_by``: the command that lists the known names.
    """
    if given is None:
        return None
    found = frozenset(n.strip() for n in given.split(",") if n.strip())
    if not found:
        raise OptionError(f"{option}: expected at least one {what}; {listed(known)}")
    for name in sorted(found):
        one_of(option, what, name, known, listed_by)
    return found


def one_of(option: str, what: str, given: str, known: Collection[str], listed_by: str = "") -> str:
    """Return ``given`` if it is a known name. Raises OptionError otherwise."""
    if given not in known:
        raise OptionError(f"{option}: {unknown(what, given, known, listed_by)}")
    return given


def seconds(option: str, given: float) -> float:
    """Return ``given`` if it is a positive, finite number of seconds. Raises OptionError otherwise."""
    if not 0 < given < math.inf:
        raise OptionError(f"{option}: expected a positive number of seconds, got {given:g}")
    return given


def seed(option: str, given: int) -> int:
    """Return ``given`` if torch accepts it and the numbers after it as seeds. Raises OptionError otherwise."""
    if given not in SEEDS:
        raise OptionError(f"{option}: expected {SEEDS[0]} to {SEEDS[-1]}, got {given}")
    return given


def budget(option: str, given: float) -> float:
    """Return ``given`` if it is 0 or a positive number of seconds. Raises OptionError otherwise."""
    if not given >= 0:
        raise OptionError(f"{option}: expected 0 or more seconds, got {given:g}")
    return given


def file_name(option: str, given: str) -> str:
    """Return ``given`` if it can be the name of a directory. Raises OptionError otherwise."""
    if given.startswith(".") or "/" in given:
        raise OptionError(f"{option}: expected the name of a directory, without / and no dot in front, got {given!r}")
    return given


@dataclass(frozen=True, slots=True)
class Keywords:
    """A parsed -k. A word is true for a cell if one of the cell's names contains it, in upper or lower case."""

    expression: ast.expr
    words: Mapping[str, str]  # by their names in the expression

    def selects(self, names: Iterable[str]) -> bool:
        """Return whether the expression is true for a cell with these names."""
        return self.may_select(names, lambda _: False)

    def may_select(self, names: Iterable[str], maybe: Callable[[str], bool]) -> bool:
        """Return whether the expression may be true for a cell with these names and further names.

        ``maybe`` returns whether the further names may contain a word, which is given in lower case.
        """
        folded = [name.lower() for name in names]
        sure = {key for key, word in self.words.items() if any(word in name for name in folded)}
        return _can_be(True, self.expression, sure, {key for key, word in self.words.items() if maybe(word)})


def keyword(given: str) -> Keywords | None:
    """Return -k as a parsed expression, None if it is empty. Raises OptionError for a syntax error."""
    words: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        if found[0] in _CONNECTIVES:
            return found[0]
        key = f"x{len(words)}"
        words[key] = found[0].lower()
        return key

    text = _KEYWORD.sub(named, given).strip()
    if not text:
        return None
    try:
        expression = ast.parse(text, "-k", "eval").body
    except (SyntaxError, ValueError):
        expression = ast.Constant(None)
    if not all(isinstance(part, _OF_AN_EXPRESSION) for part in ast.walk(expression)):
        raise OptionError(f"-k {given!r}: expected names joined by and, or, not and parentheses")
    return Keywords(expression, words)


def markers(given: str, known: Collection[str]) -> ast.expr:
    """Return -m as a parsed expression of known marker names, for :func:`selects`.

    Raises OptionError for a syntax error and for unknown names.
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
    """Return whether an expression of :func:`markers` is true for a cell with the markers ``names``."""
    return _can_be(True, expression, names, ())


def _can_be(wanted: bool, expression: ast.expr, names: Collection[str], maybe: Collection[str]) -> bool:
    """Return whether an expression can have the value ``wanted``, if ``names`` are true and ``maybe`` may be true."""
    if isinstance(expression, ast.Name):
        return wanted == (expression.id in names) or (expression.id in maybe and expression.id not in names)
    if isinstance(expression, ast.UnaryOp):
        return _can_be(not wanted, expression.operand, names, maybe)
    assert isinstance(expression, ast.BoolOp)
    every = all if isinstance(expression.op, ast.And) == wanted else any
    return every(_can_be(wanted, value, names, maybe) for value in expression.values)


def nothing_left(arguments: Sequence[str], keyword: str, known: Iterable[str]) -> str:
    """Return the error if the options select no cell. ``known``: the words that make up the names of cells."""
    text = f"no cell is selected by: {shlex.join(arguments)}"
    words = list(known)
    for word in _WORD.findall(keyword):
        if word in _CONNECTIVES or any(word.casefold() in name.casefold() for name in words):
            continue
        found = near(word, words)
        text += f"; -k: no name contains {word!r}" + (f", near: {', '.join(found)}" if found else "")
    return text
