"""The manifest of a measured run."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import torch

from conformance.backends import Capabilities
from conformance.lanes.matrix import lane_name
from conformance.results.store.manifest import Manifest, run_name
from conformance.support import machine
from conformance.torch_versions import cpu_capability, uses_mkldnn
from conformance.vocabulary import DEFAULT_SEED

TIER = "perf"


def manifest_of(
    backend: Capabilities, corpus: str, cases: int, arguments: Sequence[str], *, complete: bool
) -> Manifest:
    """Return the manifest of a run that starts now. ``corpus``: its hash. ``complete``: no overload was left out."""
    info = backend.build_info()
    build = str(info.get("build_type", "release")).lower()
    version = ".".join(torch.__version__.partition("+")[0].split(".")[:2])
    lane = lane_name(backend.name, version, backend.environment(), build)
    return Manifest(
        lane=lane, backend=backend.name, collected=cases, complete=complete, torch=torch.__version__,
        environment=backend.environment(), build=build, python=platform.python_version(),
        compiler=str(info.get("compiler", "")), backend_commit=str(info.get("commit", "")), corpus=corpus, tier=TIER,
        seed=DEFAULT_SEED, arguments=tuple(arguments), run=run_name(f"{lane}+{TIER}"),
        cpu=machine.cpu_model(), cpu_capability=cpu_capability(), mkldnn="on" if uses_mkldnn() else "off",
        threads=torch.get_num_threads(), libc=machine.libc(), libm=machine.libm(),
        torch_commit=str(torch.version.git_version or ""), backend_option=backend.asked,
    )  # fmt: skip
