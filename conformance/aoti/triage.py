"""The search for the first kernel of a package whose output differs from eager."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from conformance.aoti import compare
from conformance.aoti.kernels import (
    PRINTER,
    SAVE_FILES,
    Conclusion,
    Launch,
    Saved,
    Triaged,
    Value,
    first_wrong,
    launches,
    unfinished,
)
from conformance.aoti.model import SWITCH
from conformance.aoti.progress import read
from conformance.aoti.session import CompileError, end_of
from conformance.backends import Capabilities
from conformance.support.lines import first_line

# With the cache, a known graph is not compiled, so its buffers would not be seen.
_COMPILE = {PRINTER: SAVE_FILES, "TORCHINDUCTOR_FX_GRAPH_CACHE": "0"}


@dataclass(frozen=True, slots=True)
class TriageJob:
    """A model by its specification, a file of inputs or None for its example inputs, and a package or None."""

    model: str
    backend: Capabilities
    directory: Path
    inputs: Path | None = None
    package: Path | None = None
    timeout: float = 1800.0


def triage(job: TriageJob) -> Triaged:
    """Run the given package, compile the model again with the printer, and compare each kernel. Raises CompileError."""
    # The printer's directory; torch 2.8 fails to create it.
    (job.directory / "tmp" / "aoti_torch").mkdir(parents=True, exist_ok=True)
    given = _given(job) if job.package else ""
    package, expected = job.directory / "model.pt2", job.directory / "expected.pt"
    package.unlink(missing_ok=True)
    found, log = _traced(job, package, expected, {**_COMPILE, SWITCH: "1"})
    if found["phase"] in ("prepare", "eager", "compile"):
        why = found.get("raised") or f"the process ended in the phase {found['phase']!r}: {found['died']}"
        raise CompileError(f"{job.model}: {why}", job.directory / "trace.log")
    return replace(_concluded(found, log, expected), given=given)


def _given(job: TriageJob) -> str:
    """Return how the user's package ends, run with the check of inputs."""
    found, log = _traced(job, job.package or Path(), job.directory / "unused.pt", {SWITCH: "1"})
    if found["died"]:
        return f"died: {found['died']} in the phase {found['phase']!r}"
    if raised := found.get("raised"):
        return _refusal(log) or f"raised {raised}"
    return found["difference"] or "its outputs are those of eager"


def _traced(job: TriageJob, package: Path, expected: Path, variables: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """Run the tracing process. Return its facts, with "died", and its output. Raises CompileError for a mistake."""
    facts, log = job.directory / "trace.json", job.directory / "trace.log"
    facts.unlink(missing_ok=True)
    inputs = str(job.inputs.resolve()) if job.inputs else ""
    places = [str(p.resolve()) for p in (package, expected, facts)]
    command = [sys.executable, "-m", "conformance.aoti.tracing", job.backend.asked, _absolute(job.model), inputs]
    path = os.pathsep.join(filter(None, (str(Path.cwd()), os.environ.get("PYTHONPATH", ""))))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *places], stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd=job.directory,
            env={**os.environ, "PYTHONPATH": path, **variables},
        )  # fmt: skip
        died = end_of(process, job.timeout)
    found = read(facts)
    if mistake := found.get("mistake"):
        raise CompileError(mistake)
    return {**found, "died": died}, log.read_text(encoding="utf-8", errors="replace")


def _absolute(model: str) -> str:
    """Return a specification that is valid in another directory: the process runs where the printer is to write."""
    file, colon, function = model.rpartition(":") if not model.endswith(".py") else (model, "", "")
    return f"{Path(file).resolve()}{colon}{function}" if file.endswith(".py") else model


def _refusal(text: str) -> str:
    """Return the message of the check of inputs in an error or an output, "" if there is none."""
    return next((line.strip() for line in text.splitlines() if "input_handles[" in line and "unmatched" in line), "")


def _concluded(found: Mapping[str, Any], log: str, expected: Path) -> Triaged:
    ran = launches(log)
    if refusal := _refusal(f"{found.get('raised', '')}\n{log}"):
        return Triaged(Conclusion.REFUSED, refusal)
    if found["died"]:
        return _died(found, ran)
    if unread := found.get("unread"):
        return Triaged(Conclusion.FAILED, f"the graph cannot be run with these inputs: {unread}", launches=len(ran))
    nodes = {name: (node, tuple(ops)) for name, (node, ops) in found["nodes"].items()}
    wrong, compared = first_wrong(ran, nodes, _Differs(expected))
    if wrong:
        inputs = inputs_of(wrong.launch)
        return Triaged(Conclusion.KERNEL, wrong.difference, wrong, inputs, launches=len(ran), compared=compared)
    return Triaged(*_without_kernel(found), launches=len(ran), compared=compared)


def _without_kernel(found: Mapping[str, Any]) -> tuple[Conclusion, str]:
    """Return the conclusion, with its detail, if no kernel's output differs."""
    if found["passes"]:
        return Conclusion.PASSES, found["passes"]
    if raised := found.get("raised"):
        return Conclusion.FAILED, first_line(raised)
    return (Conclusion.ELSEWHERE if found["difference"] else Conclusion.NOTHING), found["difference"]


def _died(found: Mapping[str, Any], ran: list[Launch]) -> Triaged:
    detail = f"{found['died']} in the phase {found['phase']!r}"
    last = unfinished(ran)
    if last is None:
        return Triaged(Conclusion.FAILED, detail, launches=len(ran))
    where = f"{last.kernel}, launch {len(ran) - 1}: {detail}"
    return Triaged(Conclusion.CRASHED, where, inputs=inputs_of(last), launches=len(ran))


class _Differs:
    """The difference of a saved tensor from the value of a node."""

    def __init__(self, expected: Path) -> None:
        self._values: dict[str, torch.Tensor] = torch.load(expected, weights_only=True) if expected.is_file() else {}

    def __call__(self, saved: Saved, node: str) -> str | None:
        value, actual = self._values.get(node), load_saved(saved)
        if value is None or actual is None or value.shape != actual.shape:
            return None  # a buffer may hold a node's value in another shape, which is not compared
        return compare.difference(value, actual)


def load_saved(saved: Saved) -> torch.Tensor | None:
    """Return a tensor that the printer saved, None if the file cannot be loaded."""
    try:
        found = torch.load(saved.file, map_location="cpu", weights_only=True)
    except Exception:  # noqa: BLE001  # a process may have died while it wrote the file
        return None
    return found if isinstance(found, torch.Tensor) else None


def inputs_of(launch: Launch) -> tuple[Value, ...]:
    """Return the tensors that a kernel was launched with, including tensors that it only writes."""
    return tuple(_value(s, found) for s in launch.before if (found := load_saved(s)) is not None)


def _value(saved: Saved, tensor: torch.Tensor) -> Value:
    real = tensor.to(torch.float64) if tensor.numel() and not tensor.is_complex() else None
    low, high = (float(real.min()), float(real.max())) if real is not None else (None, None)
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Value(saved.buffer, dtype, tuple(tensor.shape), tuple(tensor.stride()), low, high, saved.file)
