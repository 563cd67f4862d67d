"""The arguments of a failing case as the page draws them: each tensor in its storage, the wrong elements marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from conformance import layouts
from conformance.records import Mismatch, PlacedArgument
from conformance.vocabulary import Fact

# The shapes that show a layout if the shapes of the arguments are not known.
_EXAMPLES = ((3, 4), (2, 3, 2, 2), (4,))


def drawn(argument: PlacedArgument, mismatches: Iterable[Mismatch]) -> dict[str, Any]:
    """Return the data that the page draws an argument from.

    For a tensor, ``wrong`` has the first wrong element of each mismatch, as a position in its storage.
    """
    if not argument.is_tensor:
        return {"name": argument.name, "text": argument.text}
    own = (m.facts for m in mismatches if m.subject == argument.name)
    wrong = {at for facts in own if (at := _position(argument, facts)) is not None}
    return {**asdict(argument), "wrong": sorted(wrong)}


def _position(tensor: PlacedArgument, facts: Mapping[str, Any]) -> int | None:
    """Return the first wrong element or byte as an element of the storage, None if the facts do not name it."""
    if facts.get("kind") == Fact.ELEMENTS and len(facts["index"]) == len(tensor.stride):
        return int(tensor.offset + sum(i * s for i, s in zip(facts["index"], tensor.stride, strict=True)))
    if facts.get("kind") == Fact.BYTES and facts["of"]:
        return int(facts["byte"] * tensor.storage // facts["of"])
    return None


def example(layout: str) -> dict[str, Any] | None:
    """Return a tensor in this layout, for a case whose arguments are not known, None if the layout places no tensor."""
    if layout not in layouts.PLACERS:
        return None
    p = next((p for shape in _EXAMPLES if (p := layouts.place(layout, shape))), None)
    return asdict(PlacedArgument(layout, "", p.layout, p.size, p.stride, p.offset, p.storage, p.bit)) if p else None
