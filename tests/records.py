"""Records made by hand, for tests of code that reads results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.records import CaseFailure, Death, Mismatch, Observation
from conformance.results.store.manifest import Manifest, run_name
from conformance.vocabulary import CellId, Check, Status


def observed(
    overload: str, cell: str = "float32-contiguous", status: Status = Status.PASS, **given: Any
) -> Observation:
    """Return an observation of one cell, with one failure for each of ``checks``."""
    dtype, _, layout = cell.partition("-")
    name = f"{overload}[{cell}]"
    checks = given.pop("checks", ("value",) if status is Status.FAIL else ())
    failures = tuple(failure(f"{name}#s.0", check) for check in checks)
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


def failure(case: str, check: str = "value") -> CaseFailure:
    """Return the failure of a case by one check. With "", the process of the case died."""
    if not check:
        return CaseFailure(case, death=Death("SIGSEGV", phase="device", log="Fatal Python error"))
    return CaseFailure(case, (Mismatch(Check(check), "result", {"kind": "plain", "device": "1.5", "cpu": "2.5"}),))


def elements(index: Sequence[Any] = (0, 1), subject: str = "self", **given: Any) -> Mismatch:
    """Return a value mismatch in the form that the judge gives it."""
    facts = {
        "kind": "elements", "wrong": 2, "of": 6, "index": list(index), "device": 1.5, "cpu": 2.5, "dtype": "float32",
        "absolute": 1.0, "ulp": 3355443.2, "bound": {"exact": True, "signed_zeros": True}, "pattern": None,
    }  # fmt: skip
    return Mismatch(Check.VALUE, subject, facts | given)


def manifest(**given: Any) -> Manifest:
    defaults: dict[str, Any] = {
        "lane": "demo-torch2.8-malloc-release", "backend": "demo", "collected": 2, "complete": True, "seed": 0,
        "torch": "2.8.0", "environment": "malloc", "build": "release", "python": "3.11.7", "compiler": "g++ 12.2",
        "backend_commit": "abc", "corpus": "sha256:1", "tier": "full",
        "cpu": "a processor",
    }  # fmt: skip
    defaults["run"] = run_name(given.get("lane", defaults["lane"]))
    return Manifest(**{**defaults, **given})
