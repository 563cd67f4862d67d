"""The points of a search, from temporary repositories and invented matrices."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from conformance.bisect import points
from conformance.bisect.points import Point, PointError

TORCHES = [Point(v, f"torch=={v}.0", torch=f"torch=={v}.0") for v in ("2.8", "2.9", "2.10")]


def git(repository: Path, *arguments: str, date: str = "2026-01-01") -> str:
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    dates = {"GIT_AUTHOR_DATE": f"{date}T12:00:00", "GIT_COMMITTER_DATE": f"{date}T12:00:00"}
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, env={**names, **dates, "PATH": "/usr/bin:/bin"}, check=True, capture_output=True, text=True).stdout.strip()  # fmt: skip  # noqa: E501


def history(where: Path, commits: Iterable[Mapping[str, str]]) -> Path:
    """Make a repository with one commit for each mapping of file names to texts. Return its path."""
    where.mkdir()
    git(where, "init", "-q", "-b", "main")
    for i, files in enumerate(commits):
        for name, text in files.items():
            (where / name).write_text(text)
        git(where, "add", "-A")
        git(where, "commit", "-qm", f"change {i}")
    return where


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository of six commits, of which every second one changes ``backend/``."""
    git(tmp_path, "init", "-q", "-b", "main")
    for i in range(6):
        file = tmp_path / ("backend" if i % 2 == 0 else "docs") / "file"
        file.parent.mkdir(exist_ok=True)
        file.write_text(str(i))
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", f"change {i}", date=f"2026-01-0{i + 1}")
    return tmp_path


def test_commits_are_listed_from_the_oldest_on_with_both_ends(repository: Path) -> None:
    found = points.of_commits(repository, "main~4", "main")
    assert [p.title for p in found] == [f"change {i}" for i in range(1, 6)]
    assert found[0].date == "2026-01-02"
    assert found[0].commit.startswith(found[0].name)


def test_commits_that_do_not_change_the_project_are_no_points_except_ends(repository: Path) -> None:
    found = points.of_commits(repository, "main~4", "main", "backend")
    assert [p.title for p in found] == ["change 1", "change 2", "change 4", "change 5"]


def test_an_end_can_be_a_date(repository: Path) -> None:
    assert points.of_commits(repository, "2026-01-03", "main")[0].title == "change 2"


def test_ends_in_the_wrong_order_are_refused(repository: Path) -> None:
    with pytest.raises(PointError, match="not an ancestor"):
        points.of_commits(repository, "main", "main~2")


def test_an_unknown_commit_is_refused(repository: Path) -> None:
    with pytest.raises(PointError, match="'nowhere' is neither a commit"):
        points.of_commits(repository, "nowhere", "main")


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_a_directory_without_a_repository_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(PointError, match=r"not a git repository; expected --repository DIRECTORY"):
        points.of_commits(tmp_path / name, "", "HEAD")


@pytest.mark.parametrize("name", ["2.9", "2.9.0", "torch==2.9.0"])
def test_a_version_is_found_as_people_write_it(name: str) -> None:
    assert points.index_of(TORCHES, name) == 1


def test_an_unknown_version_is_answered_with_near_ones() -> None:
    with pytest.raises(PointError, match=r"2\.9"):
        points.index_of(TORCHES, "2.99x")


def test_a_date_names_the_newest_version_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "torch_of", {"2025-10-20": "2.9"}.__getitem__)
    assert points.index_of(TORCHES, "2025-10-20") == 1


def test_two_histories_are_crossed_by_a_path_that_changes_one_thing_a_step() -> None:
    commits = [Point(c, f"change {c}", commit=c * 40) for c in "abc"]
    for torch_first, path in (
        (True, ["2.8+a", "2.9+a", "2.10+a", "2.10+b", "2.10+c"]),
        (False, ["2.8+a", "2.8+b", "2.8+c", "2.9+c", "2.10+c"]),
    ):
        line = points.crossed(TORCHES, commits, torch_first)
        assert [p.name for p in line] == path
        steps = pairwise(line)
        assert all((a.torch == b.torch) != (a.commit == b.commit) for a, b in steps)
