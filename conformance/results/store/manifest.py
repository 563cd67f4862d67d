"""The manifest and the name of a run, and the error of reading results."""

from __future__ import annotations

import re
import secrets
from dataclasses import MISSING, dataclass, fields, replace
from datetime import datetime, timezone
from typing import Any

_RUN = re.compile(r"(?P<stamp>\d{8}T\d{6}Z)-(?P<lane>.+)-(?P<token>[0-9a-f]{6})(?:-(?P<index>\d+)of(?P<count>\d+))?")
_STAMP = "%Y%m%dT%H%M%SZ"


class StoreError(ValueError):
    """Results that cannot be read or written. The message is one line and names the file."""


# Fields about the machine and its configuration. They may differ between the shards of a run.
MACHINE = ("cpu", "cpu_capability", "mkldnn", "libc", "libm")


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
    arguments: tuple[str, ...] = ()  # those of pytest
    cells: str = ""  # a hash of the ids of the collected cells
    run: str = ""  # the run's name, see run_name
    cpu: str = ""  # the processor's model
    cpu_capability: str = ""  # the variant of torch's CPU kernels: "AVX512", see ATEN_CPU_CAPABILITY
    mkldnn: str = ""  # whether CPU kernels may use oneDNN: "on", "off"
    threads: int = 0  # number of threads of the CPU kernels
    libc: str = ""  # "glibc 2.36"
    libm: str = ""  # the first digits of a hash of libm, whose builds round differently
    torch_commit: str = ""  # the commit of torch
    shard: str = ""  # "2/4" for the second of four, "" for a run that is not split
    expected: str = ""  # the named file of known failures, absolute or relative to the current directory
    split_by: str = ""  # of a shard: the run whose durations split the cells; "": the numbers of cases did

    @staticmethod
    def from_json(record: dict[str, Any], where: str) -> Manifest:
        """Inverse of ``asdict``. Raises StoreError for missing and unknown fields. ``where`` begins the message."""
        known = {f.name for f in fields(Manifest)}
        needed = {f.name for f in fields(Manifest) if f.default is MISSING}
        wrong = (set(record) - known) | (needed - set(record))
        if wrong:
            raise StoreError(f"{where}: fields differ from a manifest's: {', '.join(sorted(wrong))}")
        return Manifest(**{**record, "arguments": tuple(record.get("arguments", ()))})


def run_name(lane: str, at: datetime | None = None, token: str = "") -> str:
    """Return the name of a run: ``20260131T040000Z-demo-torch2.8-malloc-release-3fa9c1``.

    It consists of date, lane and a random token. So names sort by date and are unique.
    """
    at = (at or datetime.now(timezone.utc)).astimezone(timezone.utc)
    return f"{at.strftime(_STAMP)}-{lane}-{token or secrets.token_hex(3)}"


def as_shard(manifest: Manifest, shard: str, split_by: str) -> Manifest:
    """Return the manifest of a shard of the run. Its name ends in the shard: ``...-3fa9c1-2of4``."""
    return replace(manifest, shard=shard, split_by=split_by, run=f"{manifest.run}-{shard.replace('/', 'of')}")


def shard_of(run: str) -> str:
    """Return the shard in a run's name, e.g. ``2/4``; "" if it is not split, or the text is not a run's name."""
    found = _RUN.fullmatch(run)
    return f"{found['index']}/{found['count']}" if found and found["index"] else ""


def lane_of(run: str) -> str | None:
    """Return the lane in a run's name, None if the text is not a run's name."""
    found = _RUN.fullmatch(run)
    return found["lane"] if found else None


def began(run: str) -> datetime | None:
    """Return the start of a run by its name, in UTC, None if the text is not a run's name."""
    found = _RUN.fullmatch(run)
    return datetime.strptime(found["stamp"], _STAMP).replace(tzinfo=timezone.utc) if found else None
