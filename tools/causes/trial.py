"""The cells' outcomes with one fault awake, and the directory of these records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conformance.results.causes import FailingCell, Manner
from conformance.vocabulary import CellId

MADE_WITH = "made_with.json"  # in the directory: the build, torch and sample of its trials


@dataclass(frozen=True, slots=True)
class Trial:
    """The cells that fail and that pass with one fault awake."""

    fault: str
    asking: int  # cells of the sample that ask for it
    failing: tuple[FailingCell, ...]
    passing: tuple[CellId, ...]
    gate: str  # the bring-up gate's finding, at which a run of the suite stops, or ""
    cpu_s: float

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        failing = [{**asdict(f), "cell": f.cell.fields()} for f in self.failing]
        for one in failing:
            del one["setting"]  # a trial does not repeat its cases
        return {**asdict(self), "failing": failing, "passing": [cell.fields() for cell in self.passing]}

    @staticmethod
    def from_json(d: Mapping[str, Any]) -> Trial:
        """Return the trial from a dict of :meth:`to_json`."""
        failing = tuple(map(_failing_cell, d["failing"]))
        return Trial(**{**d, "failing": failing, "passing": tuple(CellId(*fields) for fields in d["passing"])})


def _failing_cell(d: Mapping[str, Any]) -> FailingCell:
    lists = {name: tuple(d[name]) for name in ("kernels", "stack")}
    return FailingCell(**{**d, **lists, "cell": CellId(*d["cell"]), "manner": Manner(**d["manner"])})


def forget_others(directory: Path, made_with: Mapping[str, str]) -> None:
    """Delete the files in the directory if they are of another build, torch or sample of cells."""
    head = directory / MADE_WITH
    if not head.is_file() or json.loads(head.read_text(encoding="utf-8")) != made_with:
        for file in (*directory.glob("*.json"), *directory.glob("*.jsonl")):
            file.unlink()
        head.write_text(json.dumps(made_with) + "\n", encoding="utf-8")


def load(directory: Path, faults: Iterable[str]) -> dict[str, Trial]:
    """Return the trials in a directory, by fault."""
    files = {fault: directory / f"{fault}.json" for fault in faults}
    return {
        fault: Trial.from_json(json.loads(file.read_text(encoding="utf-8")))
        for fault, file in files.items()
        if file.is_file()
    }
