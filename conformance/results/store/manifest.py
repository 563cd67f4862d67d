"""The manifest and the name of a run, and the error of reading results."""

from __future__ import annotations

import re
import secrets
from dataclasses import MISSING, dataclass, fields, replace
from datetime import datetime, timezone
from typing import Any

_RUN = re.compile(r"(?P<stamp>\d{8}T\d{6}Z)-(?P<series>.+)-(?P<token>[0-9a-f]{6})(?:-(?P<index>\d+)of(?P<count>\d+))?")
_STAMP = "%Y%m%dT%H%M%SZ"
PART = "part"


class StoreError(ValueError):
    """Results that cannot be read or written. The message is one line and names the file."""


# Fields about the machine and its configuration. They may differ between the shards of a run.
MACHINE = ("cpu", "cpu_capability", "mkldnn", "libc", "libm", "cxx")

_KINDS: dict[str, tuple[type, ...]] = {  # the types of a field in JSON, by its annotation
    "str": (str,), "int": (int,), "bool": (bool,), "tuple[str, ...]": (list, tuple),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Manifest:
    """The facts of a run that are known before its first cell runs."""

    lane: str
    backend: str
    collected: int  # cells
    complete: bool  # every cell of the lane was selected: no -k, no --dtypes, …; for a shard: by all shards together
    torch: str
    environment: str
    build: str
    python: str
    compiler: str
    backend_commit: str
    corpus: str  # its content hash
    tier: str
    seed: int
    arguments: tuple[str, ...] = ()  # pytest's arguments
    cells: str = ""  # a hash of the ids of the collected cells
    run: str = ""  # the run's name, see run_name
    cpu: str = ""  # the processor's model
    cpu_capability: str = ""  # the variant of torch's CPU kernels: "AVX512", see ATEN_CPU_CAPABILITY
    mkldnn: str = ""  # whether CPU kernels may use oneDNN: "on", "off"
    threads: int = 0  # number of threads of the CPU kernels
    libc: str = ""  # "glibc 2.36"
    libm: str = ""  # the first digits of a hash of libm, whose builds round differently
    cxx: str = ""  # the C++ compiler of torch.compile, with its version and the flags of the environment
    torch_commit: str = ""  # the commit of torch
    shard: str = ""  # "2/4" for the second of four, "" for a run that is not split
    expected: str = ""  # the named file of known failures, absolute or relative to the current directory
    split_by: str = ""  # for a shard: the run whose durations split the cells; "" for typical durations
    backend_option: str = ""  # the backend as --backend takes it, e.g. "my_backend:mydev"; "" in older runs

    @property
    def series(self) -> str:
        """The run's series, see :func:`series_name`."""
        return series_of(self.run) or self.lane

    @property
    def every_cell(self) -> bool:
        """Whether every cell of the lane was selected, or every cell of another tier than the lane's."""
        return self.complete or self.series == series_name(self.lane, complete=False, tier=self.tier)

    @property
    def backend_for_commands(self) -> str:
        """The backend as an argument of the commands that the run's end and its reports print."""
        return self.backend_option or self.backend

    @staticmethod
    def from_json(record: dict[str, Any], where: str) -> Manifest:
        """Inverse of ``asdict``. Raises StoreError for missing, unknown and wrong fields; it begins with ``where``."""
        known = {f.name: str(f.type) for f in fields(Manifest)}
        needed = {f.name for f in fields(Manifest) if f.default is MISSING}
        wrong = (record.keys() - known) | (needed - set(record))
        if wrong:
            raise StoreError(f"{where}: fields differ from a manifest's: {', '.join(sorted(wrong))}")
        for name, value in record.items():
            if not isinstance(value, _KINDS[known[name]]):
                raise StoreError(f"{where}: {name} is {value!r}; expected a value of type {known[name]}")
        return Manifest(**{**record, "arguments": tuple(record.get("arguments", ()))})


def run_name(series: str, at: datetime | None = None, token: str = "") -> str:
    """Return the name of a run: ``20260131T040000Z-demo-torch2.8-malloc-release-3fa9c1``.

    It consists of date, series and a random token. So names sort by date and are unique.
    """
    at = (at or datetime.now(timezone.utc)).astimezone(timezone.utc)
    return f"{at.strftime(_STAMP)}-{series}-{token or secrets.token_hex(3)}"


def as_shard(manifest: Manifest, shard: str, split_by: str) -> Manifest:
    """Return the manifest of a shard of the run. Its name ends in the shard: ``...-3fa9c1-2of4``."""
    return replace(manifest, shard=shard, split_by=split_by, run=f"{manifest.run}-{shard.replace('/', 'of')}")


def shard_of(run: str) -> str:
    """Return the shard in a run's name, e.g. ``2/4``; "" if it is not split, or the text is not a run's name."""
    found = _RUN.fullmatch(run)
    return f"{found['index']}/{found['count']}" if found and found["index"] else ""


def series_of(run: str) -> str | None:
    """Return the series in a run's name, None if the text is not a run's name."""
    found = _RUN.fullmatch(run)
    return found["series"] if found else None


def series_name(lane: str, *, complete: bool, tier: str = "") -> str:
    """Return the series of a run: runs of a series follow each other and are compared with each other.

    A series is the lane itself for runs of all its cells, ``LANE+smoke`` for runs of all cells of another ``tier`` than
    the lane's, and ``LANE+part`` for runs of some cells, whose ``tier`` is "" here.
    """
    return lane if complete else f"{lane}+{tier or PART}"


def lane_of(series: str) -> str:
    """Return the lane of a series."""
    return series.partition("+")[0]


def began(run: str) -> datetime | None:
    """Return the start of a run by its name, in UTC, None if the text is not a run's name."""
    found = _RUN.fullmatch(run)
    return datetime.strptime(found["stamp"], _STAMP).replace(tzinfo=timezone.utc) if found else None
