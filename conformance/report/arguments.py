"""The arguments of a failing case, read back from its message: where each tensor lies in its storage."""

from __future__ import annotations

import re
from typing import Any

from conformance import layouts
from conformance.layouts import Placement

# As describe.figures writes them.
_TENSOR = re.compile(
    r"(?P<name>.+?): (?P<dtype>\w+) (?P<layout>\w+): size \[(?P<size>[\d, ]*)\], stride \[(?P<stride>[\d, ]*)\], "
    r"offset (?P<offset>\d{1,15}), storage (?P<storage>\d{1,15})(?:, (?P<bit>conj|neg) bit)?"
    r"(?:, over the storage of (?P<over>.+?))?(?:, the same tensor as (?P<same>.+))?"
)
_COMMANDS = {"  repeat: ": "repeat", "  script: ": "script"}
# As compare.py writes of a tensor's elements, and of the bytes of its storage.
_ELEMENT = re.compile(r"first at \[(?P<index>\d{1,9}(?:, \d{1,9})*)\]")
_BYTE = re.compile(r"first at byte (?P<byte>\d{1,15}) of (?P<of>\d{1,15})\b")
_DIGITS = 15  # what a browser's numbers hold exactly
# What a layout is shown on where the shapes are not known.
_EXAMPLES = ((3, 4), (2, 3, 2, 2), (4,))


def parts(message: str, case: str) -> dict[str, Any]:
    """A message in its parts: ``head``, ``arguments`` (text, and ``tensor`` where it is one), ``said``, commands.

    A message that is none of :func:`describe.failure`, such as that of a crash, is all ``head`` and ``said``.
    """
    head, *lines = message.split("\n")
    found: dict[str, Any] = {"head": head, "arguments": [], "said": [], "repeat": "", "script": ""}
    tail = {name: line[len(mark) :] for line in lines for mark, name in _COMMANDS.items() if line.startswith(mark)}
    if set(tail) != set(_COMMANDS.values()):
        return found | {"said": lines}
    rest = [line for line in lines if not line.startswith(tuple(_COMMANDS))]
    count = _count(rest)
    arguments = [_argument(line[2:], case) for line in rest[:count]]
    said = [line.removeprefix("  ") for line in rest[count:]]
    for tensor in (a["tensor"] for a in arguments if "tensor" in a):
        tensor["wrong"] = _wrong(tensor, said)
    return found | tail | {"arguments": arguments, "said": said}


def example(layout: str) -> dict[str, Any] | None:
    """A tensor in this layout, for a case whose message does not say how its arguments lie."""
    if layout not in layouts.PLACERS:
        return None
    placed = next((p for shape in _EXAMPLES if (p := layouts.place(layout, shape))), None)
    return _tensor(layout, placed) if placed else None


def _tensor(name: str, p: Placement) -> dict[str, Any]:
    return {
        "name": name, "layout": p.layout, "size": list(p.size), "stride": list(p.stride), "offset": p.offset,
        "storage": p.storage, "bit": p.bit,
    }  # fmt: skip


def _count(lines: list[str]) -> int:
    """How many lines are arguments: up to the first that begins with the name of a check."""
    from conformance.vocabulary import Check

    checks = tuple(f"  {check}: " for check in Check)
    return next((n for n, line in enumerate(lines) if line.startswith(checks) and not _read(line[2:])), len(lines))


def _argument(line: str, case: str) -> dict[str, Any]:
    tensor = _read(line)
    if tensor and tensor.get("over") and _overlaps(case):
        tensor["offset"] += 1  # an overlapping view begins one element later, see cases.py
    return {"text": line, "tensor": tensor} if tensor else {"text": line}


def _wrong(tensor: dict[str, Any], said: list[str]) -> list[int]:
    """Where in the tensor's storage the first elements lie that the message calls wrong."""
    found = set()
    for line in said:
        _, _, rest = line.partition(": ")
        if not rest.startswith(f"{tensor['name']}: "):
            continue
        if element := _ELEMENT.search(rest):
            index = [int(i) for i in element["index"].split(", ")]
            if len(index) == len(tensor["stride"]):
                found.add(tensor["offset"] + sum(i * s for i, s in zip(index, tensor["stride"])))
        elif (byte := _BYTE.search(rest)) and int(byte["of"]):
            found.add(int(byte["byte"]) * tensor["storage"] // int(byte["of"]))
    return sorted(found)


def _overlaps(case: str) -> bool:
    return "~" in case.rpartition("@")[2]


def _read(line: str) -> dict[str, Any] | None:
    found = _TENSOR.fullmatch(line)
    if not found:
        return None
    size, stride = (_integers(found[name]) for name in ("size", "stride"))
    if size is None or stride is None or len(size) != len(stride):
        return None
    facts: dict[str, Any] = {name: found[name] or "" for name in ("name", "dtype", "layout", "bit", "over", "same")}
    return facts | {"size": size, "stride": stride, "offset": int(found["offset"]), "storage": int(found["storage"])}


def _integers(text: str) -> list[int] | None:
    words = text.split(", ") if text else []
    return [int(word) for word in words] if all(w.isdigit() and len(w) <= _DIGITS for w in words) else None
