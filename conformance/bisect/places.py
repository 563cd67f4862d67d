"""Makes the place in which a point is probed: torch in an environment, a commit in a worktree, the backend built.

Everything lies in one cache directory and is made once; places are made in several threads. What cannot be installed
or built is Unusable, never bad.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from conformance import torch_wheel
from conformance.bisect.points import SHORT, Point
from conformance.bisect.processes import Ended, Processes
from conformance.toml_table import Table

SUITE = "op-conformance"
PACKAGE = Path(__file__).resolve().parents[1]
READY = "ready.json"
_ABBREVIATED = 7  # digits of a commit, the fewest that git writes
SOURCE = "source"  # of a commit, in a directory where its builds lie too


class Unusable(Exception):
    """A point that cannot be installed or built; the message says why, its last lines what the tool said."""


class NoRoom(OSError):
    """The disk is too full to go on; nothing is said of the point."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a point is probed."""

    python: str
    directory: Path  # to run in
    variables: Mapping[str, str]
    build: str  # equal for two points that are the same build
    made_by: tuple[str, ...] = ()  # the commands, for a person who repeats it


@dataclass
class Workshop:
    """Makes places, and drops the oldest of them when there are too many."""

    cache: Path
    processes: Processes
    repository: Path  # that the commits are of
    project: str = ""  # the backend's directory in it; "": no backend is built
    suite: bool = True  # cases are run, so that environments get what the suite needs
    build: str = ""  # a command that builds a commit, in its worktree
    extra: tuple[str, ...] = ()  # more packages for the environments
    keep: int = 3  # environments of torch
    suite_copy: Path | None = None  # made on first use
    _locks: dict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    _used: list[str] = field(default_factory=list)  # environments, the last used last
    _worktrees: list[Path] = field(default_factory=list)

    def make(self, point: Point) -> Place:
        """Everything that the point needs. Raises Unusable, NoRoom, Stopped."""
        made: list[str] = []
        directory = self._worktree(point, made) if point.commit else self.repository
        environment, build = self._torch(point, made)
        variables = {"VIRTUAL_ENV": str(environment), "BISECT_POINT": point.name} if environment else {}
        python = str(environment / "bin/python") if environment else sys.executable
        variables["PATH"] = f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        paths = [str(self._suite())] if self.suite else []
        if self.build and point.commit:
            self._check(self.processes.run(self.build, cwd=directory, variables=variables), self.build)
            made.append(self.build)
        if self.project:
            target, installed = self._backend(point, directory, python, variables, made)
            paths.insert(0, str(target))
            build += installed
        elif point.commit:
            build += self._tree(point.commit)
        if paths:
            variables["PYTHONPATH"] = os.pathsep.join(paths)
        return Place(python, directory, variables, build, tuple(made))

    def close(self) -> None:
        """Remove the worktrees; environments and builds stay, for the next search."""
        for path in self._worktrees:
            shutil.rmtree(path.parent, ignore_errors=True)
            # One whose making was interrupted is still locked, and what is locked is not pruned.
            Processes().run(["git", "-C", str(self.repository), "worktree", "unlock", str(path)])
        if self._worktrees:
            Processes().run(["git", "-C", str(self.repository), "worktree", "prune"])

    # The parts --------------------------------------------------------------------------------------------------

    def _torch(self, point: Point, made: list[str]) -> tuple[Path | None, str]:
        """(the environment with the point's torch, which build of torch that is); none where this process' will do."""
        if not point.torch:
            return None, ""
        where = self.cache / "torch" / _slug(point.torch + ("-suite" if self.suite else ""))
        with self._locks[str(where)]:
            if not (where / READY).is_file():
                self._make_room(where)
                self._install(point, where)
            self._touch(where)
        facts = json.loads((where / READY).read_text(encoding="utf-8"))
        made += facts["made_by"]
        return where, str(facts["build"])

    def _install(self, point: Point, where: Path) -> None:
        source = torch_wheel.choose(
            point.torch, sys.version_info[:2], self._variables(), torch_wheel.cpu_index_answers
        )  # fmt: skip
        lacking = torch_wheel.lacking_room(source, self.cache, shutil.disk_usage(self.cache).free)
        if lacking:
            raise NoRoom(lacking)
        shutil.rmtree(where, ignore_errors=True)
        install = ["uv", "pip", "install", "-q", "-p", str(where / "bin/python")]
        index = ["--index-url", point.index, "--prerelease", "allow"] if point.index else []
        made = [["uv", "venv", "-q", "--python", sys.executable, str(where)]]
        made += [[*install, *source.first, point.torch]] if source.first and not index else []
        made += [[*install, *(index or source.uv), point.torch], [*install, *self._needed()]]
        for command in made:
            self._check(self.processes.run(command, variables=self._variables()), " ".join(command))
        facts = {"build": _build_of_torch(where), "made_by": [" ".join(c) for c in made]}
        (where / READY).write_text(json.dumps(facts), encoding="utf-8")

    def _needed(self) -> list[str]:
        """The packages next to torch."""
        if not self.suite:
            return ["numpy", *self.extra]
        listed = [Requirement(r) for r in _requirements()]
        wanted = [f"{r.name}{r.specifier}" for r in listed if not r.marker or r.marker.evaluate({"extra": ""})]
        return [*wanted, *self._build_requirements(self.repository), *self.extra]

    def _build_requirements(self, root: Path) -> list[str]:
        """What the backend is built with."""
        file = root / self.project / "pyproject.toml"
        if not self.project or not file.is_file():
            return []
        return [*Table.load(file).table("build-system").strings("requires"), "cmake>=3.26", "ninja"]

    def _worktree(self, point: Point, made: list[str]) -> Path:
        where = self.cache / "worktrees" / f"{os.getpid()}-{point.commit[:SHORT]}" / SOURCE
        made.append(f"git worktree add --detach {point.commit[:SHORT]} {point.commit}")
        with self._locks["worktrees"]:
            if not self._worktrees:
                self._sweep()
            if not where.is_dir():
                self._worktrees.append(where)
                command = ["git", "-C", str(self.repository), "worktree", "add", "--force", "--detach"]
                self._check(self.processes.run([*command, str(where), point.commit]), "git worktree add")
        return where

    def _sweep(self) -> None:
        """Remove the worktrees of searches that were killed."""
        for old in (self.cache / "worktrees").glob("*-*"):
            owner = old.name.partition("-")[0]
            if owner.isdecimal() and not _alive(int(owner)):
                shutil.rmtree(old, ignore_errors=True)

    def _tree(self, commit: str) -> str:
        """The hash of what the commit builds: equal for commits that differ elsewhere only."""
        said = self.processes.run(["git", "-C", str(self.repository), "rev-parse", f"{commit}:{self.project}"])
        return said.stdout.strip()

    def _files(self, directory: Path) -> str:
        """A hash of a working tree: its files that git does not ignore."""
        listed = self.processes.run(
            ["git", "-C", str(directory), "ls-files", "--cached", "--others", "--exclude-standard"]
        )
        found = hashlib.sha256()
        for name in sorted(listed.stdout.splitlines()):
            file = directory / name
            found.update(name.encode() + b"\0" + (file.read_bytes() if file.is_file() else b"") + b"\0")
        return found.hexdigest()[:40]

    def _backend(
        self, point: Point, root: Path, python: str, variables: Mapping[str, str], made: list[str]
    ) -> tuple[Path, str]:  # fmt: skip
        """(the directory that the backend of this torch and this source is installed in, a hash of what it holds)."""
        tree = self._tree(point.commit) if point.commit else self._files(root / self.project)
        source = f"{_slug(point.torch or 'here')}-{tree}"
        target = self.cache / "backends" / f"{self.project}-{source}".replace("/", "_")
        project = root / self.project
        name = Table.load(project / "pyproject.toml").table("project").take("name", str)
        command = ["uv", "pip", "install", "-q", "-p", python, "--target", str(target), "--no-deps"]
        command += ["--no-build-isolation", "--reinstall-package", name, str(project)]
        made.append(" ".join(command))
        with self._locks[str(target)]:
            if not (target / READY).is_file():
                shutil.rmtree(target, ignore_errors=True)
                # Beside the commit's source: seen from here, its files are where every other commit's are.
                around = root.parent if point.commit else self.cache / "builds"
                scratch = around / f"build-{_slug(point.torch)}"
                compiler = {**self._variables(), **variables, **_ccache(around)}
                ended = self.processes.run([*command, "-C", f"build-dir={scratch}"], variables=compiler)
                shutil.rmtree(scratch, ignore_errors=True)
                self._check(ended, f"building {self.project}")
                facts = {"build": _installed(target, (str(around).encode(), point.commit[:_ABBREVIATED].encode()))}
                (target / READY).write_text(json.dumps(facts), encoding="utf-8")
        return target, str(json.loads((target / READY).read_text(encoding="utf-8")).get("build", target.name))

    def _suite(self) -> Path:
        """A directory with a copy of this suite alone: what is edited meanwhile does not change what a case means."""
        if self.suite_copy:
            return self.suite_copy
        files = sorted(f for f in PACKAGE.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
        told = "".join(f"{f.relative_to(PACKAGE)} {f.stat().st_size} {f.stat().st_mtime_ns}\n" for f in files)
        where = self.cache / "suite" / hashlib.sha256(told.encode()).hexdigest()[:16]
        with self._locks["suite"]:
            if not where.is_dir():
                scratch = where.with_name(f"{where.name}.{os.getpid()}")
                shutil.copytree(PACKAGE, scratch / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
                scratch.rename(where)
            self.suite_copy = where
        return where

    # Room -------------------------------------------------------------------------------------------------------

    def _touch(self, where: Path) -> None:
        with self._locks["used"]:
            self._used = [u for u in self._used if u != str(where)] + [str(where)]

    def _make_room(self, wanted: Path) -> None:
        """Drop environments until there is one less than may be kept, the longest unused first."""
        with self._locks["used"]:
            there = sorted((p.parent for p in (self.cache / "torch").glob(f"*/{READY}")), key=self._age)
            for old in [p for p in there if p != wanted][: max(0, len(there) + 1 - self.keep)]:
                shutil.rmtree(old, ignore_errors=True)

    def _age(self, where: Path) -> int:
        return self._used.index(str(where)) if str(where) in self._used else -1

    def _variables(self) -> dict[str, str]:
        self.cache.mkdir(parents=True, exist_ok=True)
        return {**os.environ, **torch_wheel.uv_environment(os.environ)}

    def _check(self, ended: Ended, what: str) -> None:
        if ended.code:
            raise Unusable(f"{what} failed:\n{ended.last_lines()}")


def _requirements() -> Sequence[str]:
    """What the suite needs: as its checkout says, since an editable installation may be older."""
    file = PACKAGE.parent / "pyproject.toml"
    if file.is_file() and (project := Table.load(file).table("project")).take("name", str) == SUITE:
        return project.strings("dependencies")
    return metadata.requires(SUITE) or []


def _build_of_torch(environment: Path) -> str:
    """A hash of the wheel's list of files and their hashes."""
    records: Sequence[Path] = sorted(environment.glob("lib/python*/site-packages/torch-*.dist-info/RECORD"))
    return hashlib.sha256(b"".join(r.read_bytes() for r in records)).hexdigest()


def _installed(directory: Path, own: Sequence[bytes]) -> str:
    """A hash of the files installed in a directory, but for what is said of the installation.

    ``own``: names of the commit, and of where it was built, which count as the same ones everywhere. What follows the
    first digits of a commit's hash is left out with them.
    """
    names = re.compile(b"|".join(re.escape(name) + b"[0-9a-f]*" for name in own if name) or b"$.")
    found = hashlib.sha256()
    for file in sorted(f for f in directory.rglob("*") if f.is_file()):
        inside = file.relative_to(directory)
        if inside.parts[0].endswith(".dist-info") or "__pycache__" in inside.parts or inside.name == ".lock":
            continue
        found.update(f"{inside}\0".encode() + hashlib.sha256(names.sub(b"", file.read_bytes())).digest())
    return found.hexdigest()[:40]


def _ccache(around: Path) -> dict[str, str]:
    """Settings with which the same file of another commit is found in the cache: paths count from ``around`` on."""
    if not shutil.which("ccache") or "CMAKE_CXX_COMPILER_LAUNCHER" in os.environ:
        return {}
    return {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": str(around), "CCACHE_NOHASHDIR": "1"}


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")
