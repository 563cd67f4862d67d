"""The lanes of a backend, read from ``matrices/<backend>.toml``, and their names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from conformance.lanes import sanitizers
from conformance.support.toml_table import Table
from conformance.vocabulary import TIERS

LISTED_BY = "conformance matrix --lanes '*'"  # the command that lists all lanes, also those on demand
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*")  # no "-": it separates the parts of a lane's name
_LANE = re.compile(rf"{_NAME.pattern}-torch(?P<torch>[^-]+)-{_NAME.pattern}-{_NAME.pattern}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")  # an environment variable; other keys are settings of the suite


@dataclass(frozen=True, slots=True)
class Torch:
    """One torch version that the backend is built against and run on."""

    version: str  # as lanes and sessions name it, e.g. "2.8"
    requirement: str  # the requirement to install, e.g. "torch==2.8.0"
    python: str  # the interpreter's version, "" for the interpreter that runs nox
    tier: str  # the default tier of a session
    index: str = ""  # the only package index with this version, e.g. the nightly index; "" for the default


@dataclass(frozen=True, slots=True)
class Environment:
    """A named set of environment variables that the backend runs under, e.g. an allocator mode."""

    name: str
    variables: tuple[tuple[str, str], ...]
    on_demand: bool = False  # its lanes run only if they are named


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources that one shard of a lane occupies on a machine, see ``conformance run``."""

    cpus: int = 1
    memory_mb: int = 2048
    devices: tuple[tuple[str, int], ...] = ()  # by the name under which the machine offers them


@dataclass(frozen=True, slots=True)
class Build:
    """One build of the backend, e.g. with a sanitizer."""

    name: str
    on_demand: bool = False  # its lanes run only if they are named
    settings: tuple[tuple[str, str], ...] = ()  # arguments ``-C KEY=VALUE`` of the backend's build
    sanitizers: tuple[str, ...] = ()  # the values of -fsanitize; their runtimes are preloaded
    suppressions: str = ""  # a file for LeakSanitizer, relative to the repository root
    resources: Resources = Resources()


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Lanes that do not exist, with the reason. An empty field matches every value."""

    torch: str
    environment: str
    build: str
    reason: str

    def covers(self, lane: Lane) -> bool:
        pairs = (
            (self.torch, lane.torch.version),
            (self.environment, lane.environment.name),
            (self.build, lane.build.name),
        )
        return all(not pattern or pattern == value for pattern, value in pairs)


@dataclass(frozen=True, slots=True)
class Lane:
    """Backend × torch version × environment × build: the configuration of one run."""

    backend: str
    torch: Torch
    environment: Environment
    build: Build

    @property
    def name(self) -> str:
        return lane_name(self.backend, self.torch.version, self.environment.name, self.build.name)

    @property
    def on_demand(self) -> bool:
        """Whether the lane runs only if it is named."""
        return self.environment.on_demand or self.build.on_demand


@dataclass(frozen=True, slots=True)
class Matrix:
    """The content of one ``matrices/<backend>.toml``."""

    backend: str  # the name under which the backend's adapter is found
    project: str  # the directory of the backend's distribution, relative to the repository root
    module: str  # the Python module that loads it
    torches: tuple[Torch, ...]
    environments: tuple[Environment, ...]
    builds: tuple[Build, ...]
    exclusions: tuple[Exclusion, ...]
    main: str  # the torch version that the tests of the suite and of the backend run on

    @property
    def main_torch(self) -> Torch:
        return next(torch for torch in self.torches if torch.version == self.main)

    def lanes(self) -> list[Lane]:
        """Return all lanes that are not excluded, in the file's order."""
        lanes = [
            Lane(self.backend, torch, environment, build)
            for torch in self.torches
            for environment in self.environments
            for build in self.builds
        ]
        return [lane for lane in lanes if not any(e.covers(lane) for e in self.exclusions)]


def lane_name(backend: str, torch: str, environment: str, build: str) -> str:
    """Return a lane's name, e.g. ``demo-torch2.8-malloc-release``. It is also the name of a directory."""
    return f"{backend}-torch{torch}-{environment}-{build}"


def torch_of(lane: str) -> str | None:
    """Return the torch version in a lane's name, e.g. ``2.8``; None for a name that :func:`lane_name` did not make."""
    found = _LANE.fullmatch(lane)
    return found["torch"] if found else None


def load(file: Path) -> Matrix:
    """Read one file. Raises TomlError for a missing, unknown or invalid key."""
    top = Table.load(file)
    torches = tuple(_torch(t) for t in top.tables("torch"))
    resources = _resources(top.table("resources"), Resources())
    matrix = Matrix(
        backend=_name(top, "backend"),
        project=top.take("project", str),
        module=top.take("module", str),
        torches=torches,
        environments=_environments(top.table("environments")),
        builds=_builds(top, resources),
        exclusions=tuple(_exclusion(t) for t in top.tables("exclude")),
        main=top.take("main", str, torches[-1].version if torches else ""),
    )
    top.done()
    _check(top, matrix)
    return matrix


