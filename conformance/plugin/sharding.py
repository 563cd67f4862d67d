"""The shard of a run: the cells that it runs. Every process that collects finds the same cells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.plugin.request import is_worker, plan_of, series_of
from conformance.results import resume, shards
from conformance.results.shards import Shard, ShardError, Split
from conformance.results.store import StoreError, runs

if TYPE_CHECKING:
    from conformance.vocabulary import CellId

SPLIT = pytest.StashKey[Split]()
_BY = pytest.StashKey[str]()
_WORKER_KEY = "conformance_shard_by"


def shard_of(config: pytest.Config) -> Shard | None:
    """Return the shard of --shard, None if it is not given. Raises pytest.UsageError for an invalid shard."""
    if not config.option.shard:
        if config.option.shard_by:
            raise pytest.UsageError("--shard-by: needs --shard I/N, which says which part of the run to take")
        return None
    try:
        return Shard.parse(config.option.shard)
    except ShardError as e:
        raise pytest.UsageError(f"--shard: {e}") from e


def split_by(config: pytest.Config) -> str:
    """Return the directory of the run whose durations split the cells, "" for none.

    The process that the user started chooses it once, because a run may be closed while workers start. Raises
    pytest.UsageError if there is no such run, or it cannot be read.
    """
    if shard_of(config) is None:
        return ""
    if is_worker(config):
        return str(config.workerinput[_WORKER_KEY])  # type: ignore[attr-defined]  # xdist's attribute
    if _BY not in config.stash:
        config.stash[_BY] = _chosen(config)
    return config.stash[_BY]


def _chosen(config: pytest.Config) -> str:
    results, asked = Path(config.option.results), config.option.shard_by
    try:
        series = series_of(config, plan_of(config))
        found = runs.find(results, asked) if asked else runs.measured(results, series)
    except StoreError as e:
        raise pytest.UsageError(f"{'--shard-by' if asked else '--shard'}: {e}") from e
    return str(found.directory.resolve()) if found else ""


def tell_worker(node: Any) -> None:
    """Pass the run whose durations split the cells to a worker."""
    node.workerinput[_WORKER_KEY] = split_by(node.config)


def taken(config: pytest.Config, cells: list[CellId]) -> set[CellId] | None:
    """Return the selected cells of this shard, None if the run is not split. Raises pytest.UsageError."""
    shard = shard_of(config)
    if shard is None:
        return None
    by = split_by(config)
    try:
        measured = runs.durations(runs.opened(Path(by))) if by else {}
    except StoreError as e:
        raise pytest.UsageError(f"--shard-by: {e}") from e
    config.stash[SPLIT] = Split(str(shard), len(cells), resume.fingerprint(map(str, cells)))
    return shards.part(cells, shards.weigh(cells, measured), shard)
