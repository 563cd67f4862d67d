"""The observations of an interrupted run: the user's process reads them and passes the cells' ids to its workers."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

import pytest

from conformance.plugin import sharding
from conformance.plugin.manifest import manifest_of
from conformance.plugin.request import (
    UnknownCaseError,
    asked_for,
    directory_of,
    is_worker,
    isolation_of,
    jobs_of,
    known_failures_of,
    plan_of,
    setting_of,
)
from conformance.records import Observation
from conformance.results import resume
from conformance.results.store import Manifest, StoreError
from conformance.support.exit_codes import Exit

_RESUMED = pytest.StashKey[tuple[Manifest | None, dict[str, Observation]]]()
_WORKER_KEY = "conformance_seen"


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Check the options before collection, in the process that the user started.

    Returns an exit code if ``--case`` names no case, else None: pytest goes on. Raises pytest.UsageError.
    """
    only_prints = config.option.help or config.option.version or config.option.markers
    if not asked_for(config) or only_prints:
        return None
    try:
        plan = plan_of(config)
    except UnknownCaseError as e:
        print(f"ERROR: {e}", file=sys.stderr)  # as pytest prints a UsageError
        return int(Exit.UNKNOWN_CASE)
    known_failures_of(config, plan)
    isolation_of(config, plan)
    jobs_of(config)
    setting_of(config)
    sharding.split_by(config)
    resumed(config)
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the ids of the observed cells to a worker that starts, also to a replacement of a worker that died."""
    if asked_for(node.config):
        node.workerinput[_WORKER_KEY] = list(resumed(node.config)[1])
        sharding.tell_worker(node)


def resumed(config: pytest.Config) -> tuple[Manifest | None, dict[str, Observation]]:
    """Return the manifest of the run to resume and its observations by cell id. Raises pytest.UsageError."""
    if not config.option.resume or is_worker(config):
        return None, {}
    if _RESUMED not in config.stash:
        plan = plan_of(config)
        try:
            found = resume.observed(directory_of(config, plan), manifest_of(config, plan, ()))
        except (resume.ResumeError, StoreError) as e:
            raise pytest.UsageError(f"--resume: {e}") from e
        config.stash[_RESUMED] = found
    return config.stash[_RESUMED]


def seen(config: pytest.Config) -> Collection[str]:
    """Return the ids of the cells that do not run again."""
    if is_worker(config):
        return frozenset(config.workerinput.get(_WORKER_KEY, ()))  # type: ignore[attr-defined]  # xdist's
    return resumed(config)[1]
