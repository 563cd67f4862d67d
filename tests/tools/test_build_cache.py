"""The wheel cache: a wheel is reused only if all inputs of its build are equal."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tools import build_cache

FACTS = {"torch": "2.8.0", "compiler": "g++ 12.2"}
GIT = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(directory), *arguments], check=True, env=os.environ | GIT, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the repository of one project."""
    made = tmp_path / "repository" / "backend"
    (made / "tests").mkdir(parents=True)
    (made / "kernel.cpp").write_text("int x;")
    (made / "tests/test_x.py").write_text("")
    (made / ".gitignore").write_text("*.log\n")
    git(made, "init", "-q")
    git(made, "add", ".")
    git(made, "commit", "-qm", "first")
    return made


def key(project: Path, **given: str) -> str:
    return build_cache.key(project, FACTS, given)


def wheel(directory: Path, text: str = "wheel") -> Path:
    made = directory / "demo-0.1-cp311.whl"
    made.write_text(text)
    return made


def test_the_same_source_and_facts_are_the_same_wheel(project: Path) -> None:
    first = key(project)
    (project / "notes.log").write_text("ignored by git")
    (project.parent / "elsewhere").write_text("not the project's")
    assert key(project) == first
    (project / "tests/test_x.py").write_text("in no wheel")
    dirty = key(project)  # the key holds that there are changes, but not which tests changed
    (project / "tests/test_x.py").write_text("in no wheel either")
    assert key(project) == dirty != first


def test_each_input_of_a_wheel_changes_its_cache_key(project: Path) -> None:
    found = [key(project), key(project, CXXFLAGS="-O0"), build_cache.key(project, {**FACTS, "torch": "2.9.0"}, {})]
    (project / "new.cpp").write_text("int y;")  # not yet added to git
    found.append(key(project))
    (project / "kernel.cpp").write_text("int z;")
    found.append(key(project))
    (project / "kernel.cpp").rename(project / "renamed.cpp")
    found.append(key(project))
    git(project, "add", ".")
    git(project, "commit", "-qm", "second")  # a build records its commit
    found.append(key(project))
    assert len(set(found)) == len(found)


def test_a_wheel_that_was_kept_is_found_and_one_that_was_not_is_none(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert build_cache.find(cache, "a") is None
    kept = build_cache.keep(cache, "a", wheel(tmp_path))
    assert build_cache.find(cache, "a") == kept
    assert kept.name == "demo-0.1-cp311.whl"
    assert build_cache.find(cache, "b") is None
    build_cache.keep(cache, "a", wheel(tmp_path, "again"))
    assert kept.read_text() == "again"


@pytest.mark.parametrize("damage", ["cut", "no json", "gone"])
def test_a_wheel_that_is_damaged_is_built_anew(tmp_path: Path, damage: str) -> None:
    kept = build_cache.keep(tmp_path / "cache", "a", wheel(tmp_path))
    if damage == "cut":
        kept.write_text("whe")
    elif damage == "gone":
        kept.unlink()
    else:
        (kept.parent / "wheel.json").write_text(json.dumps([]))
    assert build_cache.find(tmp_path / "cache", "a") is None


def test_the_wheels_not_used_for_longest_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_cache, "KEPT", 2)
    cache = tmp_path / "cache"
    for age, name in enumerate("ab"):
        os.utime(build_cache.keep(cache, name, wheel(tmp_path)).parent, (age, age))
    assert build_cache.find(cache, "a")  # marks the wheel as used now
    build_cache.keep(cache, "c", wheel(tmp_path))
    assert sorted(d.name for d in cache.iterdir()) == ["a", "c"]
