"""The faults that each item of a plan asks for while all faults are asleep. No other item can show a fault.

Other processes are not traced, so items that start processes are tried with each fault.

An item that only meets the effect of an earlier item, for example an entry of a cache, does not ask for the fault. So a
measurement may miss a kill, but it never reports a false kill.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path


class Reach:
    """The faults that each item asks for. Without ``asked`` nothing is known: every item may show every fault."""

    def __init__(self, asked: Mapping[str, AbstractSet[str]] | None = None) -> None:
        self._asked = asked

    def items(self, plan: Sequence[str], fault: str, untraced: Container[str] = ()) -> list[str]:
        """Return the items that may show the fault, in the order of the plan. ``untraced`` items may show any fault."""
        if self._asked is None:
            return list(plan)
        return [item for item in plan if item in untraced or fault in self._asked.get(item, ())]

    def save(self, file: Path) -> None:
        """Write the file. Many items ask for the same faults: each set is written once."""
        sets: dict[tuple[str, ...], int] = {}
        of = {item: sets.setdefault(tuple(sorted(faults)), len(sets)) for item, faults in (self._asked or {}).items()}
        file.write_text(json.dumps({"sets": list(sets), "of": of}), encoding="utf-8")

    @staticmethod
    def load(file: Path) -> Reach:
        """Return the faults that :meth:`save` wrote. Without a file, nothing is known."""
        if not file.is_file():
            return Reach()
        found = json.loads(file.read_text(encoding="utf-8"))
        sets = [frozenset(each) for each in found["sets"]]
        return Reach({item: sets[index] for item, index in found["of"].items()})
