"""The rulings on the hypotheses about a failure, from the evidence. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from conformance.triage.evidence import Evidence, LaneRun
from conformance.triage.lanes import OWN

COPIES = ("_copy_from", "_copy_from_and_resize")
# Kernels that only create tensors, views or scalars. None of them moves values.
PLUMBING = ("empty.memory_format", "empty_strided", "as_strided", "view", "set_", "resize_", "empty", "item")


class Ruling(str, Enum):
    """The ruling on a hypothesis."""

    HOLDS = "holds"
    RULED_OUT = "ruled out"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """One hypothesis, the ruling, and the reasons."""

    hypothesis: str
    ruling: Ruling
    because: tuple[str, ...]


def conclusions(e: Evidence) -> tuple[Conclusion, ...]:
    """Return a conclusion for each hypothesis, in a fixed order; none if no run failed."""
    if e.first is None:
        return ()
    return (_copy(e), _allocator(e), _kernel(e), _functorch(e), _version(e), _threads(e))


def culprit(e: Evidence) -> str:
    """Return the faulty primitive, as far as it is known: the copy, the op's only kernel, or the op itself."""
    assert e.first is not None
    if _copy(e).ruling is Ruling.HOLDS:
        return next(k.name for k in e.kernels if k.name in COPIES)
    own = _own_kernels(e)
    return own[0] if len(own) == 1 else e.first[1].op


def _again(e: Evidence) -> tuple[str, ...]:
    return tuple(lane for lane, wrong in e.alone if wrong)


def _copy(e: Evidence) -> Conclusion:
    name = "copy"
    tried = [k.name for k in e.kernels if k.name in COPIES]
    if e.kernels and not tried:
        return Conclusion(name, Ruling.RULED_OUT, (f"the op does not copy: it calls {_names(e)}",))
    if e.copy is None or not tried:
        return Conclusion(name, Ruling.OPEN, ("the copy could not be tested alone",))
    lie, dense = e.copy.as_they_lie, e.copy.contiguous
    detail = (e.copy.detail,) if e.copy.detail else ()
    if lie != "right":
        text = f"{tried[0]} alone, with the op's own tensors and strides: {_said(lie)}"
        control = f"the same values in contiguous tensors: {_said(dense)}"
        return Conclusion(name, Ruling.HOLDS, (text, control, *detail))
    return Conclusion(name, Ruling.RULED_OUT, (f"{tried[0]} alone copies the op's own tensors correctly",))


def _allocator(e: Evidence) -> Conclusion:
    name = "allocator"
    bad = [f"{lane}: {text}" for lane, text in e.allocator if text]
    sound = [lane for lane, text in e.allocator if not text] if not bad else []
    again, after = _again(e), e.before.lanes if e.needed and e.before else ()
    if bad and len(again) < 2:
        text = "memory blocks that were written and read back have changed: " + "; ".join(bad)
        return Conclusion(name, Ruling.HOLDS, (text,))
    reasons = (
        (
            len(e.finding_lanes) > 1,
            f"the same op is the first to fail in these runs: {', '.join(e.finding_lanes)}",
        ),
        (again, f"the op fails again alone in a fresh process: {', '.join(again)}"),
        (after, f"{_after(e)}, repeated in a fresh process: {', '.join(after)}"),
        (sound, f"memory blocks of many sizes, written and read back, are intact: {', '.join(sound)}"),
    )
    because = tuple(text for holds, text in reasons if holds)
    in_several_lanes = len(after) > 1 or (again and max(len(e.finding_lanes), len(again)) > 1)
    if sound and in_several_lanes:
        return Conclusion(name, Ruling.RULED_OUT, because)
    return Conclusion(name, Ruling.OPEN, (*because, *bad) or ("no lane was comparable",))


