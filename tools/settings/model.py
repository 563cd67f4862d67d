"""The settings, and the results of each."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in which another machine or user may run the same commands."""

    name: str
    variables: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()  # words before the command
    nox: tuple[str, ...] = ()  # arguments of nox
    pytest: tuple[str, ...] = ()  # arguments after --

    @property
    def words(self) -> str:
        """Return the difference from the first setting, e.g. ``ATEN_CPU_CAPABILITY=avx2``; "" for the first."""
        variables = [f"{k}={v}" for k, v in self.variables.items()]
        after = ["--", *self.pytest] if self.pytest else []
        return " ".join([*variables, shlex.join([*self.before, *self.nox, *after])]).strip()


FOUR_THREADS = {"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "4"}
BARE = {"PYTHONDONTWRITEBYTECODE": "1", "CCACHE_DISABLE": "1"}
# A small /tmp: the files that the suite and the tests write there must fit.
SMALL_TMP = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=64m tmpfs /tmp && exec "$@"', "sh")

# Variations that act on different parts, CPU's kernels, the device, the processes, share a setting, since each costs
# the full tier of two versions.
SETTINGS = (
    Setting("as it is"),
    Setting("AVX2 kernels", {"ATEN_CPU_CAPABILITY": "avx2"}),
    Setting("baseline kernels", {"ATEN_CPU_CAPABILITY": "default"}),
    Setting("four threads, four jobs, shuffled", FOUR_THREADS, pytest=("--jobs", "4", "-p", "tools.settings.shuffled")),
    Setting("one core, no byte code, small /tmp", BARE, ("taskset", "-c", "0", *SMALL_TMP), pytest=("--jobs", "1")),
    Setting(
        "clang++, no oneDNN, pytest-xdist",
        {"CXX": "clang++", "CC": "clang"},
        pytest=("-p", "tools.settings.no_mkldnn", "-n", "2"),
    ),
    Setting("Python 3.12", nox=("--force-python", "3.12")),
)


@dataclass(frozen=True, slots=True)
class Difference:
    """Cells of a lane whose outcomes differ from the first setting in the same way."""

    before: str  # kind of outcome, e.g. "pass"
    after: str
    reason: str  # of the side that is unsupported
    cells: int
    example: str


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcome of a command in a setting."""

    setting: str
    typed: str
    command: str  # "tests", or a torch version whose lane ran
    exit: int
    total: int  # cells, or tests
    failing: int
    unsupported: int = 0
    machine: dict[str, str] = field(default_factory=lambda: {"cpu": ""})
    differences: tuple[Difference, ...] = ()
    date: str = ""  # of the run, YYYY-MM-DD in UTC: the numbers of cells and tests grow from day to day
    tier: str = ""  # of the cells

    @property
    def cpu(self) -> str:
        """The processor of the measurement."""
        return self.machine["cpu"]

    @property
    def kernels(self) -> tuple[str, str]:
        """The processor, and the instruction set of the kernels that torch ran on it."""
        return self.cpu, self.machine.get("cpu_capability", "")

    @staticmethod
    def from_json(record: dict[str, Any]) -> Measured:
        """Inverse of ``dataclasses.asdict``."""
        return Measured(**{**record, "differences": tuple(Difference(**d) for d in record["differences"])})
