"""Failures as text: for a terminal, on one line, as Markdown. Only this module renders their facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from conformance.explain import pattern_text
from conformance.layouts import CONTEXTS
from conformance.records import (
    ALONE,
    Boundary,
    CaseFailure,
    Death,
    DeathFinding,
    LeftOut,
    Mismatch,
    Observation,
    PlacedArgument,
    Repeats,
    Repetition,
)
from conformance.support import command_lines, markup
from conformance.vocabulary import SCENARIOS, CellId, Check, Fact

Facts = Mapping[str, Any]

# Failures -----------------------------------------------------------------------------------------------------------


def observation(seen: Observation, backend: str) -> str:
    """Return all failures of a cell with the commands that repeat them; without failures, the reason of its status.

    Where the first case does not fail alone in each run, the others, which were not repeated, have no commands.
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

    Then the commands to repeat it, unless it is not known whether it ``repeats``.
    """
    known = found.arguments or found.mismatches  # else the failure is all that is known of the call
    lines = [head(found, cell, route), *_indented(body(found))] if known else body(found)
    if repeats and found.id and not found.older and not found.trouble:
        lines += [f"  {what}: {command}" for what, command in commands(found, backend).items()]
    return "\n".join(lines)


def commands(found: CaseFailure, backend: str) -> dict[str, str]:
    """Return the commands that repeat a failing case in the setting that it needs: by pytest, and as a script."""
    setting = found.setting
    made = {"repeat": command_lines.repeat(found.case, backend, setting.after, setting.runs)}
    scenarios = [one for one in setting.after if one.startswith(f"{SCENARIOS}/")]
    if not scenarios:  # a script has calls alone before the case
        made["script"] = command_lines.script(found.case, backend, setting.after, setting.runs)
    return made


def head(found: CaseFailure, cell: CellId, route: str) -> str:
    """Return the call: ``masked_fill_.Scalar (native) in float32, layout expanded on mask``; a scenario's name."""
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
    lines = [f"{m.check}: {mismatch(m)}" for m in found.mismatches]
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
        return mismatch(found.mismatches[0]).partition("\n")[0]
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


# Findings -----------------------------------------------------------------------------------------------------------


def mismatch(found: Mismatch) -> str:
    """Return one finding without its check, on one line. Only leaks of host memory have several lines."""
    render = _RENDERERS.get(found.kind)
    try:
        text = render(found) if render else json.dumps(dict(found.facts))
    except (KeyError, TypeError, ValueError):  # facts of another version of the suite
        text = json.dumps(dict(found.facts))
    return f"{found.subject}: {text}" if found.subject else text


def _elements(m: Mismatch) -> str:
    f = m.facts
    text = f"{f['wrong']} of {f['of']} elements differ, first at {f['index']}: device {f['device']}, CPU {f['cpu']}"
    text += f", float64 {f['float64']}" if "float64" in f else ""
    return "; ".join([text, *_pattern(f), f"distance {_distance(f)}", _bound(f["bound"])])


def _pattern(f: Facts) -> list[str]:
    found = pattern_text.text(f["pattern"]) if f.get("pattern") else ""
    return [f"wrong: {found}"] if found else []


def _distance(f: Facts) -> str:
    if "ulp" not in f:
        return str(f["absolute"])
    return f"{float(f['absolute']):.6g} ({float(f['ulp']):.3g} ULP)"


def _bound(bound: Facts) -> str:
    if bound["exact"]:
        if bound.get("spread"):
            return "must be equal, but for what rounding of the arguments moves"
        return "must be equal bit for bit" + ("" if bound["signed_zeros"] else " but for the sign of a zero")
    text = (
        f"allowed: {bound['multiple']:g} x CPU's own distance from float64 + {bound['ulps']:g} ULP of {bound['dtype']}"
    )
    if bound["magnitude"]:
        return f"{text} of {float(bound['magnitude']):g}, the largest of the arguments"
    return text + (f" of the largest element, {bound['terms']} terms" if bound["accumulates"] else "")


