"""The script that a program runs now, told to those who follow it: should the process die, its lines are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

#: The name of the file that a script is compiled under. Stacks have it, with the number of a line of the script.
FILE = "<script>"

Follower = Callable[[Sequence[str]], None]
_followers: list[Follower] = []


@contextmanager
def followed_by(follower: Follower) -> Iterator[None]:
    """Call the follower with the lines of each script of this process before it runs, and with none behind it."""
    _followers.append(follower)
    try:
        yield
    finally:
        _followers.remove(follower)


@contextmanager
def running(lines: Sequence[str]) -> Iterator[None]:
    """Tell the followers that a script runs in this block."""
    for follower in _followers:
        follower(lines)
    try:
        yield
    finally:
        for follower in _followers:
            follower(())
