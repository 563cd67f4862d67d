"""What can be probed: torch versions from a matrix, commits of a repository, or both; and what a user calls them."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.lanes.matrix import Torch
from conformance.support.suggestions import unknown

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MINOR = re.compile(r"\d+\.\d+")  # how a matrix names a version
SHORT = 10  # digits of a commit


class PointError(ValueError):
    """A version, commit or date that names no point; the message is one line."""


@dataclass(frozen=True, slots=True)
class Point:
    """One place in the history that is searched."""

    name: str  # "2.8", a commit's first digits, or both joined by "+"
    title: str  # what is installed, or the commit's subject
    date: str = ""  # YYYY-MM-DD, where it is known
    torch: str = ""  # a requirement; "": the torch of this process
    index: str = ""  # the only index that has it, or ""
    commit: str = ""  # in full; "": the working tree


def of_torches(torches: Sequence[Torch]) -> list[Point]:
    """In the matrix' order, the oldest first."""
    return [Point(t.version, t.requirement, torch=t.requirement, index=t.index) for t in torches]


def of_commits(repository: Path, good: str, bad: str, project: str = "") -> list[Point]:
    """The commits from ``good`` to ``bad``, the oldest first, both included; those alone that change ``project``.

    Without ``good`` they begin with the history. Raises PointError for what names no commit, and for a good one that is
    not an ancestor of the bad one.
    """
    last = commit(repository, bad)
    first = commit(repository, good) if good else ""
    if first and _git(repository, "merge-base", "--is-ancestor", first, last) is None:
        raise PointError(f"{good} is not an ancestor of {bad}: no commit between them can be the first bad one")
    between = _logged(repository, f"{first}..{last}" if first else last, *(["--", project] if project else []))
    if not between or between[-1].commit != last:
        between += _logged(repository, "-1", last)  # the end as given, even where it leaves the project as it is
    return [*(_logged(repository, "-1", first) if first else []), *between]


def _logged(repository: Path, *which: str) -> list[Point]:
    """Commits as points, the oldest first."""
    said = _git(repository, "log", "--first-parent", "--reverse", "--format=%H%x00%cs%x00%s", *which) or ""
    found = [line.split("\0", 2) for line in said.splitlines()]
    return [Point(sha[:SHORT], subject, date, commit=sha) for sha, date, subject in found]


def commit(repository: Path, name: str) -> str:
    """A commit in full, from what git calls it, or from the date by whose end it was the newest. Raises PointError."""
    if _DATE.fullmatch(name):
        found = _git(repository, "rev-list", "-1", "--first-parent", f"--before={name}T23:59:59", "HEAD")
    else:
        found = _git(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if not found:
        raise PointError(f"{name!r} is no commit of {repository}, nor a date by which there was one")
    return found


def crossed(torches: Sequence[Point], commits: Sequence[Point], torch_first: bool) -> list[Point]:
    """One path through both histories: all of one with the other's oldest, then all of the other with the one's newest.

    Its first bad point tells which of the two it takes, and at which step.
    """
    if torch_first:
        steps = [(t, commits[0]) for t in torches] + [(torches[-1], c) for c in commits[1:]]
    else:
        steps = [(torches[0], c) for c in commits] + [(t, commits[-1]) for t in torches[1:]]
    return [
        replace(t, name=f"{t.name}+{c.name}", title=f"{t.title} with {c.name} {c.title}", commit=c.commit)
        for t, c in steps
    ]


def index_of(points: Sequence[Point], name: str) -> int:
    """The point a user means: a name, the start of a commit, or a date. Raises PointError that lists near names."""
    for i, point in enumerate(points):
        known = (point.name, point.title, point.torch, point.torch.removeprefix("torch=="))
        if name in known or (point.commit and point.commit.startswith(name)):
            return i
    if _DATE.fullmatch(name):
        return index_of(points, torch_of(name))
    raise PointError(unknown("version", name, [p.name for p in points]))


def torch_of(date: str) -> str:
    """The newest torch that was there by the end of a date, e.g. ``2.8``, as uv says. Raises PointError."""
    day_after = (dt.date.fromisoformat(date) + dt.timedelta(days=1)).isoformat()
    command = [
        "uv",
        "pip",
        "compile",
        "-q",
        "--no-deps",
        "--no-header",
        "--no-annotate",
        "--exclude-newer",
        day_after,
        "-",
    ]
    ended = subprocess.run(command, input="torch", capture_output=True, text=True, check=False)
    found = _MINOR.search(ended.stdout)
    if ended.returncode or not found:
        raise PointError(f"no torch is known to be as old as {date}: {ended.stderr.strip().splitlines()[-1:]}")
    return found[0]


def _git(repository: Path, *arguments: str) -> str | None:
    """What git says, None where it fails."""
    command = ["git", "-C", str(repository), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.stdout.strip() if ended.returncode == 0 else None
