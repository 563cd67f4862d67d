"""The ends of the programs about PyTorch's contract with devices on each backend: the records and their JSON file."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conformance.support.whole_file import write_text
from conformance.vocabulary import Word


class End(Word):
    """The end of a program about the contract on a backend."""

    SUPPORTED = "supported", "its results are those that PyTorch promises"
    PARTLY = "partly supported", "so are those of its results that the backend offers"
    UNSUPPORTED = "unsupported", "the backend says that it does not offer what the program needs"
    NOT_COMPARED = "not compared", "the program did not come to its end on CPU, so nothing says what is right"
    FAILING = "failing", "a result is wrong, or the program raised or died"
    NOT_ASKED = "not asked", "it is about accelerators, and the backend is CPU"


@dataclass(frozen=True, slots=True)
class Ended:
    """A program about the contract, and its end. ``detail``: the missing feature or the error."""

    area: str
    promise: str
    end: End
    detail: str = ""

    @property
    def text(self) -> str:
        return f"{self.end}: {self.detail}" if self.detail else str(self.end)


Ends = Mapping[str, Mapping[str, Ended]]  # by backend, then by the name of the program


class EndsError(ValueError):
    """A file that does not hold the ends of programs. The message is one line."""


def load(file: Path) -> Ends:
    """Return the ends in a file. Raises EndsError, or OSError if the file cannot be read."""
    text = file.read_text(encoding="utf-8")
    try:
        stored = json.loads(text)
    except ValueError as e:
        raise EndsError(f"{file}: not JSON: {e}; expected a file that `conformance contract` wrote") from e
    try:
        return {backend: {name: _from(facts) for name, facts in of.items()} for backend, of in stored.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        raise EndsError(f"{file}: expected a file that `conformance contract` wrote: the ends of each backend") from e


def _from(facts: Mapping[str, Any]) -> Ended:
    return Ended(facts["area"], facts["promise"], End(facts["end"]), facts["detail"])


def renewed(ends: Ends, backend: str, new: Mapping[str, Ended], known: Collection[str]) -> Ends:
    """Return ``ends`` with ``new`` ends of a backend's programs. Its other programs stay only if they are ``known``."""
    others = {name: end for name, end in ends.get(backend, {}).items() if name in known and name not in new}
    merged = {**others, **new}
    return {**ends, backend: {name: merged[name] for name in sorted(merged, key=lambda n: (merged[n].area, n))}}


def save(file: Path, ends: Ends) -> None:
    """Write the whole file or nothing. Raises OSError."""
    facts = {backend: {name: asdict(ended) for name, ended in of.items()} for backend, of in ends.items()}
    write_text(file, f"{json.dumps(facts, indent=1)}\n")
