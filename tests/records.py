"""Records made by hand for the tests of what reads results."""

from __future__ import annotations

from typing import Any

from conformance.results.store.manifest import Manifest, run_name
from conformance.vocabulary import CaseFailure, CellId, Observation, Status


def observed(
    overload: str, cell: str = "float32-contiguous", status: Status = Status.PASS, **given: Any
) -> Observation:
    """An observation of one cell; ``checks`` gives it one failure for each."""
    dtype, _, layout = cell.partition("-")
    name = f"{overload}[{cell}]"
    checks = given.pop("checks", ("value",) if status is Status.FAIL else ())
    failures = tuple(CaseFailure(f"{name}#s.0", check, f"{check} differs\nmore") for check in checks)
    defaults: dict[str, Any] = {
        "route": "native",
        "cases": 2,
        "compared": 2,
        "wall_ns": 1000,
        "cpu_ns": 900,
        "raw_ns": 600,
    }
    return Observation(
        CellId("masking", overload, dtype, layout), status=status, failures=failures, **{**defaults, **given}
    )


def manifest(**given: Any) -> Manifest:
    defaults: dict[str, Any] = {
        "lane": "demo-torch2.8-malloc-release", "backend": "demo", "collected": 2, "complete": True, "seed": 0,
        "torch": "2.8.0", "environment": "malloc", "build": "release", "python": "3.11.7", "compiler": "g++ 12.2",
        "backend_commit": "abc", "corpus": "sha256:1", "tier": "full",
        "cpu": "a processor",
    }  # fmt: skip
    defaults["run"] = run_name(given.get("lane", defaults["lane"]))
    return Manifest(**{**defaults, **given})
