"""The facts that triage has found, as frozen records. Conclusions are computed from them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Found:
    """The first op of a run that failed. ``check`` is a Check's value, or "" if the process died or hung."""

    index: int  # among the program's calls on the device, from 0
    op: str
    check: str
    message: str
    where: str = ""  # the line of the program
    functorch: bool = False  # the call was made within a functorch transform
    died: str = ""  # a signal's name, or "timeout"


@dataclass(frozen=True, slots=True)
class LaneRun:
    """One run of the program in one environment, in which every op is compared with CPU."""

    lane: str
    found: Found | None
    ops: int  # number of ops that ran
    unjudged: int = 0  # ops without a comparison, because their arguments cannot be copied to CPU
    trouble: str = ""  # the error of the program or of triage itself


@dataclass(frozen=True, slots=True)
class Kernel:
    """One dispatcher call inside the op, innermost last."""

    name: str
    inside: str  # the calling op, "" for the outermost
    route: str


@dataclass(frozen=True, slots=True)
class CopyProbe:
    """The results of the copy primitive alone, with the op's own tensors and with contiguous copies of them.

    A result is "right", "wrong", or how the process died: a signal's name or "timeout".
    """

    as_they_lie: str
    contiguous: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Before:
    """The calls before an op that is correct alone. Pairs are (failures, tries) of the op."""

    calls: int  # number of earlier calls that can be repeated
    cut: int = 0  # number of still earlier calls whose arguments were not recorded, because of the size limit
    missed: tuple[tuple[str, int], ...] = ()  # op -> number of calls that cannot be recorded
    again: tuple[int, int] = (0, 0)  # after all of these calls
    alone: tuple[int, int] = (0, 0)  # without earlier calls
    needed: tuple[str, ...] = ()  # the ops after which the op fails
    confirmed: tuple[int, int] = (0, 0)  # after the needed ops alone
    minimal: bool = False  # whether the op passes if any one of the needed ops is left out
    lanes: tuple[str, ...] = ()  # the lanes in which the op fails after the needed ops

    @property
    def sure(self) -> bool:
        """Whether the op failed each time after the needed ops, and never alone."""
        return bool(self.needed) and self.confirmed[0] == self.confirmed[1] > 0 and not self.alone[0]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All facts. Mappings are tuples of pairs, in the order of the lanes."""

    runs: tuple[LaneRun, ...]
    alone: tuple[tuple[str, bool], ...] = ()  # lane -> whether the op fails alone in a fresh process
    kernels: tuple[Kernel, ...] = ()
    copy: CopyProbe | None = None
    allocator: tuple[tuple[str, str], ...] = ()  # lane -> error of a test of memory blocks, "" if none
    threads: tuple[tuple[str, str], ...] = ()  # the same with several concurrent threads
    single_thread: LaneRun | None = None
    versions: tuple[tuple[str, bool], ...] = ()  # another torch -> whether the script fails there too
    torch: str = ""
    notes: tuple[str, ...] = field(default=())
    before: Before | None = None
    complete: bool = True  # whether triage ran to its end

    @property
    def first(self) -> tuple[str, Found] | None:
        """The earliest failing op of all lanes, and the first lane that found it. Later failures may follow from it."""
        found = [(run.lane, run.found) for run in self.runs if run.found]
        return min(found, key=lambda pair: pair[1].index) if found else None

    @property
    def troubled(self) -> tuple[LaneRun, ...]:
        """The runs that ended with an error outside of the compared ops, so that ops after it were not compared."""
        return tuple(run for run in self.runs if run.trouble)

    @property
    def ops(self) -> int:
        """The most ops that ran on the device in a run."""
        return max((run.ops for run in self.runs), default=0)

    @property
    def judged(self) -> bool:
        """Whether any op was compared with CPU."""
        return any(run.ops > run.unjudged for run in self.runs)

    @property
    def sound(self) -> bool:
        """Whether triage ran to its end, ops were compared, none failed, and the program ended well in every lane."""
        return self.complete and self.first is None and not self.troubled and self.judged

    @property
    def elsewhere(self) -> bool:
        """Whether the damage is in the culprit's arguments or other memory, not in its results."""
        return self.first is not None and self.first[1].check in ("aliasing", "mutation", "untouched")

    @property
    def needed(self) -> tuple[str, ...]:
        """The ops before the culprit that make it fail, if they are known."""
        return self.before.needed if self.before and self.before.sure else ()

    @property
    def finding_lanes(self) -> tuple[str, ...]:
        """The lanes in which the same op is the first to fail."""
        first = self.first
        return tuple(r.lane for r in self.runs if first and r.found and r.found.index == first[1].index)
