"""The source of a torch wheel: a local directory, the user's index, torch's CPU index, or the default index.

The default Linux wheels contain CUDA libraries, about 3 GB to download and 7 GB on disk, which the suite does not use.
Therefore, smaller wheels are preferred, unless the user has configured an index.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

from packaging.requirements import Requirement
from packaging.tags import platform_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
INDEX_VARIABLES = (
    "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_TORCH_BACKEND",
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX",
)  # fmt: skip

# uv's names for pip's variables, and the separator of several values in uv's variable.
_UV_NAMES = {
    "PIP_FIND_LINKS": ("UV_FIND_LINKS", ","),
    "PIP_INDEX_URL": ("UV_DEFAULT_INDEX", " "),
    "PIP_EXTRA_INDEX_URL": ("UV_INDEX", " "),
    "PIP_CERT": ("SSL_CERT_FILE", " "),
}


@dataclass(frozen=True, slots=True)
class Source:
    """A place to install torch from."""

    name: str  # for messages
    disk_gib: float  # free disk space that the installation needs, including the download
    pip: tuple[str, ...] = ()  # extra arguments of ``pip install``
    uv: tuple[str, ...] = ()  # extra arguments of ``uv pip install``
    # Arguments for a directory that has the wheel but not its dependencies: install with them first, then without them.
    first: tuple[str, ...] = ()


def choose(
    requirement: str,
    python: tuple[int, int],
    environment: Mapping[str, str],
    cpu_index_answers: Callable[[], bool],
    platform: str = sys.platform,
) -> Source:
    """Return the best source for a requirement like ``torch==2.13.0``. Uses the network only if necessary."""
    directory = local_wheel(requirement, python, environment)
    if directory:
        first = ("--no-index", "--no-deps", "--find-links", str(directory))
        return Source(f"the wheel in {directory}", 2.0, first=first)
    given = [name for name in INDEX_VARIABLES if environment.get(name)]
    if given:
        return Source(f"the index in {', '.join(given)}", 9.0)
    if platform != "linux":
        return Source("the default index, whose wheels are CPU-only here", 2.0)
    if cpu_index_answers():
        return Source(CPU_INDEX, 2.0, pip=("--extra-index-url", CPU_INDEX), uv=("--torch-backend=cpu",))
    return Source(f"the default index, with CUDA libraries, because {CPU_INDEX} does not respond", 9.0)


def of_index(url: str, answers: Callable[[str], bool]) -> Source:
    """Return the source for a version that only one index has, e.g. nightly. Raises LookupError without a response."""
    if not answers(url):
        raise LookupError(f"{url}, the only index with this version, does not respond")
    return Source(url, 9.0, pip=("--pre", "--extra-index-url", url), uv=("--prerelease=allow", "--index", url))


def satisfied(requirement: str, installed: Iterable[str]) -> bool:
    """Return whether an installed version satisfies the requirement. ``2.13.0+cpu`` counts as 2.13.0."""
    return any(Requirement(requirement).specifier.contains(version, prereleases=True) for version in installed)


def local_wheel(requirement: str, python: tuple[int, int], environment: Mapping[str, str]) -> Path | None:
    """Return the first find-links directory with a wheel of the requirement for this Python and platform."""
    wanted = Requirement(requirement)
    for directory in _directories(environment):
        for wheel in sorted(directory.glob(f"{wanted.name}-*.whl")):
            if _fits(wheel.name, wanted, python):
                return directory
    return None


def uv_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return pip's variables under uv's names. Variables that the user set for uv have priority."""
    found = {}
    for pip_name, (uv_name, separator) in _UV_NAMES.items():
        values = environment.get(pip_name, "").split()
        if values and uv_name not in environment:
            found[uv_name] = separator.join(values)
    return found


def lacking_room(source: Source, where: Path, free_bytes: int) -> str:
    """Return the error if the disk is too full to install from ``source``, else ""."""
    free_gib = free_bytes / 2**30
    if free_gib >= source.disk_gib:
        return ""
    return (
        f"{where}: {free_gib:.1f} GiB free on this disk, {source.disk_gib:.0f} GiB needed to install torch from "
        f"{source.name}; free some space, or name a directory that holds a CPU wheel in PIP_FIND_LINKS"
    )


def cpu_index_answers() -> bool:
    """Return whether torch's CPU index responds."""
    return index_answers(CPU_INDEX)


def index_answers(url: str, timeout_s: float = 5.0) -> bool:
    """Return whether an index of torch wheels responds."""
    request = urllib.request.Request(f"{url}/torch/", method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _directories(environment: Mapping[str, str]) -> list[Path]:
    given = (
        environment.get("UV_FIND_LINKS", "").replace(",", " ").split() + environment.get("PIP_FIND_LINKS", "").split()
    )
    paths = [Path(unquote(urlparse(g).path)) if g.startswith("file:") else Path(g).expanduser() for g in given]
    return [path for path in paths if path.is_dir()]


def _fits(filename: str, wanted: Requirement, python: tuple[int, int]) -> bool:
    try:
        _, version, _, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return False
    interpreter = f"cp{python[0]}{python[1]}"
    here = {*platform_tags(), "any"}
    return wanted.specifier.contains(version) and any(t.interpreter == interpreter and t.platform in here for t in tags)
