"""Wheels of backends built before, kept by all that goes into one: source, torch, compiler, flags, where torch lies."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

KEPT = 60  # wheels; of a megabyte or two each
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

_LEFT_OUT = ("tests/", "build/")  # nothing of them gets into a wheel


def key(project: Path, facts: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """A name for the wheel that this project makes now.

    ``facts``: what else it depends on, such as torch's version and place, the compiler, the build's settings. Raises
    OSError and subprocess.CalledProcessError where the source cannot be listed.
    """
    hashed = hashlib.sha256()
    told = {**facts, "commit": _commit(project), **{name: environ.get(name, "") for name in FLAGS}}
    hashed.update(json.dumps(told, sort_keys=True).encode())
    for name in _sources(project):
        content = (project / name).read_bytes()
        hashed.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return hashed.hexdigest()[:32]


def find(cache: Path, name: str) -> Path | None:
    """The wheel of this name, if it is there and as it was kept."""
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
    """Put a wheel under this name, whole or not at all, and drop those not used for longest. Returns where it is."""
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
    """The files that git has or would take, by name."""
    command = ["git", "-C", str(project), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(n for n in set(listed) if n and not n.startswith(_LEFT_OUT) and (project / n).is_file())


def _commit(project: Path) -> str:
    """The last commit that touched the project, and whether it has changed since: a build writes both down."""
    asked = (["log", "-1", "--format=%H", "--", "."], ["status", "--porcelain", "--", "."])
    told = [
        subprocess.run(["git", "-C", str(project), *words], capture_output=True, text=True, check=True).stdout.strip()
        for words in asked
    ]
    return told[0] + ("-dirty" if told[1] else "")
