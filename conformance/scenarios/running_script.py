"""The script that a program runs now. Followers get its lines, which are known even if the process dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

#: The file name under which a script is compiled. Tracebacks have it, with the number of a line of the script.
FILE = "<script>"

Follower = Callable[[Sequence[str]], None]
_followers: list[Follower] = []


@contextmanager
def followed_by(follower: Follower) -> Iterator[None]:
    """Call the follower with the lines of each script of this process before it runs, and with no lines afterwards."""
    _followers.append(follower)
    try:
        yield
    finally:
        _followers.remove(follower)


@contextmanager
def running(lines: Sequence[str]) -> Iterator[None]:
    """Call the followers with the lines of a script before this block, and with no lines after it."""
    for follower in _followers:
        follower(lines)
    try:
        yield
    finally:
        for follower in _followers:
            follower(())
