"""The preparation of points, with a fake uv that records its arguments."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from conformance.bisect.environments import NoRoom, Unusable
from conformance.bisect.places import Place, Workshop
from conformance.bisect.points import Point, of_commits
from conformance.bisect.processes import Processes
from tests.bisect.test_points import git

# Makes an environment that contains only torch's list of files; builds a project with the project's own script.
UV = """#!{python}
import pathlib, shutil, subprocess, sys
asked = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(" ".join(asked) + "\\n")
if asked[0] == "venv":
    pathlib.Path(asked[-1]).mkdir(parents=True)
elif "--target" in asked:
    target = pathlib.Path(asked[asked.index("--target") + 1])
    target.mkdir(parents=True)
    project = pathlib.Path(next(a for a in asked if pathlib.Path(a, "build.sh").is_file()))
    sys.exit(subprocess.run(["sh", "build.sh", target], cwd=project).returncode)
elif "torch==9.9.0" in asked:
    sys.exit("error: torch==9.9.0 has no wheel for this platform")
elif asked[-1].startswith("torch"):
    environment = pathlib.Path(asked[asked.index("-p") + 1]).parents[1]
    facts = environment / "lib/python3/site-packages/torch-1.dist-info"
    facts.mkdir(parents=True)
    (facts / "RECORD").write_text(asked[-1])
"""
BUILD = """
grep -q broken source && echo "source:1: error: broken" >&2 && echo "hint: look elsewhere" >&2 && exit 1
grep -v '^//' source > $1/library.so
echo "commit = '$(git log -1 --format=%h --abbrev=12)'" > $1/_build_info.py
pwd > {log}
"""


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def workshop(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Workshop]:
    """Return a function that makes workshops with one cache for ``repository``. In them, ``uv`` is the stand-in."""
    stand_in = tmp_path / "bin" / "uv"
    stand_in.parent.mkdir()
    stand_in.write_text(UV.format(python=sys.executable, log=str(log)))
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(stand_in.parent), prepend=":")
    monkeypatch.setenv("UV_DEFAULT_INDEX", tmp_path.as_uri())  # so that no real index is queried
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, 2**40))

    def make(**given: object) -> Workshop:
        repository = tmp_path / "repository"
        return Workshop(tmp_path / "cache", Processes(), **{"repository": repository, "suite": False, **given})  # type: ignore[arg-type]

    return make


@pytest.fixture
def commits(tmp_path: Path) -> list[Point]:
    """Return a backend's points: code, the same with a comment, other code, broken code, the first code again."""
    where = tmp_path / "repository"
    (where / "backend").mkdir(parents=True)
    git(where, "init", "-q", "-b", "main")
    sources = ("code 1\n", "// why\ncode 1\n", "code 2\n", "broken\n", "code 1\n")
    for i, text in enumerate(sources):
        (where / "backend" / "source").write_text(text)
        (where / "backend" / "build.sh").write_text(BUILD.format(log=tmp_path / "built-in"))
        git(where, "add", "-A")
        git(where, "commit", "-qm", f"change {i}")
    found = of_commits(where, "", "main", "backend")
    return [Point(p.name, p.title, p.date, "torch==2.8.0", commit=p.commit) for p in found]


def torch(version: str) -> Point:
    return Point(version, f"torch=={version}.0", torch=f"torch=={version}.0")


def asked(log: Path, what: str) -> list[str]:
    return [line for line in log.read_text().splitlines() if what in line]


def worktrees(repository: Path) -> int:
    return git(repository, "worktree", "list").count("\n")


def backend(workshop: Callable[..., Workshop], **given: object) -> Workshop:
    return workshop(**{"project": "backend", "suite": True, **given})


# Environments of torch -------------------------------------------------------------------------------------------


def test_an_environment_is_installed_once(workshop: Callable[..., Workshop], log: Path) -> None:
    first = workshop().make(torch("2.8"))
    again = workshop().make(torch("2.8"))
    assert first == again
    assert Path(first.python).parts[-3:] == ("torch-2.8.0", "bin", "python")
    assert first.variables["PATH"].startswith(str(Path(first.python).parent))
    assert len(asked(log, "venv")) == 1
    assert any("torch==2.8.0" in command for command in first.made_by)