def _kernel(e: Evidence) -> Conclusion:
    name = "a kernel"
    copy, again = _copy(e).ruling, _again(e)
    if copy is Ruling.HOLDS:
        return Conclusion(name, Ruling.RULED_OUT, ("the op's copy explains the failure",))
    own = _own_kernels(e)
    if again and copy is Ruling.RULED_OUT and _allocator(e).ruling is not Ruling.HOLDS:
        by = f"the op fails again alone ({', '.join(again)}), and copies are correct"
        return Conclusion(name, Ruling.HOLDS, (by, f"its kernels: {', '.join(own) or _names(e)}"))
    if e.alone and not again:
        more = _after(e) if e.needed else "the failure depends on earlier calls"
        return Conclusion(name, Ruling.OPEN, (f"the op alone is correct: {more}",))
    return Conclusion(name, Ruling.OPEN, ("not distinguished from the copy and the allocator",))


def _functorch(e: Evidence) -> Conclusion:
    assert e.first is not None
    found, again = e.first[1], _again(e)
    if again:
        why = "the op fails again alone, without any transform"
        return Conclusion("functorch interplay", Ruling.RULED_OUT, (why,))
    if not found.functorch:
        return Conclusion("functorch interplay", Ruling.RULED_OUT, ("the op was called outside any transform",))
    if e.needed:
        return Conclusion("functorch interplay", Ruling.RULED_OUT, (f"{_after(e)}, called without any transform",))
    return Conclusion(
        "functorch interplay", Ruling.OPEN, ("the op was called within a transform, and is correct alone",)
    )


def _version(e: Evidence) -> Conclusion:
    name = "torch version"
    if not e.versions:
        todo = f"only torch {e.torch} was tested; give an interpreter with another version with --python"
        return Conclusion(name, Ruling.OPEN, (todo,))
    right = [v for v, wrong in e.versions if not wrong]
    if right:
        return Conclusion(
            name, Ruling.HOLDS, (f"the script passes with torch {', '.join(right)} and fails with {e.torch}",)
        )
    others = ", ".join(v for v, _ in e.versions)
    return Conclusion(name, Ruling.RULED_OUT, (f"the script fails with torch {e.torch} and with {others}",))


def _threads(e: Evidence) -> Conclusion:
    assert e.first is not None
    name = "threads"
    alone = dict(e.allocator)
    bad = [f"{lane}: {text}" for lane, text in e.threads if text and not alone.get(lane)]  # intact with one thread
    if bad and not _again(e):
        return Conclusion(name, Ruling.HOLDS, ("memory blocks of several concurrent threads: " + "; ".join(bad),))
    if e.needed:
        return Conclusion(name, Ruling.RULED_OUT, (f"{_after(e)}, called by one thread",))
    return Conclusion(name, *_with_a_single_thread(e, e.first[1].index))


def _with_a_single_thread(e: Evidence, index: int) -> tuple[Ruling, tuple[str]]:
    """Return the ruling from the run with a single thread. ``index``: where the first failing op of other runs is."""
    if e.single_thread is None:
        return Ruling.OPEN, ("no run with a single thread",)
    if _same(e.single_thread, index):
        return Ruling.RULED_OUT, ("with a single thread the same op fails",)
    if e.single_thread.found or e.single_thread.trouble:
        return Ruling.OPEN, ("with a single thread another op is the first to fail",)
    if any(run.lane == OWN and run.found is None for run in e.runs):
        return Ruling.OPEN, ("without a lane's variables, nothing fails with several threads either",)
    return Ruling.HOLDS, ("with a single thread nothing fails",)


def _after(e: Evidence) -> str:
    return f"it fails again after {', '.join(e.needed)}"


def _same(run: LaneRun, index: int) -> bool:
    return run.found is not None and run.found.index == index


def _own_kernels(e: Evidence) -> list[str]:
    found = [k.name for k in e.kernels if k.route in ("native", "fallback")]
    return [n for n in dict.fromkeys(found) if n not in PLUMBING and n not in COPIES]


def _names(e: Evidence) -> str:
    return " -> ".join(dict.fromkeys(k.name for k in e.kernels))


def _said(outcome: str) -> str:
    return outcome if outcome in ("right", "wrong") else f"died of {outcome}"
