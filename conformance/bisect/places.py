"""The preparation of a point for its test: an environment with torch, a worktree of the commit, the built backend.

Everything is cached in one directory. Several threads prepare points. A point that cannot be installed or built raises
Unusable, and never counts as bad.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from conformance.bisect.environments import READY, Environments, Unusable, check, slug
from conformance.bisect.environments import variables as installing
from conformance.bisect.points import SHORT, Point
from conformance.bisect.processes import Processes
from conformance.bisect.worktrees import CheckoutError, Worktrees
from conformance.support.toml_table import Table

PLAN = "op-conformance"
PACKAGE = Path(__file__).resolve().parents[1]
_ABBREVIATED = 7  # the smallest number of digits in git's abbreviated commits


@dataclass(frozen=True, slots=True)
class Place:
    """The place where the cases of a point run."""

    python: str
    directory: Path  # the working directory
    variables: Mapping[str, str]
    build: str  # equal for two points with the same build
    made_by: tuple[str, ...] = ()  # the commands that prepared it, for the report


@dataclass
class Workshop:
    """The preparation of points, and the deletion of old environments."""

    cache: Path
    processes: Processes
    repository: Path  # of the commits
    project: str = ""  # the backend's directory in the repository; "": no backend is built
    suite: bool = True  # cases run, so environments need the suite's packages
    build: str = ""  # a command that builds a commit in its worktree
    extra: tuple[str, ...] = ()  # more packages for the environments
    keep: int = 3  # number of environments with torch
    suite_copy: Path | None = None  # created on first use
    _snapshot: str = ""  # created on first use
    _locks: dict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))

    def __post_init__(self) -> None:
        suffix = "-suite" if self.suite else ""
        self._environments = Environments(self.cache / "torch", self.processes, self._needed(), suffix, self.keep)
        self._worktrees = Worktrees(self.cache / "worktrees", self.repository, self.processes)

    def make(self, point: Point) -> Place:
        """Prepare a point. Raises Unusable, NoRoom, Stopped."""
        made: list[str] = []
        if point.commit:
            made.append(f"git worktree add --detach {point.commit[:SHORT]} {point.commit}")
        try:
            return self._make(point, made)
        except CheckoutError as e:
            raise Unusable(e.step, e.output) from e

    def _make(self, point: Point, made: list[str]) -> Place:
        runs_in_it = point.commit and not (self.suite and self.project and not self.build)
        directory = self._worktrees.keep(point.commit) if runs_in_it else self.repository
        python, build = sys.executable, ""  # the torch of this process
        variables = {}
        if point.torch:
            environment = self._environments.of(point)
            python, build = environment.python, environment.build
            variables = {"VIRTUAL_ENV": str(environment.directory), "BISECT_POINT": point.name}
            made += environment.made_by
        variables["PATH"] = f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        paths = [str(self._suite())] if self.suite else []
        if self.build and point.commit:
            check(self.processes.run(self.build, cwd=directory, variables=variables), self.build)
            made.append(self.build)
        if self.project:
            target, installed = self._backend(point, python, variables, made)
            paths.insert(0, str(target))
            build += installed
        elif point.commit:
            build += self._tree(point.commit)
        if paths:
            variables["PYTHONPATH"] = os.pathsep.join(paths)
        return Place(python, directory, variables, build, tuple(made))

    def close(self) -> None:
        """Remove the worktrees. Environments and builds stay for the next search."""
        self._worktrees.close()

    # The parts --------------------------------------------------------------------------------------------------

    def _needed(self) -> list[str]:
        """Return the packages to install besides torch."""
        if not self.suite:
            return ["numpy", *self.extra]
        listed = [Requirement(r) for r in _requirements()]
        wanted = [f"{r.name}{r.specifier}" for r in listed if not r.marker or r.marker.evaluate({"extra": ""})]
        return [*wanted, *self._build_requirements(self.repository), *self.extra]

    def _build_requirements(self, root: Path) -> list[str]:
        """Return the packages that the backend's build needs."""
        file = root / self.project / "pyproject.toml"
        if not self.project or not file.is_file():
            return []
        return [*Table.load(file).table("build-system").strings("requires"), "cmake>=3.26", "ninja"]

    def _tree(self, commit: str) -> str:
        """Return the hash of the backend's directory in the commit. Raises Unusable."""
        said = self.processes.run(["git", "-C", str(self.repository), "rev-parse", f"{commit}:{self.project}"])
        check(said, f"looking for {self.project or 'the files'} in {commit[:SHORT]}")
        return said.stdout.strip()

    def _now(self) -> str:
        """Return a commit of the backend's working tree, so that edits during the search do not matter.

        It is on no branch, and has no ignored files. Raises Unusable if the directory is not in the repository.
        """
        with self._locks["now"], tempfile.TemporaryDirectory() as scratch:
            if self._snapshot:
                return self._snapshot
            own = {"GIT_INDEX_FILE": f"{scratch}/index"}
            for who in ("AUTHOR", "COMMITTER"):
                own |= {f"GIT_{who}_NAME": "bisect", f"GIT_{who}_EMAIL": "bisect@localhost"}
            said = ""
            for words in (
                ["read-tree", "HEAD"], ["add", "--all", "--", self.project], ["write-tree"],
                ["commit-tree", "-p", "HEAD", "-m", "the working tree"],
            ):  # fmt: skip
                command = ["git", "-C", str(self.repository), *words, *([said] if words[0] == "commit-tree" else [])]
                ended = self.processes.run(command, variables=own)
                check(ended, f"taking {self.project} as it is: git {words[0]}")
                said = ended.stdout.strip()
            self._snapshot = said
            return said

    def _backend(self, point: Point, python: str, variables: Mapping[str, str], made: list[str]) -> tuple[Path, str]:
        """Build the backend for this torch and commit. Return its directory and a hash of the installed files."""
        commit = point.commit or self._now()
        source = f"{slug(point.torch or 'here')}-{self._tree(commit)}"
        target = self.cache / "backends" / f"{self.project}-{source}".replace("/", "_")
        command = ["uv", "pip", "install", "-q", "-p", python, "--target", str(target), "--no-deps"]
        command += ["--no-build-isolation", "--reinstall"]
        made.append(shlex.join([*command, str(Path(point.commit[:SHORT]) / self.project)]))
        with self._locks[str(target)]:
            if not (target / READY).is_file():
                shutil.rmtree(target, ignore_errors=True)
                # One build at a time, since it uses all processors.
                with self._locks["building"], self._worktrees.checked_out(commit) as root:
                    command += [str(root / self.project), "-C", f"build-dir={root.parent / 'build'}"]
                    compiler = {**installing(), **variables, **_ccache(root.parent)}
                    check(self.processes.run(command, variables=compiler), f"building {self.project}")
                    facts = {"build": _installed(target, commit)}
                (target / READY).write_text(json.dumps(facts), encoding="utf-8")
        return target, str(json.loads((target / READY).read_text(encoding="utf-8")).get("build", target.name))

    def _suite(self) -> Path:
        """Return a directory with a copy of this suite, so that edits during the search do not matter."""
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


