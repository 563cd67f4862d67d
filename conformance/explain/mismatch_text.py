"""Findings as text: the differences between the device and CPU."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from conformance.explain import pattern_text
from conformance.records import Mismatch
from conformance.vocabulary import Check, Fact

Facts = Mapping[str, Any]


def text(found: Mismatch) -> str:
    """Return one finding without its check, on one line. Leaks of host memory and programs have several lines."""
    render = _RENDERERS.get(found.kind)
    try:
        said = render(found) if render else json.dumps(dict(found.facts))
    except (KeyError, TypeError, ValueError):  # facts of another version of the suite
        said = json.dumps(dict(found.facts))
    return f"{found.subject}: {said}" if found.subject else said


def _elements(m: Mismatch) -> str:
    f = m.facts
    text = f"{f['wrong']} of {f['of']} elements differ, first at {f['index']}: device {f['device']}, CPU {f['cpu']}"
    text += f" (computed in {f['cpu_dtype']})" if "cpu_dtype" in f else ""
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
    own = f"allowed: {bound['multiple']:g} x CPU's own distance from float64"
    text = f"{own} + {bound['ulps']:g} ULP of {bound['dtype']}"
    if bound.get("steps"):
        text = f"{own} + {bound['steps']:g} ULP of {bound['dtype']}"
        text += f", or {bound['ulps']:g} ULP of float32" if bound["magnitude"] or bound["accumulates"] else ""
    if bound["magnitude"]:
        return f"{text} of {float(bound['magnitude']):g}, the largest of the arguments"
    if not bound["accumulates"]:
        return text
    neighbours = bound.get("neighbours")
    most = f", at most {neighbours:g} times this one" if neighbours else ""
    return f"{text} of the largest element{most}, {bound['terms']} terms"


_PROPERTIES = {"conj": "conj bit", "neg": "neg bit", "zero": "zero bit", "offset": "storage offset"}


def _metadata(m: Mismatch) -> str:
    what = m.facts["what"]
    refused = ", although the call is refused" if m.facts.get("refused") else ""
    return f"{_PROPERTIES.get(what, what)} is {m.facts['device']} on the device, {m.facts['cpu']} on CPU{refused}"


def _bytes(m: Mismatch) -> str:
    f = m.facts
    unmarked = "of an argument that the schema does not mark as written "
    where = "outside the view " if m.check is Check.UNTOUCHED else "" if f.get("refused") else unmarked
    refused = " although the call is refused" if f.get("refused") else ""
    at = f"first at byte {f['byte']} of {f['of']}: 0x{f['device']:02x}, not 0x{f['before']:02x}"
    return f"{f['bytes']} bytes {where}changed{refused}, {at}"


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
    byte, difference = m.facts["byte"], m.facts.get("difference")
    if difference is None:
        return f"other bits when fresh device memory holds 0x{byte:02X}"
    wrong = text(Mismatch(Check.VALUE, "", difference))
    return f"the values follow what fresh device memory holds, 0x{byte:02X} in this call: {wrong}"


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


def _unrelated_draws(m: Mismatch) -> str:
    f = m.facts
    terms = [f"{f['multiple']:g}" if isinstance(f["multiple"], float) else str(f["multiple"]), f["factor"], "this"]
    product = " x ".join(term for term in terms if term)
    count = f"{f['wrong']} of {f['of']} elements do not belong to {f['other']}, which is {product} on CPU"
    return f"{count}: at {f['index']} this is {f['device']}, and {f['other']} is {f['device_other']}"


def _program(m: Mismatch) -> str:
    f = m.facts
    which = "the marked line" if f["at"] >= 0 else "one of these lines"
    said = f"{which} {_raised(f['error'])}" if f["error"] else f"{which} does not hold"
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
    Fact.ROUNDING: lambda m: (
        f"all {m.facts['of']} elements are rounded {m.facts['direction']}: by {m.facts['mean']:.2f} units in the last "
        f"place in the mean, on CPU by {m.facts['cpu']:.2f}"
    ),
    Fact.PHASES: lambda m: (
        f"the vector at {m.facts['index']} has another phase than that of {m.facts['other']}, so that their product is "
        "not CPU's"
    ),
    Fact.TURNED: lambda m: (
        f"the vector at {m.facts['index']} is {m.facts['distance']:.3g} of its length from CPU's, whatever its phase; "
        f"allowed: {m.facts['allowed']:.3g}"
    ),
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
    Fact.STORAGE: lambda m: (
        f"lies in a storage of {m.facts['device']:,} bytes on the device, of {m.facts['cpu']:,} on CPU"
    ),
    Fact.ALIASING: _aliasing,
    Fact.IDENTITY: _identity,
    Fact.SHARED_RESULTS: _aliasing,
    Fact.NEW_STORAGE: lambda _: "lies in a new storage: tensors that shared the old one do not see what is written",
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
    Fact.UNRELATED_DRAWS: _unrelated_draws,
    Fact.SAME_STREAM: lambda m: f"{m.facts['calls']} calls gave the same draws, with no seed between them",
    Fact.CONTEXT: lambda m: str(m.facts["broken"]),
    Fact.ROUTE: _route,
    Fact.PROGRAM: _program,
    Fact.STATE: _state,
}
