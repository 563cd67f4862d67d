"""The manifest of a run that pytest was asked for."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.plugin import sharding
from conformance.plugin.request import PACKAGE, lane_of, whole_lane
from conformance.results.store.manifest import as_shard

if TYPE_CHECKING:
    from conformance.results.store import Manifest
    from conformance.suite import Suite


def manifest_of(config: pytest.Config, suite: Suite, cells: Collection[str]) -> Manifest:
    """What is known of this run before its first cell; ``cells`` are the ids of those collected."""
    every = suite.selection == whole_lane(config) and _whole(config)
    complete = every and not config.option.keyword and not config.option.markexpr
    arguments = tuple(map(str, config.invocation_params.args))
    found = suite.manifest(lane_of(config, suite), cells, complete, arguments)
    shard = sharding.shard_of(config)
    return as_shard(found, str(shard), Path(sharding.split_by(config)).name) if shard else found


def _whole(config: pytest.Config) -> bool:
    """Whether the arguments name the package as a whole, not a file or a cell in it."""
    here = config.invocation_params.dir
    return any(a == PACKAGE.name and config.option.pyargs or (here / a).resolve() == PACKAGE for a in config.args)