def load_all(directory: Path) -> list[Matrix]:
    """Return every matrix of a directory, sorted by file name. Raises TomlError."""
    return [load(file) for file in sorted(directory.glob("*.toml"))]


def _torch(table: Table) -> Torch:
    version = _name(table, "version")
    torch = Torch(
        version=version,
        requirement=table.take("requirement", str, f"torch=={version}.0"),
        python=table.take("python", str, ""),
        tier=table.one_of("tier", TIERS, "full"),
        index=table.take("index", str, ""),
    )
    table.done()
    return torch


def _environments(table: Table) -> tuple[Environment, ...]:
    found = []
    for name in table.names():
        keys = table.table(name)
        on_demand = keys.take("on_demand", bool, False)
        variables = tuple((key, keys.take(key, str)) for key in keys.names() if _VARIABLE.fullmatch(key))
        keys.done()
        found.append(Environment(name, variables, on_demand))
    return tuple(found)


def _resources(table: Table, default: Resources) -> Resources:
    """Return the resources of a table. A key that it lacks has the value of ``default``. Raises TomlError."""
    cpus = table.take("cpus", int, default.cpus)
    memory_mb = table.take("memory_mb", int, default.memory_mb)
    devices = table.table("devices") if "devices" in table.names() else None
    table.done()
    counts = default.devices
    if devices:
        counts = tuple((name, _positive(devices, name, devices.take(name, int))) for name in devices.names())
    return Resources(_positive(table, "cpus", cpus), _positive(table, "memory_mb", memory_mb), counts)


def _positive(table: Table, key: str, value: int) -> int:
    if value < 1:
        raise table.error(key, f"expected a positive integer, got {value}")
    return value


def _builds(top: Table, resources: Resources) -> tuple[Build, ...]:
    """Return the builds. ``resources``: the default for a build that names none. Raises TomlError."""
    if "builds" not in top.names():
        return (Build("release", resources=resources),)
    table, found = top.table("builds"), []
    for name in table.names():
        keys = table.table(name)
        settings = keys.table("settings")
        build = Build(
            name=name,
            on_demand=keys.take("on_demand", bool, False),
            settings=tuple((key, settings.take(key, str)) for key in settings.names()),
            sanitizers=keys.strings("sanitizers", ()),
            suppressions=keys.take("suppressions", str, ""),
            resources=_resources(keys.table("resources"), resources),
        )
        for i, sanitizer in enumerate(build.sanitizers):
            keys.check(f"sanitizers[{i}]", sanitizer, sanitizers.NAMES)
        keys.done()
        found.append(build)
    return tuple(found)


def _exclusion(table: Table) -> Exclusion:
    found = Exclusion(
        torch=table.take("torch", str, ""),
        environment=table.take("environment", str, ""),
        build=table.take("build", str, ""),
        reason=table.take("reason", str),
    )
    table.done()
    if not (found.torch or found.environment or found.build):
        raise table.error("", "excludes every lane; expected at least one of torch, environment, build")
    if not found.reason.strip():
        raise table.error("reason", "is empty; say why these lanes are left out")
    return found


def _name(table: Table, key: str) -> str:
    value = table.take(key, str)
    if not _NAME.fullmatch(value):
        raise table.error(key, f"{value!r} cannot be part of a lane's name; expected letters, digits, '_' and '.'")
    return value


def _check(top: Table, matrix: Matrix) -> None:
    """Raise TomlError for errors that only the whole file shows: empty axes, repeated names, unknown exclusions."""
    axes = {
        "torch": [t.version for t in matrix.torches],
        "environments": [e.name for e in matrix.environments],
        "builds": [b.name for b in matrix.builds],
    }
    for key, names in axes.items():
        _check_axis(top, key, names)
    top.check("main", matrix.main, axes["torch"])
    for i, e in enumerate(matrix.exclusions):
        excluded = {"torch": e.torch, "environment": e.environment, "build": e.build}
        for (key, value), names in zip(excluded.items(), axes.values(), strict=True):
            if value:
                top.check(f"exclude[{i}].{key}", value, names)
    if not matrix.lanes():
        raise top.error("exclude", "leaves no lane")


def _check_axis(top: Table, key: str, names: list[str]) -> None:
    if not names:
        raise top.error(key, "is empty; a lane needs at least one")
    for name in names:
        if names.count(name) > 1:
            raise top.error(key, f"{name!r} is listed twice")
        if not _NAME.fullmatch(name):
            raise top.error(key, f"{name!r} cannot be part of a lane's name; expected letters, digits, '_', '.'")
