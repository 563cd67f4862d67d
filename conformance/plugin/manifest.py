"""The manifest of a run, the overloads that its coverage counts, and the schemas that differ from the corpus."""

from __future__ import annotations

import platform
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance import ops
from conformance.models import file as models
from conformance.plugin import sharding
from conformance.plugin.request import expected_of, lane_of, series_of
from conformance.results import resume
from conformance.results.store.manifest import Manifest, as_shard, run_name
from conformance.results.summary import Target
from conformance.support import machine

if TYPE_CHECKING:
    from conformance.plan.plan import Plan


def manifest_of(config: pytest.Config, plan: Plan, cells: Collection[str]) -> Manifest:
    """Return the manifest of this run. ``cells`` are the ids of the collected cells."""
    series, lane = series_of(config, plan), lane_of(config, plan)
    arguments = tuple(map(str, config.invocation_params.args))
    found = _manifest(plan, lane, cells, series == lane, arguments)
    found = replace(found, expected=expected_of(config, plan), run=run_name(series))
    shard = sharding.shard_of(config)
    return as_shard(found, str(shard), Path(sharding.split_by(config)).name) if shard else found


def _manifest(plan: Plan, lane: str, cells: Collection[str], complete: bool, arguments: tuple[str, ...]) -> Manifest:
    import torch

    from conformance.torch_versions import cpu_capability, uses_mkldnn

    backend, selection = plan.backend, plan.selection
    info = backend.build_info()
    return Manifest(
        lane=lane, backend=backend.name, collected=len(cells), complete=complete, torch=torch.__version__,
        environment=backend.environment(), build=str(info.get("build_type", "release")).lower(),
        python=platform.python_version(), compiler=str(info.get("compiler", "")),
        backend_commit=str(info.get("commit", "")), corpus=plan.corpus.hash, tier=selection.tier.name,
        seed=plan.seed, arguments=arguments, cells=resume.fingerprint(cells),
        cpu=machine.cpu_model(), cpu_capability=cpu_capability(), mkldnn="on" if uses_mkldnn() else "off",
        threads=torch.get_num_threads(), libc=machine.libc(), libm=machine.libm(),
        cxx=machine.cxx_compiler(),
        torch_commit=str(torch.version.git_version or ""), backend_option=backend.asked,
    )  # fmt: skip


def schemas(plan: Plan) -> dict[str, tuple[str, str]]:
    """Return the overloads of the corpus that this torch lacks or has with another schema.

    The values are the schema in the corpus and the schema in this torch, "" if it lacks the overload.
    """
    here = {name: overload.schema for name, overload in plan.inventory.items()}
    recorded = {name: plan.corpus.schemas[name] for name in plan.corpus.overloads}
    return {name: (told, here.get(name, "")) for name, told in recorded.items() if here.get(name) != told}


def model_routes(plan: Plan) -> dict[str, str]:
    """Return the routes of the overloads that show which overloads the recorded models need of the backend."""
    needed = models.overloads()
    return {name: overload.route.value for name, overload in plan.inventory.items() if name in needed}


def targets(plan: Plan) -> list[Target]:
    """Return the overloads that coverage counts, with the reason for each that has no sample."""
    return [
        Target(o.name, o.route.value, "" if o.name in plan.corpus.overloads else _unreached(plan, o.name))
        for o in plan.inventory.values()
        if o.is_target
    ]


def _unreached(plan: Plan, overload: str) -> str:
    return plan.corpus.reasons.get(overload) or ops.facts(overload).cannot or "the corpus has no sample of it"
