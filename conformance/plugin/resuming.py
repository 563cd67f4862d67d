"""What an interrupted run observed: read by the process that the user started, before its workers, and told to them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from conformance.plugin import sharding
from conformance.plugin.manifest import manifest_of
from conformance.plugin.request import asked_for, directory_of, is_worker, isolation_of, known_failures_of, plan_of
from conformance.records import Observation
from conformance.results import resume
from conformance.results.store import Manifest, StoreError

_RESUMED = pytest.StashKey[tuple[Manifest | None, dict[str, Observation]]]()
_WORKER_KEY = "conformance_seen"


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """A mistake in the options is said before anything is collected, by the one process that the user started."""
    told = config.option.help or config.option.version or config.option.markers
    if asked_for(config) and not told:
        known_failures_of(config, plan_of(config))
        isolation_of(config, plan_of(config))
        sharding.split_by(config)
        resumed(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A worker that starts, now or in another's place, leaves out the same cells."""
    if asked_for(node.config):
        node.workerinput[_WORKER_KEY] = "\n".join(resumed(node.config)[1])
        sharding.tell_worker(node)


def resumed(config: pytest.Config) -> tuple[Manifest | None, dict[str, Observation]]:
    """The run that this one goes on from, and what it observed, by cell. Raises pytest.UsageError."""
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
    """The ids of the cells that are not to run again."""
    if is_worker(config):
        return frozenset(config.workerinput.get(_WORKER_KEY, "").splitlines())  # type: ignore[attr-defined]  # xdist's
    return resumed(config)[1]
