"""A cache of the backend's wheels, by source, torch, compiler, flags and the path of torch."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

KEPT = 60  # wheels, of one or two megabytes each
FLAGS = (
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "CMAKE_ARGS",
    "CMAKE_BUILD_TYPE",
    "SKBUILD_CMAKE_ARGS",
)

_LEFT_OUT = ("tests/", "build/")  # not part of a wheel


def key(project: Path, facts: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Return the key of the wheel that a build would make now.

    ``facts``: other inputs of the build, such as torch's version and path, the compiler, and settings. Raises OSError
    and subprocess.CalledProcessError if the source cannot be listed.
    """
    hashed = hashlib.sha256()
    told = {**facts, "commit": _commit(project), **{name: environ.get(name, "") for name in FLAGS}}
    hashed.update(json.dumps(told, sort_keys=True).encode())
    for name in _sources(project):
        content = (project / name).read_bytes()
        hashed.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return hashed.hexdigest()[:32]


def find(cache: Path, name: str) -> Path | None:
    """Return the wheel with this key, None if it is missing or damaged."""
    directory = cache / name
    try:
        told = json.loads((directory / "wheel.json").read_text(encoding="utf-8"))
        wheel = directory / str(told["wheel"])
        if hashlib.sha256(wheel.read_bytes()).hexdigest() != told["sha256"]:
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    os.utime(directory)
    return wheel


def keep(cache: Path, name: str, wheel: Path) -> Path:
    """Store a wheel atomically, and delete the least recently used ones. Return its path."""
    scratch = cache / f".{name}.{os.getpid()}"
    scratch.mkdir(parents=True)
    shutil.copy2(wheel, scratch / wheel.name)
    told = {"wheel": wheel.name, "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}
    (scratch / "wheel.json").write_text(json.dumps(told) + "\n", encoding="utf-8")
    shutil.rmtree(cache / name, ignore_errors=True)
    scratch.rename(cache / name)
    kept = sorted((d for d in cache.iterdir() if not d.name.startswith(".")), key=lambda d: d.stat().st_mtime)
    for old in kept[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return cache / name / wheel.name


def _sources(project: Path) -> list[str]:
    """Return the files that git tracks or does not ignore, sorted."""
    command = ["git", "-C", str(project), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(n for n in set(listed) if n and not n.startswith(_LEFT_OUT) and (project / n).is_file())


def _commit(project: Path) -> str:
    """Return the last commit of the project and whether it has changed since. A build contains both."""
    asked = (["log", "-1", "--format=%H", "--", "."], ["status", "--porcelain", "--", "."])
    told = [
        subprocess.run(["git", "-C", str(project), *words], capture_output=True, text=True, check=True).stdout.strip()
        for words in asked
    ]
    return told[0] + ("-dirty" if told[1] else "")
