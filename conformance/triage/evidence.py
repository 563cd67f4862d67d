"""What triage has seen, as frozen records: facts only, from which the verdicts are computed."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Found:
    """The first op of a run that went wrong. ``check`` is a Check's value, or "" where the process died or hung."""

    index: int  # of the program's calls that touch the device, from 0
    op: str
    check: str
    message: str
    where: str = ""  # the program's own line
    functorch: bool = False  # the call was made from within a functorch transform
    died: str = ""  # a signal's name, or "timeout"


@dataclass(frozen=True, slots=True)
class LaneRun:
    """One run of the program in one environment, each op watched."""

    lane: str
    found: Found | None
    ops: int  # watched
    unjudged: int = 0  # of these, without a comparison: arguments that cannot be copied to the CPU
    trouble: str = ""  # the program, or the watching, ended otherwise: how


@dataclass(frozen=True, slots=True)
class Kernel:
    """One dispatcher call inside the op, innermost last."""

    name: str
    inside: str  # the call that made it; "" for the outermost
    route: str


@dataclass(frozen=True, slots=True)
class CopyProbe:
    """The copy primitive by itself, with the op's own tensors: "right", "wrong" or the signal it died of."""

    as_they_lie: str
    contiguous: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Before:
    """What the calls before the op have to do with it, where the op alone is right. Pairs count (wrong, tries)."""

    calls: int  # before it, that could be made again
    cut: int = 0  # earlier ones, of which there was no room to keep the arguments
    missed: tuple[tuple[str, int], ...] = ()  # op -> calls among them that cannot be kept
    again: tuple[int, int] = (0, 0)  # of the op after all of them
    alone: tuple[int, int] = (0, 0)  # of the op made again without them
    needed: tuple[str, ...] = ()  # the ops after which it goes wrong
    confirmed: tuple[int, int] = (0, 0)  # of the op after these alone
    minimal: bool = False  # each of them was seen to be needed
    lanes: tuple[str, ...] = ()  # in which the op went wrong after these

    @property
    def sure(self) -> bool:
        """Whether the op went wrong each time after what is needed, and never alone."""
        return bool(self.needed) and self.confirmed[0] == self.confirmed[1] > 0 and not self.alone[0]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All of it. Mappings are tuples of pairs, in the order of the lanes."""

    runs: tuple[LaneRun, ...]
    alone: tuple[tuple[str, bool], ...] = ()  # lane -> whether the op alone, in a fresh process, goes wrong again
    kernels: tuple[Kernel, ...] = ()
    copy: CopyProbe | None = None
    allocator: tuple[tuple[str, str], ...] = ()  # lane -> what is wrong with blocks written end to end; "" if nothing
    threads: tuple[tuple[str, str], ...] = ()  # the same from several threads at once
    single_thread: LaneRun | None = None
    versions: tuple[tuple[str, bool], ...] = ()  # another torch -> whether the script goes wrong there too
    torch: str = ""
    notes: tuple[str, ...] = field(default=())
    before: Before | None = None

    @property
    def first(self) -> tuple[str, Found] | None:
        """The earliest op found in any lane, and the first lane that found it there: the culprit, not the victim."""
        found = [(run.lane, run.found) for run in self.runs if run.found]
        return min(found, key=lambda pair: pair[1].index) if found else None

    @property
    def elsewhere(self) -> bool:
        """Whether the damage is not in what the culprit returned, but in what it was given or never saw."""
        return self.first is not None and self.first[1].check in ("aliasing", "mutation", "untouched")

    @property
    def needed(self) -> tuple[str, ...]:
        """The ops before the culprit that make it go wrong, where these are known."""
        return self.before.needed if self.before and self.before.sure else ()

    @property
    def finding_lanes(self) -> tuple[str, ...]:
        """The lanes in which the very same op was the first."""
        first = self.first
        return tuple(r.lane for r in self.runs if first and r.found and r.found.index == first[1].index)
