"""The points of a search: torch versions of a matrix, commits of a repository, or both; and their names."""

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
_MINOR = re.compile(r"\d+\.\d+")  # a version's name in a matrix
SHORT = 10  # digits of a commit


class PointError(ValueError):
    """An unknown version, commit or date. The message is one line."""


@dataclass(frozen=True, slots=True)
class Point:
    """One version in the history that is searched."""

    name: str  # "2.8", a commit's first digits, or both joined by "+"
    title: str  # the requirement, or the commit's subject
    date: str = ""  # YYYY-MM-DD, if known
    torch: str = ""  # a requirement; "": the torch of this process
    index: str = ""  # the only package index that has it, or ""
    commit: str = ""  # the full hash; "": the working tree


def of_torches(torches: Sequence[Torch]) -> list[Point]:
    """Return the points of a matrix' torch versions, the oldest first."""
    return [Point(t.version, t.requirement, torch=t.requirement, index=t.index) for t in torches]


def of_commits(repository: Path, good: str, bad: str, project: str = "") -> list[Point]:
    """Return the commits from ``good`` to ``bad``, both included, the oldest first; only those that change ``project``.

    Without ``good``, they begin with the first commit. Raises PointError for an unknown commit, and if ``good`` is not
    an ancestor of ``bad``.
    """
    last = commit(repository, bad)
    first = commit(repository, good) if good else ""
    if first and _git(repository, "merge-base", "--is-ancestor", first, last) is None:
        raise PointError(f"{good} is not an ancestor of {bad}: no commit between them can be the first bad one")
    between = _logged(repository, f"{first}..{last}" if first else last, *(["--", project] if project else []))
    if not between or between[-1].commit != last:
        between += _logged(repository, "-1", last)  # the end, even if it does not change the project
    return [*(_logged(repository, "-1", first) if first else []), *between]


def _logged(repository: Path, *which: str) -> list[Point]:
    """Return commits as points, the oldest first."""
    said = _git(repository, "log", "--first-parent", "--reverse", "--format=%H%x00%cs%x00%s", *which) or ""
    found = [line.split("\0", 2) for line in said.splitlines()]
    return [Point(sha[:SHORT], subject, date, commit=sha) for sha, date, subject in found]


def commit(repository: Path, name: str) -> str:
    """Return the full hash of a revision, or of the newest commit on a date. Raises PointError."""
    if _DATE.fullmatch(name):
        found = _git(repository, "rev-list", "-1", "--first-parent", f"--before={name}T23:59:59", "HEAD")
    else:
        found = _git(repository, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if not found and _git(repository, "rev-parse", "--git-dir") is None:
        raise PointError(f"{repository}: not a git repository; expected --repository DIRECTORY")
    if not found:
        raise PointError(f"{name!r} is neither a commit of {repository}, nor a date with an earlier commit")
    return found


def crossed(torches: Sequence[Point], commits: Sequence[Point], torch_first: bool) -> list[Point]:
    """Return a path through both histories: first along one, with the oldest point of the other, then along the other.

    The second part has the newest point of the first history. The first bad point shows the culprit in one of the two.
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
    """Return the index of a point by its name, the start of its commit, or a date. Raises PointError."""
    for i, point in enumerate(points):
        known = (point.name, point.title, point.torch, point.torch.removeprefix("torch=="))
        if name in known or (point.commit and point.commit.startswith(name)):
            return i
    if _DATE.fullmatch(name):
        return index_of(points, torch_of(name))
    raise PointError(unknown("version", name, [p.name for p in points]))


def torch_of(date: str) -> str:
    """Return the newest torch version on a date, e.g. ``2.8``, found by uv. Raises PointError."""
    day_after = (dt.date.fromisoformat(date) + dt.timedelta(days=1)).isoformat()
    options = ["-q", "--no-deps", "--no-header", "--no-annotate", "--exclude-newer", day_after]
    command = ["uv", "pip", "compile", *options, "-"]
    ended = subprocess.run(command, input="torch", capture_output=True, text=True, check=False)
    found = _MINOR.search(ended.stdout)
    if ended.returncode or not found:
        raise PointError(f"no torch version found on {date}: {ended.stderr.strip().rpartition(chr(10))[2]}")
    return found[0]


def _git(repository: Path, *arguments: str) -> str | None:
    """Return git's output, None if it fails."""
    command = ["git", "-C", str(repository), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.stdout.strip() if ended.returncode == 0 else None