_PROPERTIES = {"conj": "conj bit", "neg": "neg bit", "zero": "zero bit", "offset": "storage offset"}


def _metadata(m: Mismatch) -> str:
    what = m.facts["what"]
    return f"{_PROPERTIES.get(what, what)} is {m.facts['device']} on the device, {m.facts['cpu']} on CPU"


def _bytes(m: Mismatch) -> str:
    f = m.facts
    where = (
        "outside the view" if m.check is Check.UNTOUCHED else "of an argument that the schema does not mark as written"
    )
    at = f"first at byte {f['byte']} of {f['of']}: 0x{f['device']:02x}, not 0x{f['before']:02x}"
    return f"{f['bytes']} bytes {where} changed, {at}"


def _errors(m: Mismatch) -> str:
    return f"the device {_raised(m.facts['device'])}; CPU {_raised(m.facts['cpu'])}"


def _raised(error: Mapping[str, str] | None) -> str:
    return f"raised {error['type']}: {error['message']}" if error else "raised nothing"


def _aliasing(m: Mismatch) -> str:
    return f"{_shares(m.facts['device'])} on the device, {_shares(m.facts['cpu'])} on CPU"


def _shares(name: str | None) -> str:
    return "has a storage of its own" if name is None else f"shares the storage of {name}"


def _identity(m: Mismatch) -> str:
    name = m.facts["argument"]
    kinds = {True: f"the argument {name} itself", False: f"another tensor over the storage of {name}"}
    return f"is {kinds[m.facts['device']]} on the device, {kinds[m.facts['cpu']]} on CPU"


def _given_twice(m: Mismatch) -> str:
    return f"was given memory that the {m.facts['tensor']} of {m.facts['call']} still occupies"


def _device_leak(m: Mismatch) -> str:
    blocks, size = m.facts["blocks"], m.facts["bytes"]
    return f"{blocks:+d} device blocks and {size:+d} bytes are live after the call, which should leave none"


def _host_leak(m: Mismatch) -> str:
    guilty = m.facts["guilty"]
    who = f"by {guilty}, also when it runs alone" if guilty else "by none of them when they run again"
    text = f"host memory was lost in the batch of {m.facts['cells']} cells that ends here, {who}:"
    return "\n  ".join([text, *map(_lost, m.facts["lost"])])


def _lost(one: Facts) -> str:
    if one.get("trouble"):
        return f"the search for leaks did not end: {one['trouble']}"
    at = " < ".join(one["at"]) or "an unknown place"
    return f"{one['bytes']} bytes in {one['objects']} host blocks, allocated at: {at}"


def _second_call(m: Mismatch) -> str:
    return f"the second call {_raised(m.facts['error'])}, the first did not raise"


def _fresh_memory(m: Mismatch) -> str:
    return f"other bits when fresh device memory holds 0x{m.facts['byte']:02X}"


def _draws(m: Mismatch) -> str:
    f = m.facts
    return (
        f"Kolmogorov-Smirnov distance {f['distance']:.3f} from CPU's draws, allowed {f['allowed']:.3f} "
        f"for {f['draws']} draws"
    )


def _stuck_draws(m: Mismatch) -> str:
    f = m.facts
    more = f" (and at {f['positions'] - 1} more)" if f["positions"] > 1 else ""
    drew = f"each of {f['draws']} calls drew {f['value']:g} at flat index {f['position']}{more}"
    return f"{drew}, CPU drew other values there {f['others']} times"


def _tied_draws(m: Mismatch) -> str:
    f = m.facts
    places = f"{f['first']} and {f['second']}"
    what = "one value" if f["length"] == 1 else f"the same {f['length']} values"
    where = f"at flat indices {places}" if f["length"] == 1 else f"from flat indices {places} on"
    return f"each of {f['calls']} calls drew {what} {where}, where CPU's draws differ in {f['unequal']} calls"


def _repeated_block(m: Mismatch) -> str:
    f = m.facts
    apart = f["calls_apart"]
    call = {0: "the same call", 1: "the seed before"}.get(apart, f"the seed {apart} before")
    draws = f"the {f['length']} draws from flat index {f['second']} on repeat those from {f['first']} on of {call}"
    return f"{draws}, CPU repeats no block of this length"


