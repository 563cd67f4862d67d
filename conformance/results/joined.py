"""The shards of a run, joined to one closed run in the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformance.results import expectations, expected_files, merge, run_end
from conformance.results.merge import Part
from conformance.results.run_end import RunEnd
from conformance.results.store import Closed, runs


def join(results: Path, shards: Sequence[Closed], expected: Path | None) -> tuple[str, RunEnd | None]:
    """Store the merged run. Return its name and its end; None if it is merged already.

    ``expected``: the known failures that a command names. Raises MergeError, StoreError, TomlError or OSError.
    """
    name = merge.run_of([s.manifest for s in shards])
    if (results / runs.RUNS / name).is_dir():
        return name, None
    parts = [Part(s.manifest, runs.summary(s), runs.load(s)) for s in shards]
    merge.check(parts)
    manifest, summary, observations = merge.merged(parts)
    known = expectations.load(expected_files.of_results(expected, manifest))  # before the run counts as merged
    directory = runs.join(results, manifest, shards, summary)
    return name, run_end.of_run(manifest, summary, observations, known, str(directory))
