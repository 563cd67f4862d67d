"""Failures as text: for a terminal, on one line, as Markdown. Only this room renders their facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from conformance.explain import mismatch_text
from conformance.layouts import CONTEXTS
from conformance.records import (
    ALONE,
    Boundary,
    CaseFailure,
    Death,
    DeathFinding,
    LeftOut,
    Observation,
    PlacedArgument,
    Repeats,
    Repetition,
)
from conformance.support import command_lines, markup
from conformance.vocabulary import SCENARIOS, CellId

# Failures -----------------------------------------------------------------------------------------------------------


def observation(seen: Observation, backend: str) -> str:
    """Return all failures of a cell with the commands that repeat them; without failures, the reason of its status.

    If the case that was repeated does not fail alone in each run, only this case and deaths have commands.
    """
    repeated = next((f for f in seen.failures if f.repetition), None)
    alone = repeated is None or repeated.setting == ALONE
    texts = [
        failure(f, seen.cell, seen.route, backend, repeats=alone or f is repeated or f.death is not None)
        for f in seen.failures
    ]
    return "\n\n".join(texts) or seen.reason or seen.signal or str(seen.status)


def failure(found: CaseFailure, cell: CellId, route: str, backend: str, *, repeats: bool = True) -> str:
    """Return one failing case: the call, its arguments, the findings or the death.

    If the case is known to repeat (``repeats``), add the commands that repeat it.
    """
    known = found.arguments or found.mismatches  # otherwise the record has nothing but the failure's own text
    lines = [head(found, cell, route), *_indented(body(found))] if known else body(found)
    if repeats and found.id and not found.older and not found.trouble:
        lines += [f"  {what}: {command}" for what, command in commands(found, backend).items()]
    return "\n".join(lines)


def commands(found: CaseFailure, backend: str) -> dict[str, str]:
    """Return the commands that repeat a failing case in the setting that it needs: by pytest, and as a script."""
    setting = found.setting
    made = {"repeat": command_lines.repeat(found.case, backend, setting.after, setting.runs)}
    scenarios = [one for one in setting.after if one.startswith(f"{SCENARIOS}/")]
    if not scenarios:  # a script cannot run a scenario before the case
        made["script"] = command_lines.script(found.case, backend, setting.after, setting.runs)
    return made


def head(found: CaseFailure, cell: CellId, route: str) -> str:
    """Return the call, ``masked_fill_.Scalar (native) in float32, layout expanded on mask``, or a scenario's name."""
    if cell.is_scenario:
        return f"scenario {cell.overload}"
    on = f" on {found.id.variant}" if found.id and found.id.variant else ""
    axis = "context" if cell.layout in CONTEXTS else "layout"
    return f"{cell.overload} ({route}) in {cell.dtype}, {axis} {cell.layout}{on}"


def body(found: CaseFailure) -> list[str]:
    """Return the lines of a failure without its head: arguments, findings, and the operators that ran."""
    return [*map(argument, found.arguments), *findings(found)]


def findings(found: CaseFailure) -> list[str]:
    """Return the lines of the findings and of the operators that ran."""
    if found.older:
        return found.older.split("\n")
    lines = [f"{m.check}: {mismatch_text.text(m)}" for m in found.mismatches]
    lines = [part for line in lines for part in line.split("\n")]
    lines += death(found.death) if found.death else []
    lines += [f"sizes: {boundary(found.boundary)}"] if found.boundary else []
    lines += [f"order: {said}"] if found.repetition and (said := repetition(found.repetition)) else []
    lines += [f"kernels: {kernels(found.calls)}"] if found.calls else []
    return [*lines, *(["the suite itself failed", *found.trouble.rstrip().split("\n")] if found.trouble else [])]


def boundary(found: Boundary) -> str:
    """Return the sizes at which a case fails, e.g. ``fails from 1025 on; 1024 passes``."""
    if found.modulus:
        which = "is a multiple" if found.multiples else "is no multiple"
        return f"fails where the size {which} of {found.modulus}, from {found.smallest} on"
    passes = f"; {found.passes} passes" if found.passes else ""
    if found.passing:
        return f"fails at {found.smallest} and {found.largest}, passes at {', '.join(map(str, found.passing))}{passes}"
    return f"fails from {found.smallest} on{passes}" if found.smallest > 1 else "fails at every size"


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def excerpt(seen: Observation) -> str:
    """Return the first finding of a cell, on one line."""
    if not seen.failures:
        return seen.reason or seen.signal or f"ends as {seen.status}"
    return first_line(seen.failures[0])


def first_line(found: CaseFailure) -> str:
    """Return the first finding of a case, on one line, without its check."""
    if found.mismatches:
        return mismatch_text.text(found.mismatches[0]).partition("\n")[0]
    if found.death:
        return death(found.death)[0]
    if found.trouble:
        return f"the suite itself failed: {found.trouble.rstrip().rpartition(chr(10))[2]}"
    return found.older.partition("\n")[0]


