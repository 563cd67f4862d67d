"""The records of a measured run: sizes, limits of the machine, times of each case. No torch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from conformance.vocabulary import Word


class Size(Word):
    """The size of a case. ``elements``: the approximate number of elements of its largest tensor."""

    SMALL = "small", "about 100 elements: what a call costs whatever its size"
    MEDIUM = "medium", "about 100,000 elements"
    LARGE = "large", "about 2,000,000 elements"

    @property
    def elements(self) -> int:
        return {"small": 100, "medium": 100_000, "large": 2_000_000}[self.value]


class End(Word):
    """How the measurement of a case ended. Every case has exactly one of these."""

    MEASURED = "measured", "its calls were timed on both sides"
    UNSUPPORTED = "unsupported", "the device raised an error where CPU did not"
    UNSUITABLE = "unsuitable", "no sample can be called again and again at this size and dtype on CPU"
    CRASH = "crash", "the process died in a call"
    TIMEOUT = "timeout", "the process took longer than allowed, and was killed"
    ERROR = "error", "the suite itself failed"
    NOT_REACHED = "not_reached", "the run was interrupted before"


@dataclass(frozen=True, slots=True)
class Key:
    """The identity of a case in all runs."""

    overload: str
    dtype: str
    size: Size

    def __str__(self) -> str:
        return f"{self.overload}[{self.dtype}-{self.size}]"


@dataclass(frozen=True, slots=True)
class Round:
    """The blocks of calls of one process. Each tuple has a number for each block, in seconds per call.

    ``host``: until the device's calls returned; ``device``: until their work was done. CPU's blocks and the device's
    blocks take turns, so that other load of the machine slows both.
    """

    calls: int  # calls in a block of the device
    host: tuple[float, ...]
    device: tuple[float, ...]
    cpu: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """The device's time over CPU's, block by block."""
        return tuple(d / c for d, c in zip(self.device, self.cpu, strict=True))


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a call, as far as its arguments and results show it. Sizes are in bytes.

    A view reads and writes nothing. ``flops`` is None if torch has no formula. ``copied``: the bytes that a fallback
    copies: the storages of its arguments to the host, the written and returned storages to the device.
    """

    elements: int  # of the largest argument or result
    read: int
    written: int
    flops: int | None = None
    copied: int = 0
    native_calls: int | None = None  # of kernels in one call, as the backend counts them; None if it does not
    fallback_calls: int | None = None

    @property
    def bytes(self) -> int:
        return self.read + self.written


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some times, and their quartiles, in seconds."""

    median: float
    low: float
    high: float
    n: int

    @staticmethod
    def of(times: Iterable[float]) -> Spread:
        """Return the spread of some times. Raises ValueError if there are no times."""
        found = sorted(times)
        if not found:
            raise ValueError("no times to summarize")
        low, _, high = statistics.quantiles(found, n=4, method="inclusive") if len(found) > 1 else found * 3
        return Spread(statistics.median(found), low, high, len(found))


@dataclass(frozen=True, slots=True)
class Record:
    """One case: an overload in a dtype at a size. Without ``rounds`` and ``work`` unless it was measured."""

    key: Key
    route: str
    end: End
    reason: str = ""  # why it was not measured
    sample: str = ""
    shapes: tuple[tuple[int, ...], ...] = ()  # of the tensor arguments
    work: Work | None = None
    rounds: tuple[Round, ...] = ()

    @property
    def device(self) -> Spread:
        """Seconds per call until its work is done."""
        return Spread.of(t for r in self.rounds for t in r.device)

    @property
    def host(self) -> Spread:
        """Seconds until a call returns."""
        return Spread.of(t for r in self.rounds for t in r.host)

    @property
    def cpu(self) -> Spread:
        """Seconds per call on CPU."""
        return Spread.of(t for r in self.rounds for t in r.cpu)

    @property
    def ratio(self) -> float:
        """The device's time over CPU's: the median of the rounds' medians, each over the ratios of its blocks."""
        return statistics.median(statistics.median(r.ratios) for r in self.rounds)

    @property
    def is_measured(self) -> bool:
        return self.end is End.MEASURED

    def to_json(self) -> dict[str, Any]:
        """Return the record for JSON, with its medians and quartiles, which :meth:`from_json` ignores."""
        spreads = {name: asdict(getattr(self, name)) for name in ("host", "device", "cpu")} if self.rounds else {}
        return {
            "overload": self.key.overload, "dtype": self.key.dtype, "size": self.key.size.value, "route": self.route,
            "end": self.end.value, "reason": self.reason, "sample": self.sample,
            "shapes": [list(shape) for shape in self.shapes], "work": asdict(self.work) if self.work else None,
            "rounds": [asdict(r) for r in self.rounds], "seconds": spreads,
        }  # fmt: skip

    @staticmethod
    def from_json(made: Mapping[str, Any]) -> Record:
        """Inverse of :meth:`to_json`. Raises KeyError, TypeError or ValueError."""
        return Record(
            Key(made["overload"], made["dtype"], Size(made["size"])), made["route"], End(made["end"]), made["reason"],
            made["sample"], tuple(tuple(shape) for shape in made["shapes"]),
            Work(**made["work"]) if made["work"] else None, tuple(map(round_from, made["rounds"])),
        )  # fmt: skip


def round_from(made: Mapping[str, Any]) -> Round:
    """Return a round from its JSON object. Raises KeyError, TypeError or ValueError, also for unequal list lengths."""
    times = [tuple(map(float, made[name])) for name in ("host", "device", "cpu")]
    if len({len(t) for t in times}) != 1 or not times[0]:
        raise ValueError("a round has as many blocks on the host, the device and CPU, and at least one")
    if not all(math.isfinite(t) and t > 0 for of in times for t in of):
        raise ValueError("the times of a round are positive numbers")
    return Round(int(made["calls"]), *times)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one side of the machine. A limit is None if it could not be measured."""

    bandwidth: float | None = None  # bytes a second that a large copy reads and writes
    flops: float | None = None  # floating-point operations a second of a large matrix product
    launch: float | None = None  # seconds of the copy of one element

    @staticmethod
    def median(found: Sequence[Limits]) -> Limits:
        """Return the median of each limit over several processes."""
        values = {f.name: [v for one in found if (v := getattr(one, f.name))] for f in fields(Limits)}
        return Limits(**{name: statistics.median(of) if of else None for name, of in values.items()})


@dataclass(frozen=True, slots=True)
class Machine:
    """The limits of both sides."""

    device: Limits = Limits()
    cpu: Limits = Limits()

    @staticmethod
    def from_json(made: Mapping[str, Any]) -> Machine:
        """Inverse of ``asdict``. Raises KeyError or TypeError."""
        return Machine(Limits(**made["device"]), Limits(**made["cpu"]))
