"""Worktrees: their paths, locks, and removal."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from conformance.bisect.processes import Processes
from conformance.bisect.worktrees import CheckoutError, Worktrees
from tests.bisect.test_points import git, history


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository of three commits, in which the file ``value`` holds each one's index."""
    return history(tmp_path / "repository", ({"value": str(i)} for i in range(3)))


def trees(repository: Path, tmp_path: Path) -> Worktrees:
    return Worktrees(tmp_path / "worktrees", repository, Processes())


def commits(repository: Path) -> list[str]:
    return git(repository, "log", "--reverse", "--format=%H").split()


def registered(repository: Path) -> int:
    """Return the number of worktrees that git knows, without the repository's own."""
    return git(repository, "worktree", "list").count("\n")


def test_two_commits_in_turn_are_checked_out_at_the_same_path(repository: Path, tmp_path: Path) -> None:
    found = trees(repository, tmp_path)
    seen = []
    for commit in commits(repository):
        with found.checked_out(commit) as where:
            (where.parent / "build").mkdir()
            seen.append((where, (where / "value").read_text()))
    assert [value for _, value in seen] == ["0", "1", "2"]
    assert len({where for where, _ in seen}) == 1
    assert not seen[0][0].parent.exists()
    assert registered(repository) == 0


def test_two_searches_never_have_the_same_place(repository: Path, tmp_path: Path) -> None:
    first, second, _ = commits(repository)
    with (
        trees(repository, tmp_path).checked_out(first) as here,
        trees(repository, tmp_path).checked_out(second) as there,
    ):
        assert here != there
        assert [(w / "value").read_text() for w in (here, there)] == ["0", "1"]


def test_a_kept_worktree_stays_until_close(repository: Path, tmp_path: Path) -> None:
    found = trees(repository, tmp_path)
    kept = [found.keep(commit) for commit in commits(repository)]
    assert found.keep(commits(repository)[0]) == kept[0]
    assert [(w / "value").read_text() for w in kept] == ["0", "1", "2"]
    found.close()
    assert not any(w.exists() for w in kept)
    assert registered(repository) == 0


def test_a_worktree_of_a_killed_search_is_replaced(repository: Path, tmp_path: Path) -> None:
    place = tmp_path / "worktrees" / "0" / "source"
    git(repository, "worktree", "add", "--detach", str(place), "main~2")
    git(repository, "worktree", "lock", str(place))
    (place / "value").write_text("edited")
    with trees(repository, tmp_path).checked_out(commits(repository)[-1]) as where:
        assert (where, (where / "value").read_text()) == (place, "2")
    assert registered(repository) == 0


def test_an_interrupted_checkout_leaves_no_lock(repository: Path, tmp_path: Path) -> None:
    with trees(repository, tmp_path).checked_out(commits(repository)[0]) as where:
        git(repository, "worktree", "lock", "--reason", "initializing", str(where))
    assert registered(repository) == 0


def test_a_commit_that_is_not_there_is_said(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckoutError, match=r"git worktree add failed:\n.*invalid reference"):
        trees(repository, tmp_path).keep("f" * 40)
    assert not (tmp_path / "worktrees" / "0").exists()


def test_threads_that_keep_the_same_commit_share_its_worktree(repository: Path, tmp_path: Path) -> None:
    found = trees(repository, tmp_path)
    commit = commits(repository)[0]
    kept: list[Path] = []
    threads = [threading.Thread(target=lambda: kept.append(found.keep(commit))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(kept)) == 1
    assert len(kept) == 4
    found.close()