def test_the_commands_that_made_a_place_can_be_pasted(workshop: Callable[..., Workshop]) -> None:
    made_by = workshop(extra=("pytest>=8",)).make(torch("2.8")).made_by
    assert made_by[-1].endswith("numpy 'pytest>=8'")


def test_later_packages_are_added_to_an_existing_environment(workshop: Callable[..., Workshop], log: Path) -> None:
    workshop().make(torch("2.8"))
    place = workshop(extra=("hypothesis",)).make(torch("2.8"))
    workshop(extra=("hypothesis",)).make(torch("2.8"))
    assert len(asked(log, "venv")) == len(asked(log, "hypothesis")) == 1
    assert place.made_by[-1].endswith("numpy hypothesis")
    assert any("torch==2.8.0" in command for command in place.made_by)


def test_two_versions_are_two_builds(workshop: Callable[..., Workshop]) -> None:
    made = workshop()
    assert made.make(torch("2.8")).build != made.make(torch("2.9")).build


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("ninja: stopped\nerror: no such header", "error: no such header"),
        ("a.cpp:3: error: no such name\nb.cpp:1: error: another", "a.cpp:3: error: no such name"),
        ("one\ntwo", "two"),
    ],
)
def test_why_a_point_is_unusable_is_one_line(output: str, error: str) -> None:
    found = Unusable("building backend failed:", output)
    assert found.why == f"building backend failed: {error}"
    assert str(found) == f"building backend failed:\n{output}"


def test_an_environment_that_cannot_be_installed_has_the_installer_s_error(
    workshop: Callable[..., Workshop], tmp_path: Path
) -> None:
    with pytest.raises(Unusable, match=r"torch==9\.9\.0 failed:\nerror: .* has no wheel for this platform"):
        workshop().make(torch("9.9"))
    assert not list(tmp_path.rglob("ready.json"))


def test_an_environment_whose_installation_was_cut_off_is_made_anew(
    workshop: Callable[..., Workshop], tmp_path: Path, log: Path
) -> None:
    (tmp_path / "cache/torch/torch-2.8.0/half").mkdir(parents=True)
    workshop().make(torch("2.8"))
    assert not (tmp_path / "cache/torch/torch-2.8.0/half").exists()
    assert len(asked(log, "venv")) == 1


def test_a_full_disk_says_nothing_of_the_version(
    workshop: Callable[..., Workshop], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, 2**20))
    with pytest.raises(NoRoom, match="free on this disk"):
        workshop().make(torch("2.8"))


def test_the_environment_longest_unused_gives_way(workshop: Callable[..., Workshop], tmp_path: Path) -> None:
    made = workshop(keep=2)
    for version in ("2.8", "2.9", "2.8", "2.10"):
        made.make(torch(version))
    assert sorted(d.name for d in (tmp_path / "cache/torch").iterdir()) == ["torch-2.10.0", "torch-2.8.0"]


def test_an_index_that_alone_has_a_version_is_asked_alone(workshop: Callable[..., Workshop], log: Path) -> None:
    workshop().make(Point("nightly", "", torch="torch>=2.16.0.dev0", index="https://example.org/nightly"))
    (command,) = asked(log, "torch>=2.16.0.dev0")
    assert "--index-url https://example.org/nightly --prerelease allow" in command


# Commits of a backend --------------------------------------------------------------------------------------------


def test_a_backend_is_built_in_a_worktree_of_which_nothing_is_left(
    workshop: Callable[..., Workshop], commits: list[Point], tmp_path: Path
) -> None:
    made = backend(workshop)
    place = made.make(commits[0])
    target = Path(place.variables["PYTHONPATH"].split(":")[0])
    assert (target / "library.so").read_text() == "code 1\n"
    assert worktrees(tmp_path / "repository") == 0
    assert not Path((tmp_path / "built-in").read_text().strip()).exists()
    assert place.made_by[0] == f"git worktree add --detach {commits[0].name} {commits[0].commit}"
    assert place.made_by[-1].endswith(f"{commits[0].name}/backend")


def test_every_commit_is_built_at_the_same_path(
    workshop: Callable[..., Workshop], commits: list[Point], tmp_path: Path
) -> None:
    paths = set()
    for commit in commits[:3]:
        backend(workshop).make(commit)
        paths.add((tmp_path / "built-in").read_text())
    assert len(paths) == 1