def _program(m: Mismatch) -> str:
    f = m.facts
    said = f"the marked line {_raised(f['error'])}" if f["error"] else "the marked line does not hold"
    marked = (f"{'->' if i == f['at'] else '  '} {line}" for i, line in enumerate(f["lines"]))
    return "\n".join([f"{said}:", *marked])


def _state(m: Mismatch) -> str:
    f = m.facts
    if "before" not in f:
        return f"the call draws from {f['what']}, or seeds it"
    return f"the call changed {f['what']}: {f['before']} before, {f['after']} after"


def _route(m: Mismatch) -> str:
    if m.facts["registered"] == "native":
        return "registered natively, but no native kernel ran"
    return "served by the fallback, but the fallback did not run"


_RENDERERS: dict[str, Callable[[Mismatch], str]] = {
    Fact.ELEMENTS: _elements,
    Fact.METADATA: _metadata,
    Fact.PLAIN: lambda m: f"{m.facts['device']} on the device, {m.facts['cpu']} on CPU",
    Fact.BYTES: _bytes,
    Fact.COUNT: lambda m: f"the device returned {m.facts['device']} results, CPU {m.facts['cpu']}",
    Fact.DEVICE: lambda m: f"is on {m.facts['device']}, not on {m.facts['wanted']}",
    Fact.MEMORY_DEVICE: lambda m: f"says that it is on {m.facts['wanted']}, and has its memory on {m.facts['device']}",
    Fact.ERRORS: _errors,
    Fact.UNREADABLE: lambda m: f"the device {_raised(m.facts['device'])}, when the tensor was read after the call",
    Fact.DEVICE_LOST: lambda m: f"after the call raised, the device cannot be used: it {_raised(m.facts['device'])}",
    Fact.LATE_ERROR: lambda m: f"the device {_raised(m.facts['device'])}, when it was synchronized after the case",
    Fact.ALIASING: _aliasing,
    Fact.IDENTITY: _identity,
    Fact.SHARED_RESULTS: _aliasing,
    Fact.GIVEN_TWICE: _given_twice,
    Fact.VERSION: lambda m: f"version counter is {m.facts['device']} on the device, {m.facts['cpu']} on CPU",
    Fact.DAMAGE: lambda m: str(m.facts["line"]) if m.subject else f"no argument or result: {m.facts['line']}",
    Fact.DEVICE_LEAK: _device_leak,
    Fact.HOST_LEAK: _host_leak,
    Fact.SECOND_CALL_RAISED: _second_call,
    Fact.UNSTABLE: lambda _: "two calls with the same arguments gave different bits",
    Fact.FRESH_MEMORY: _fresh_memory,
    Fact.SAME_DRAWS: lambda m: f"{m.facts['seeds']} seeds gave the same draws",
    Fact.NAN_DRAWS: lambda _: "some draws are NaN",
    Fact.DRAWS: _draws,
    Fact.DRAWS_AT: lambda m: f"at flat index {m.facts['position']}: {_draws(m)}",
    Fact.REPEATED_DRAWS: lambda m: (
        f"a number is drawn twice in {m.facts['rows']} of {m.facts['of']} rows, never on CPU"
    ),
    Fact.STUCK_DRAWS: _stuck_draws,
    Fact.TIED_DRAWS: _tied_draws,
    Fact.REPEATED_BLOCK: _repeated_block,
    Fact.FOREIGN_DRAWS: lambda m: (
        f"{m.facts['calls']} of {m.facts['of']} calls drew a number that CPU did not draw in that row before; of CPU's "
        f"later calls {m.facts['cpu_calls']} of {m.facts['cpu_of']} did"
    ),
    Fact.SAME_STREAM: lambda m: f"{m.facts['calls']} calls gave the same draws, with no seed between them",
    Fact.CONTEXT: lambda m: str(m.facts["broken"]),
    Fact.ROUTE: _route,
    Fact.PROGRAM: _program,
    Fact.STATE: _state,
}
