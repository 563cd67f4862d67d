"""The hidden comment in the body of an issue: a JSON record, since the tracker has no other place for our data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

_BEGIN, _END = "<!-- op-conformance ", " -->"


@dataclass(frozen=True, slots=True)
class Mark:
    """The record of an issue for the following nights."""

    families: frozenset[str] = frozenset()
    lanes: frozenset[str] = frozenset()  # in which the families fail
    content: str = ""  # a digest of the body, without the line that differs each night

    def comment(self) -> str:
        """Return the record as one line with an HTML comment."""
        record = {"families": sorted(self.families), "lanes": sorted(self.lanes), "content": self.content}
        # "--" would end the comment. Outside of strings JSON has none.
        return _BEGIN + json.dumps(record).replace("--", "-\\u002d") + _END

    @staticmethod
    def of(body: str) -> Mark:
        """Return the record on the last line of an issue's body, an empty one if there is none.

        Only the last line counts: the text of a failure above it may look like a record.
        """
        last = (body.rstrip().splitlines() or [""])[-1]
        if not (last.startswith(_BEGIN) and last.endswith(_END)):
            return Mark()
        try:
            record = json.loads(last[len(_BEGIN) : -len(_END)])
            return Mark(frozenset(record["families"]), frozenset(record["lanes"]), record["content"])
        except (ValueError, KeyError, TypeError):
            return Mark()


def digest(lines: Iterable[str]) -> str:
    """Return a digest by which two bodies can be compared."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
