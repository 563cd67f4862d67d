"""The interpreter and the environment variables of a process that runs in a lane."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.lanes import matrix, sanitizers
from conformance.lanes.matrix import LISTED_BY, Build, Lane, Matrix, Torch
from conformance.support.suggestions import unknown


class NotMade(LookupError):
    """The environment of a lane does not exist. The message names the nox session that creates it."""


@dataclass(frozen=True, slots=True)
class Start:
    """The arguments of ``subprocess.run([start.python, ...], env=os.environ | start.variables)``."""

    python: str
    variables: dict[str, str]


def environment_name(m: Matrix, torch: Torch, build: Build, alone: bool) -> str:
    """Return the session that creates the environment of a torch and a build: ``torch-2.13``, ``torch-2.13-asan``.

    ``alone``: whether there is no matrix of another backend. The name omits the first build of a matrix.
    """
    parts = ["torch", *([] if alone else [m.backend]), torch.version]
    return "-".join([*parts, *([] if build == m.builds[0] else [build.name])])


def session_name(m: Matrix, lane: Lane, alone: bool) -> str:
    """Return the session that runs a lane, e.g. ``conformance-2.13(malloc)``, ``conformance-2.13(malloc, asan)``."""
    return f"{sessions_name(m, lane.torch, alone)}({label(m, lane)})"


def sessions_name(m: Matrix, torch: Torch, alone: bool) -> str:
    """Return the name of all sessions of a torch version except those on demand, e.g. ``conformance-2.13``."""
    return f"conformance-{torch.version}" if alone else f"conformance-{m.backend}-{torch.version}"


def label(m: Matrix, lane: Lane) -> str:
    """Return a lane's environment and build. The first build of a matrix is omitted."""
    return lane.environment.name + ("" if lane.build == m.builds[0] else f", {lane.build.name}")


def interpreter_file(root: Path, environment: str) -> Path:
    """Return the file to which the session writes its interpreter's path. ``root``: the repository's root."""
    return root / ".nox" / f"{environment}.python"


def start(root: Path, name: str, log: Path | None = None) -> Start:
    """Return the interpreter and the variables of the lane called ``name``, e.g. ``demo-torch2.8-malloc-asan``.

    Raises LookupError for a lane that ``root``/matrices/ does not have, NotMade if its environment does not exist, and
    sanitizers.NoRuntime if the compiler lacks a sanitizer's runtime. ``log``: see :func:`sanitizers.variables`.
    """
    lane, environment = find(root, name)
    file = interpreter_file(root, environment)
    if not file.is_file():
        raise NotMade(f"lane {name}: its environment does not exist; create it with: nox -s {environment}")
    return Start(file.read_text(encoding="utf-8"), variables(root, lane, os.environ, log))


def find(root: Path, name: str) -> tuple[Lane, str]:
    """Return a lane and the session that creates its environment. Raises LookupError for an unknown lane."""
    matrices = matrix.load_all(root / "matrices")
    if not matrices:
        raise LookupError(f"no matrix in {root / 'matrices'}/; expected <backend>.toml")
    lanes = {lane.name: (m, lane) for m in matrices for lane in m.lanes()}
    if name not in lanes:
        raise LookupError(unknown("lane", name, lanes, LISTED_BY))
    m, lane = lanes[name]
    return lane, environment_name(m, lane.torch, lane.build, alone=len(matrices) == 1)


def variables(root: Path, lane: Lane, environ: Mapping[str, str], log: Path | None = None) -> dict[str, str]:
    """Return the variables of a lane's environment and of its build's sanitizers. Raises sanitizers.NoRuntime."""
    build = lane.build
    suppressions = root / build.suppressions if build.suppressions else None
    return dict(lane.environment.variables) | sanitizers.variables(build.sanitizers, suppressions, environ, log)
