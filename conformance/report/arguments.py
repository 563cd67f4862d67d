"""The arguments of a failing case as the page draws them: each tensor in its storage, the wrong elements marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from conformance import layouts
from conformance.records import Mismatch, PlacedArgument
from conformance.vocabulary import Fact

# What a layout is shown on where the shapes are not known.
_EXAMPLES = ((3, 4), (2, 3, 2, 2), (4,))


def drawn(argument: PlacedArgument, mismatches: Iterable[Mismatch]) -> dict[str, Any]:
    """A tensor's figures and ``wrong``, the positions in its storage of the first elements found wrong; or a text."""
    if not argument.is_tensor:
        return {"name": argument.name, "text": argument.text}
    own = (m.facts for m in mismatches if m.subject == argument.name)
    wrong = {at for facts in own if (at := _position(argument, facts)) is not None}
    return {**asdict(argument), "wrong": sorted(wrong)}


def _position(tensor: PlacedArgument, facts: Mapping[str, Any]) -> int | None:
    """Where in the tensor's storage, in elements, the first wrong element or byte is; None where facts do not say."""
    if facts.get("kind") == Fact.ELEMENTS and len(facts["index"]) == len(tensor.stride):
        return int(tensor.offset + sum(i * s for i, s in zip(facts["index"], tensor.stride, strict=True)))
    if facts.get("kind") == Fact.BYTES and facts["of"]:
        return int(facts["byte"] * tensor.storage // facts["of"])
    return None


def example(layout: str) -> dict[str, Any] | None:
    """A tensor in this layout, for a case whose arguments are not known."""
    if layout not in layouts.PLACERS:
        return None
    p = next((p for shape in _EXAMPLES if (p := layouts.place(layout, shape))), None)
    return asdict(PlacedArgument(layout, "", p.layout, p.size, p.stride, p.offset, p.storage, p.bit)) if p else None
