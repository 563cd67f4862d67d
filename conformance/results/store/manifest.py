"""What a run was, as known before its first cell; how a run is named; the error of everything that reads results."""

from __future__ import annotations

import re
import secrets
from dataclasses import MISSING, dataclass, fields, replace
from datetime import datetime, timezone
from typing import Any

_RUN = re.compile(r"(?P<stamp>\d{8}T\d{6}Z)-(?P<lane>.+)-(?P<token>[0-9a-f]{6})(?:-(?P<index>\d+)of(?P<count>\d+))?")
_STAMP = "%Y%m%dT%H%M%SZ"


class StoreError(ValueError):
    """Results that cannot be read, or not be written; the message is one line and names the file."""


# Fields that say on what machine, and how set up, a run was made. They may differ between the shards of a run.
MACHINE = ("cpu", "cpu_capability", "mkldnn", "libc", "libm")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run was: written before the first cell runs, so only what is known by then."""

    lane: str
    backend: str
    collected: int  # cells
    complete: bool  # every cell of the lane was asked for: no -k, no --dtypes, tier full; of a shard: by all of them
    torch: str
    environment: str
    build: str
    python: str
    compiler: str
    backend_commit: str
    corpus: str  # its content hash
    tier: str
    seed: int
    arguments: tuple[str, ...] = ()  # pytest's, as given
    cells: str = ""  # a hash of the ids of the cells collected
    run: str = ""  # the run's name, see run_name
    cpu: str = ""  # the processor's model
    cpu_capability: str = ""  # of torch's CPU kernels, those that ran: "AVX512", see ATEN_CPU_CAPABILITY
    mkldnn: str = ""  # whether CPU kernels may go through oneDNN: "on", "off"
    threads: int = 0  # in which CPU kernels compute
    libc: str = ""  # "glibc 2.36"
    libm: str = ""  # the first digits of a hash of the C library of mathematics, whose builds round differently
    torch_commit: str = ""  # that torch was built from
    shard: str = ""  # "2/4" for the second of four, "" for a run that was not split
    expected: str = ""  # the file of known failures that was named, below the current directory or absolute
    split_by: str = ""  # of a shard: the run whose durations split the cells, "" where their numbers of cases did

    @staticmethod
    def from_json(record: dict[str, Any], where: str) -> Manifest:
        """Inverse of ``asdict``. Raises StoreError that lists the fields that differ; ``where`` begins it."""
        known = {f.name for f in fields(Manifest)}
        needed = {f.name for f in fields(Manifest) if f.default is MISSING}
        wrong = (set(record) - known) | (needed - set(record))
        if wrong:
            raise StoreError(f"{where}: fields differ from a manifest's: {', '.join(sorted(wrong))}")
        return Manifest(**{**record, "arguments": tuple(record.get("arguments", ()))})


def run_name(lane: str, at: datetime | None = None, token: str = "") -> str:
    """Date, lane and something unique, e.g. ``20260131T040000Z-demo-torch2.8-malloc-release-3fa9c1``.

    Names sort by date; no two runs have the same one.
    """
    at = (at or datetime.now(timezone.utc)).astimezone(timezone.utc)
    return f"{at.strftime(_STAMP)}-{lane}-{token or secrets.token_hex(3)}"


def as_shard(manifest: Manifest, shard: str, split_by: str) -> Manifest:
    """The same run as one of several shards; its name says so, e.g. ``...-3fa9c1-2of4``."""
    return replace(manifest, shard=shard, split_by=split_by, run=f"{manifest.run}-{shard.replace('/', 'of')}")


def shard_of(run: str) -> str:
    """The shard in a run's name, e.g. ``2/4``; "" for a run that was not split, and for a text that is no name."""
    found = _RUN.fullmatch(run)
    return f"{found['index']}/{found['count']}" if found and found["index"] else ""


def lane_of(run: str) -> str | None:
    """The lane in a run's name; None for a text that is no run's name."""
    found = _RUN.fullmatch(run)
    return found["lane"] if found else None


def began(run: str) -> datetime | None:
    """When the run of this name began, UTC; None for a text that is no run's name."""
    found = _RUN.fullmatch(run)
    return datetime.strptime(found["stamp"], _STAMP).replace(tzinfo=timezone.utc) if found else None
