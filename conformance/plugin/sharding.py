"""The shard of a run: which cells are left to the others, found alike by every process that collects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.plugin.request import is_worker, lane_of, plan_of
from conformance.results import resume, shards
from conformance.results.shards import Shard, ShardError, Split
from conformance.results.store import StoreError, runs

if TYPE_CHECKING:
    from conformance.vocabulary import CellId

SPLIT = pytest.StashKey[Split]()
_BY = pytest.StashKey[str]()
_WORKER_KEY = "conformance_shard_by"


def shard_of(config: pytest.Config) -> Shard | None:
    """The shard asked for. Raises pytest.UsageError for what is none."""
    if not config.option.shard:
        if config.option.shard_by:
            raise pytest.UsageError("--shard-by: says how a run is split; expected --shard I/N with it")
        return None
    try:
        return Shard.parse(config.option.shard)
    except ShardError as e:
        raise pytest.UsageError(f"--shard: {e}") from e


def split_by(config: pytest.Config) -> str:
    """The directory of the run whose durations split the cells, "" for none.

    Chosen once, by the process that the user started: a run may be closed while workers start. Raises pytest.UsageError
    for a run that is not there.
    """
    if shard_of(config) is None:
        return ""
    if is_worker(config):
        return str(config.workerinput[_WORKER_KEY])  # type: ignore[attr-defined]  # xdist's attribute
    if _BY not in config.stash:
        config.stash[_BY] = _chosen(config)
    return config.stash[_BY]


def _chosen(config: pytest.Config) -> str:
    results = Path(config.option.results)
    if not config.option.shard_by:
        found = runs.measured(results, lane_of(config, plan_of(config)))
        return str(found.directory.resolve()) if found else ""
    try:
        return str(runs.find(results, config.option.shard_by).directory.resolve())
    except StoreError as e:
        raise pytest.UsageError(f"--shard-by: {e}") from e


def tell_worker(node: Any) -> None:
    """A worker splits by the same run."""
    node.workerinput[_WORKER_KEY] = split_by(node.config)


def taken(config: pytest.Config, cells: list[CellId]) -> set[CellId] | None:
    """Those of the selected cells that are this shard's; None where the run is not split. Raises pytest.UsageError."""
    shard = shard_of(config)
    if shard is None:
        return None
    plan, by = plan_of(config), split_by(config)
    try:
        measured = runs.durations(runs.opened(Path(by))) if by else {}
    except StoreError as e:
        raise pytest.UsageError(f"--shard-by: {e}") from e
    config.stash[SPLIT] = Split(str(shard), len(cells), resume.fingerprint(map(str, cells)))
    weights = shards.weigh(cells, measured, lambda cell: len(plan.cases(cell)))
    return shards.part(cells, weights, shard)
