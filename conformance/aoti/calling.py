"""The process of one call: ``python -m conformance.aoti.calling BACKEND OTHER MODEL API PACKAGE CALL RESULT``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from conformance import backends
from conformance.aoti import compare
from conformance.aoti.inputs import make
from conformance.aoti.model import Api, given_from
from conformance.aoti.progress import Progress, first_lines
from conformance.aoti.spec import Model, load
from conformance.torch_versions import compilers

Run = Callable[[], Any]


def main(arguments: list[str]) -> None:
    """Call the model and its package with equal new tensors, and write the observation."""
    backend_name, other, spec, api, package, request, result = arguments
    progress = Progress(Path(result))
    progress.tell()
    call = json.loads(Path(request).read_text(encoding="utf-8"))
    backend = backends.find(backend_name)
    if other:
        backends.find(other)
    model = load(spec, backend.device)
    givens = [given_from(g) for g in call["inputs"]]
    ours, theirs = (make(givens, model.tensors) for _ in range(2))
    with torch.no_grad():
        progress.tell(phase="eager")
        expected, eager_raised = _tried(lambda: _eager(model, ours))
        progress.tell(phase="load", eager_raised=eager_raised)
        actual, raised = _tried(
            lambda: _compiled(backend, Api(api), package, call["load_device"], model, theirs, progress)
        )
        if not raised:
            progress.tell(phase="compare")
            differs = "" if eager_raised else _difference(expected, actual, ours, theirs)
            progress.tell(phase="done", difference=differs)
        else:
            progress.tell(raised=raised)


def _tried(run: Run) -> tuple[Any, str]:
    """Return a call's result and "", or None and its error."""
    try:
        return run(), ""
    except Exception as e:  # noqa: BLE001  # whatever is raised is what is observed
        return None, first_lines(e)


def _eager(model: Model, tensors: list[torch.Tensor]) -> Any:
    return model.module(*model.with_tensors(tensors))


def _compiled(
    backend: backends.Capabilities, api: Api, package: str, device: str, model: Model, tensors: list[torch.Tensor],
    progress: Progress,
) -> Any:  # fmt: skip
    if api is Api.DEPRECATED:
        loaded = compilers.load_deprecated(package, device or backend.device)
    else:
        loaded = compilers.load_package(package, int(device.partition(":")[2]) if device else None)
    progress.tell(phase="call")
    result = loaded(*model.with_tensors(tensors))
    backend.synchronize()
    return result


def _difference(expected: Any, actual: Any, ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> str:
    """Return the first difference of the outputs, else of the inputs after the call, which a model may write."""
    outputs = compilers.leaves_of(expected), compilers.leaves_of(actual)
    return compare.first_difference(*outputs) or compare.first_difference(ours, theirs, "after the call, input")


if __name__ == "__main__":
    main(sys.argv[1:])