def _requirements() -> Sequence[str]:
    """Return the suite's requirements, in a checkout from its file, since an editable installation may be older."""
    file = PACKAGE.parent / "pyproject.toml"
    if file.is_file() and (project := Table.load(file).table("project")).take("name", str) == PLAN:
        return project.strings("dependencies")
    return metadata.requires(PLAN) or []


def _installed(directory: Path, commit: str) -> str:
    """Return a hash of the files installed in a directory, without metadata of the installation.

    The commit's name in a file does not change the hash.
    """
    name = re.compile((commit[:_ABBREVIATED] or "$.").encode() + b"[0-9a-f]*")
    found = hashlib.sha256()
    for file in sorted(f for f in directory.rglob("*") if f.is_file()):
        inside = file.relative_to(directory)
        if not (inside.parts[0].endswith(".dist-info") or "__pycache__" in inside.parts or inside.name == ".lock"):
            found.update(f"{inside}\0".encode() + hashlib.sha256(name.sub(b"", file.read_bytes())).digest())
    return found.hexdigest()[:40]


def _ccache(around: Path) -> dict[str, str]:
    """Return variables with which ccache reuses the objects of other commits: paths are relative to ``around``."""
    if not shutil.which("ccache") or "CMAKE_CXX_COMPILER_LAUNCHER" in os.environ:
        return {}
    return {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": str(around), "CCACHE_NOHASHDIR": "1"}
