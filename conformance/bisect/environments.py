"""Environments with a torch version and other packages. The least recently used ones are deleted."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conformance.bisect.points import Point
from conformance.bisect.processes import Ended, Processes
from conformance.lanes import torch_wheel

READY = "ready.json"  # marks a complete directory, and contains its facts


class Unusable(Exception):
    """A point that cannot be installed or built. ``why`` is one line: the failed step and the tool's first error."""

    def __init__(self, step: str, output: str = "") -> None:
        """``step``: the failed step. ``output``: the errors that the tool printed."""
        super().__init__("\n".join(filter(None, (step, output))))
        lines = [line.strip() for line in output.splitlines()]
        error = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "")
        self.why = " ".join(filter(None, (step, error)))
        self.seconds = 0.0  # until the failure


class NoRoom(OSError):
    """The disk is too full to continue. The point is not skipped."""


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment with torch."""

    directory: Path
    build: str  # identifies the build of torch
    made_by: tuple[str, ...]  # the commands that created it

    @property
    def python(self) -> str:
        return str(self.directory / "bin/python")


@dataclass
class Environments:
    """The environments in one directory. Thread-safe."""

    directory: Path
    processes: Processes
    packages: Sequence[str]  # to install besides torch
    suffix: str = ""  # of the directories' names, for environments with other packages
    keep: int = 3  # number of environments
    _locks: dict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    _used: list[str] = field(default_factory=list)  # the most recently used last

    def of(self, point: Point) -> Environment:
        """Return an environment with the point's torch. Raises Unusable, NoRoom, Stopped."""
        where = self.directory / slug(point.torch + self.suffix)
        with self._locks[str(where)]:
            if not (where / READY).is_file():
                self._make_room(where)
                self._install(point, where)
            facts = json.loads((where / READY).read_text(encoding="utf-8"))
            if facts.get("packages") != list(self.packages):  # the suite or --with needs other packages now
                self._complete(where, facts["build"], facts.get("torch_by", []))
                facts = json.loads((where / READY).read_text(encoding="utf-8"))
            self._touch(where)
        return Environment(where, str(facts["build"]), (*facts["torch_by"], facts["packages_by"]))

    def _install(self, point: Point, where: Path) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        version = sys.version_info[:2]
        source = torch_wheel.choose(point.torch, version, variables(), torch_wheel.cpu_index_answers)
        lacking = torch_wheel.lacking_room(source, self.directory, shutil.disk_usage(self.directory).free)
        if lacking:
            raise NoRoom(lacking)
        shutil.rmtree(where, ignore_errors=True)
        install = _installer(where)
        index = ["--index-url", point.index, "--prerelease", "allow"] if point.index else []
        made = [["uv", "venv", "-q", "--python", sys.executable, str(where)]]
        made += [[*install, *source.first, point.torch]] if source.first and not index else []
        made += [[*install, *(index or source.uv), point.torch]]
        for command in made:
            check(self.processes.run(command, variables=variables()), shlex.join(command))
        self._complete(where, _build_of_torch(where), [shlex.join(c) for c in made])

    def _complete(self, where: Path, build: str, torch_by: Sequence[str]) -> None:
        """Install the packages, and mark the environment as complete."""
        command = [*_installer(where), *self.packages]
        check(self.processes.run(command, variables=variables()), shlex.join(command))
        facts = {
            "build": build, "packages": list(self.packages), "torch_by": list(torch_by),
            "packages_by": shlex.join(command),
        }  # fmt: skip
        (where / READY).write_text(json.dumps(facts), encoding="utf-8")

    def _touch(self, where: Path) -> None:
        with self._locks["used"]:
            self._used = [u for u in self._used if u != str(where)] + [str(where)]

    def _make_room(self, wanted: Path) -> None:
        """Delete the least recently used environments until there is room for another one."""
        with self._locks["used"]:
            there = sorted((p.parent for p in self.directory.glob(f"*/{READY}")), key=self._age)
            for old in [p for p in there if p != wanted][: max(0, len(there) + 1 - self.keep)]:
                shutil.rmtree(old, ignore_errors=True)

    def _age(self, where: Path) -> int:
        return self._used.index(str(where)) if str(where) in self._used else -1


def variables() -> dict[str, str]:
    """Return the environment variables of this process, with pip's settings under uv's names."""
    return {**os.environ, **torch_wheel.uv_environment(os.environ)}


def check(ended: Ended, what: str) -> None:
    """Raise Unusable for a command that failed, with its errors."""
    if ended.code:
        raise Unusable(f"{what} failed:", ended.errors())


def slug(text: str) -> str:
    """Return the name of a directory for a requirement."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")


def _installer(where: Path) -> list[str]:
    return ["uv", "pip", "install", "-q", "-p", str(where / "bin/python")]


def _build_of_torch(environment: Path) -> str:
    """Return a hash of the wheel's list of files and their hashes."""
    records: Sequence[Path] = sorted(environment.glob("lib/python*/site-packages/torch-*.dist-info/RECORD"))
    return hashlib.sha256(b"".join(r.read_bytes() for r in records)).hexdigest()
