"""Single lines of a longer text: of an error's message, or of a program's output."""

from __future__ import annotations


def first_line(text: str) -> str:
    """Return the first line that is not empty, "" if there is none. In an error's message, it is the summary."""
    return text.strip().partition("\n")[0]


def last_line(text: str) -> str:
    """Return the last line that is not empty, "" if there is none. In a traceback, it is the raised error."""
    return text.strip().rpartition("\n")[2]


def error_line(error: BaseException | None) -> str:
    """Return an error's type and the first line of its message, e.g. ``ValueError: not a number``; "" for None."""
    if error is None:
        return ""
    line = first_line(str(error))
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