def ended(seen: Observation) -> str:
    """Return the first check and finding of a failing cell, for a list of known failures."""
    check = seen.failures[0].check if seen.failures else ""
    return f"{check}: {excerpt(seen)}" if check else excerpt(seen)


def markdown(seen: Observation, backend: str, longest: int) -> list[str]:
    """Return the text of :func:`observation`, at most ``longest`` characters, as a Markdown code block."""
    return markup.block(observation(seen, backend)[:longest])


def kernels(calls: Sequence[str]) -> str:
    """Return the operators that ran on the device, in order: ``clone -> empty_like -> copy_``."""
    return " -> ".join(calls)


# Arguments ----------------------------------------------------------------------------------------------------------


def argument(placed: PlacedArgument) -> str:
    """Return one argument; for a tensor: dtype, size, stride, offset and the length of its storage, in elements."""
    if not placed.is_tensor:
        return f"{placed.name}: {placed.text}"
    bit = f", {placed.bit} bit" if placed.bit else ""
    text = (
        f"{placed.name}: {placed.dtype} {placed.layout}: size {list(placed.size)}, stride {list(placed.stride)}, "
        f"offset {placed.offset}, storage {placed.storage}{bit}"
    )
    text += f", over the storage of {placed.shared_with}" if placed.shared_with else ""
    return text + (f", the same tensor as {placed.same_as}" if placed.same_as else "")


# Deaths -------------------------------------------------------------------------------------------------------------

_SIDES = {
    "cpu": "on the CPU side, which does not die when it runs alone: earlier calls on the device damaged memory",
    "device": "on the device side",
    "": "between cases",
}


def death(found: Death) -> list[str]:
    """Return the lines of a death: how the process ended and how often, then the sanitizer's report or the log."""
    what = f"died: {found.signal}" if found.signal else f"did not return within {found.seconds:g} s"
    first = f"the process {what}, {_SIDES.get(found.phase, found.phase)}"
    said = finding(found.finding) if found.finding else ""
    after = str(found.report) if found.report else found.log
    stacks = {"stack": found.stack, "Python": found.python}
    return [
        "; ".join(filter(None, (first, said))),
        *(after.split("\n") if after else []),
        *(f"{name}: {' < '.join(frames)}" for name, frames in stacks.items() if frames),
        *(["the last of these lines ran:", *_indented(found.lines)] if found.lines else []),
    ]


def repetition(found: Repetition) -> str:
    """Return the result of repeating a case that differs, on one line, "" if it differs each time."""
    if found.kind is Repeats.ORDERED:
        after = ", ".join(found.after)
        return f"fails only after {after}: {_of(found.confirmed)} runs, and {_of(found.alone)} without"
    if found.kind is Repeats.FLAKY:
        return f"fails in {_of(found.alone)} runs of the case alone, each in a fresh process"
    if found.left_out is LeftOut.TIME:
        return "not repeated alone: the time budget for failures is spent (--failure-budget)"
    if found.left_out is LeftOut.ORDER:
        return f"fails in {_of(found.alone)} runs alone; what ran before it was not repeated in the time budget"
    if found.left_out is LeftOut.REPEATED and found.like not in ("", Repeats.STEADY):
        return f"not repeated alone; another failure of the overload was, and is {found.like}"
    return ""


def finding(found: DeathFinding) -> str:
    """Return the result of repeating a crash, on one line, "" if it was not repeated."""
    alone = f"{found.alone[0]}/{found.alone[1]}"
    if found.kind == "steady":
        said = f"steady {alone}: alone in a fresh process, it dies each time"
    elif found.kind == "ordered" and found.after:
        said = (
            f"crashes only after {found.after}: {_of(found.confirmed)} fresh processes died so, and {alone} without it"
        )
    elif found.kind == "ordered":
        said = f"crashes only after what ran before it ({found.before} cells): {_of(found.again)}, and {alone} alone"
    elif found.kind == "flaky":
        more = f", and {_of(found.again)} after the {found.before} cells that ran before it" if found.again[1] else ""
        said = f"flaky {alone}: alone, {_of(found.alone)} fresh processes died{more}"
    else:
        said = f"alone, {_of(found.alone)} fresh processes died" if found.alone[1] else ""
    return "; ".join(filter(None, (said, _left_out(found))))


def _left_out(found: DeathFinding) -> str:
    if found.left_out is LeftOut.TIME:
        return "not repeated in fresh processes: the time budget for deaths is spent"
    if found.left_out is LeftOut.ORDER:
        return "what ran before it was not repeated: the time budget for deaths is spent"
    if found.left_out is LeftOut.REPEATED:
        return "not repeated in fresh processes: deaths like it were" + (f" ({found.like})" if found.like else "")
    return ""


def _of(counts: tuple[int, int]) -> str:
    return f"{counts[0]} of {counts[1]}"