def test_commits_with_the_same_source_share_a_build(
    workshop: Callable[..., Workshop], commits: list[Point], log: Path
) -> None:
    first, last = (backend(workshop).make(commits[i]) for i in (0, 4))
    assert first.variables["PYTHONPATH"] == last.variables["PYTHONPATH"]
    assert len(asked(log, "--target")) == 1


def test_a_commit_that_changes_no_installed_file_is_the_same_build(
    workshop: Callable[..., Workshop], commits: list[Point]
) -> None:
    made = backend(workshop)
    before, comment, code = (made.make(commit).build for commit in commits[:3])
    assert before == comment  # although each build writes its commit to a file
    assert comment != code


def test_a_commit_that_does_not_build_is_unusable_and_may_be_tried_again(
    workshop: Callable[..., Workshop], commits: list[Point], log: Path
) -> None:
    made = backend(workshop)
    for _ in range(2):
        with pytest.raises(Unusable, match=r"building backend failed:\nsource:1: error: broken$"):
            made.make(commits[3])
    assert len(asked(log, "--target")) == 2


def test_a_commit_from_before_there_was_a_backend_is_unusable(
    workshop: Callable[..., Workshop], commits: list[Point], tmp_path: Path, log: Path
) -> None:
    git(tmp_path / "repository", "checkout", "-q", "--orphan", "before")
    git(tmp_path / "repository", "rm", "-rqf", "--cached", ".")
    git(tmp_path / "repository", "commit", "-qm", "nothing yet", "--allow-empty")
    before = git(tmp_path / "repository", "rev-parse", "HEAD")
    with pytest.raises(Unusable, match=r"looking for backend in .* failed:\n(?s:.*)path 'backend'"):
        backend(workshop).make(Point(before[:10], "", torch=commits[0].torch, commit=before))
    assert asked(log, "--target") == []


def test_a_working_tree_that_git_does_not_know_is_not_taken_for_another(
    workshop: Callable[..., Workshop], tmp_path: Path
) -> None:
    (tmp_path / "repository/backend").mkdir(parents=True)
    with pytest.raises(Unusable, match="not a git repository"):
        backend(workshop).make(Point("2.8", "", torch="torch==2.8.0"))


def test_a_working_tree_is_built_as_it_was_when_the_search_began(
    workshop: Callable[..., Workshop], commits: list[Point], tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    (repository / "backend/source").write_text("edited\n")
    (repository / "backend/new").write_text("untracked")
    before = git(repository, "status", "--porcelain")
    made = backend(workshop)
    first = made.make(Point("2.8", "", torch="torch==2.8.0"))
    assert (Path(first.variables["PYTHONPATH"].split(":")[0]) / "library.so").read_text() == "edited\n"
    assert git(repository, "status", "--porcelain") == before
    (repository / "backend/source").write_text("edited again\n")
    second = made.make(Point("2.9", "", torch="torch==2.9.0"))
    assert (Path(second.variables["PYTHONPATH"].split(":")[0]) / "library.so").read_text() == "edited\n"
    later = backend(workshop).make(Point("2.8", "", torch="torch==2.8.0"))
    assert later.build != first.build


def test_a_script_runs_in_a_worktree_that_stays_until_the_end(
    workshop: Callable[..., Workshop], commits: list[Point], tmp_path: Path
) -> None:
    made = workshop(build="cp backend/source built")
    places: list[Place] = [made.make(commit) for commit in commits[:3]]
    assert [(p.directory / "built").read_text() for p in places] == ["code 1\n", "// why\ncode 1\n", "code 2\n"]
    made.close()
    assert not any(p.directory.exists() for p in places)
    assert worktrees(tmp_path / "repository") == 0


def test_the_suite_that_is_run_is_a_copy_that_edits_do_not_reach(
    workshop: Callable[..., Workshop], tmp_path: Path
) -> None:
    place = workshop(suite=True).make(torch("2.8"))
    copy = Path(place.variables["PYTHONPATH"])
    assert copy.is_relative_to(tmp_path / "cache")
    assert (copy / "conformance/bisect/places.py").is_file()
