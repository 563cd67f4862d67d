"""The ledger of a run: the outcome of every collected cell, written at once, and summarized at the end."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from conformance.records import Gate, Observation
from conformance.results import run_end, shards, store, summary
from conformance.results.expectations import KnownFailure
from conformance.results.run_end import RunEnd
from conformance.results.store import Manifest
from conformance.results.summary import RunFacts, Target
from conformance.vocabulary import CellId, Status


class Ledger:
    """The ledger. It belongs to the process that receives every report. Observations are written when entered."""

    def __init__(
        self,
        directory: Path,
        manifest: Manifest,
        cells: Collection[CellId],
        targets: Iterable[Target],
        known: Iterable[KnownFailure],
        already: Mapping[str, Observation] | None = None,
        schemas: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        """``already``: the observations of the resumed run, by cell id; ``schemas``: see RunFacts.

        Raises StoreError if the directory cannot be written.
        """
        self._schemas = schemas or {}
        self._resumed = dict(already or {})
        self._cells = {**{key: o.cell for key, o in self._resumed.items()}, **{str(cell): cell for cell in cells}}
        self._manifest = manifest
        self._targets = list(targets)
        self._known = tuple(known)
        self._writer = store.Writer(directory, manifest, self._resumed.values())
        self._seen = dict(self._resumed)
        self._twice = 0
        self._started = time.perf_counter()
        self.gate = Gate()
        self.routes: Mapping[str, str] = {}  # of the overloads that say what recorded models need
        self._unrun: Counter[str] = Counter()  # cells that did not run, by the broken primitive that they need
        self.unwritten = ""  # the error that stopped the writing of results

    def enter(self, observation: Observation, needed: str = "") -> None:
        """Record the observation of a cell. A cell that is entered twice makes the counts inconsistent on purpose.

        ``needed``: the broken primitive because of which the cell did not run. Raises StoreError the first time that an
        observation cannot be written. Later observations are kept in memory only.
        """
        self._unrun.update([needed] if needed else [])
        key = str(observation.cell)
        self._twice += key in self._seen or key not in self._cells
        self._seen[key] = observation
        if not self.unwritten:
            try:
                self._writer.append(observation)
            except store.StoreError as e:
                self.unwritten = str(e)
                raise

    def lose(self, cell: CellId, said: str) -> None:
        """Record that the process of a cell died, unless the cell has an observation. Raises StoreError."""
        if str(cell) not in self._seen:
            reason = f"the process that ran the cell died: {said}; run again with --resume"
            self.enter(Observation(cell, "", Status.NOT_REACHED, 0, reason=reason))

    def close(self, collect_s: float, cpu_s: float, split: shards.Split | None = None) -> RunEnd:
        """Enter the cells that did not run, write the summary, and return the text and the exit code.

        ``split``: the split into shards, if the run is a shard.
        """
        failure = self.gate.failure
        reason = run_end.not_reached(failure) if failure else "the run ended before it"
        for key, cell in self._cells.items():
            if key not in self._seen:
                with contextlib.suppress(store.StoreError):  # _history reports it
                    self.enter(Observation(cell, "", Status.NOT_REACHED, 0, reason=reason))
        observations = list(self._seen.values())
        collected, wall_s = len(self._cells) - self._twice, time.perf_counter() - self._started
        facts = RunFacts.of(self._manifest, collected, wall_s, cpu_s, collect_s, self._schemas)
        result = summary.summarize(facts, observations, self._targets)
        result["limits"] = [
            {"primitive": name, "headline": broken.headline, "cells": self._unrun[name]}
            for name, broken in self.gate.limits.items()
        ]
        result["routes"] = dict(self.routes)
        if split:
            result["shard"] = summary.of_shard(split, self._targets)
        self._finish(result)
        return run_end.of_run(
            self._manifest, result, observations, self._known, str(self._writer.directory), gate=failure,
            unwritten=self.unwritten, history=self._history(),
        )  # fmt: skip

    def _finish(self, result: dict[str, Any]) -> None:
        """Write the summary, unless an earlier write failed."""
        try:
            if self.unwritten:
                self._writer.close()
            else:
                self._writer.finish(result)
        except store.StoreError as e:
            self.unwritten = str(e)

    def _history(self) -> list[str]:
        """Return lines about the resumed run, and about results that could not be written."""
        lines = []
        if self._resumed:
            lines.append(f"resumed: {len(self._resumed)} of {len(self._cells)} cells were observed by an earlier run")
        if self.unwritten:
            lines.append(f"ERROR: {self.unwritten}; earlier observations are kept; run again with --resume")
        return lines
