"""The facts of a run's summary that are in its manifest."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.results.store import Manifest
from conformance.results.summary import RunFacts


def run_facts(
    manifest: Manifest, collected: int, wall_s: float, cpu_s: float, collect_s: float,
    schemas: Mapping[str, tuple[str, str]],
) -> RunFacts:  # fmt: skip
    """Return the facts of a run: those of its manifest, and those that are known at its end, in seconds."""
    return RunFacts(
        lane=manifest.lane, collected=collected, wall_s=wall_s, cpu_s=cpu_s, collect_s=collect_s,
        corpus=manifest.corpus, torch=manifest.torch, compiler=manifest.compiler,
        backend_commit=manifest.backend_commit, schemas=schemas,
    )  # fmt: skip
