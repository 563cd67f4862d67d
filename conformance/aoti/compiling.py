"""The process that compiles a model: ``python -m conformance.aoti.compiling BACKEND MODEL API PACKAGE FACTS``."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import torch

from conformance import backends
from conformance.aoti.model import Api, Dimension, Given, Input
from conformance.aoti.progress import Progress, first_lines
from conformance.aoti.spec import Model, SpecError, load
from conformance.torch_versions import compilers


def main(arguments: list[str]) -> int:
    """Compile, and write the package's path and the facts of the inputs. Return the exit code."""
    backend_name, spec, api, package, facts = arguments
    progress = Progress(Path(facts))
    try:
        backend = backends.find(backend_name)
        _check_inductor(backend.kind)
        model = load(spec, backend.device)
        exported = torch.export.export(model.module, model.inputs, dynamic_shapes=model.dynamic_shapes)
        progress.tell(phase="compile", inputs=[dataclasses.asdict(i) for i in described(model, exported)])
        with torch.no_grad():
            built = _compiled(Api(api), model, exported, package)
        progress.tell(phase="done", package=built, torch=torch.__version__)
    except (SpecError, backends.BackendNotFound) as e:
        progress.tell(mistake=str(e))
        return 1
    except Exception as e:  # any error of the model or the compiler is recorded
        progress.tell(error=first_lines(e))
        raise
    return 0


def _check_inductor(kind: str) -> None:
    if lacking := compilers.inductor_lacks(kind):
        raise SpecError(lacking)


def _compiled(api: Api, model: Model, exported: Any, package: str) -> str:
    if api is Api.DEPRECATED:
        return compilers.compile_deprecated(model.module, model.inputs, model.dynamic_shapes)
    return compilers.compile_package(exported, package)


def described(model: Model, exported: Any) -> list[Input]:
    """Return how the inputs of an exported model were given, with their dynamic dimensions."""
    found = []
    for index, (tensor, (name, dimensions)) in enumerate(
        zip(model.tensors, compilers.exported_inputs(exported), strict=True)
    ):
        given = Given(
            index, tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset(), _name(tensor.dtype),
            str(tensor.device),
        )  # fmt: skip
        uniform = tensor.numel() > 1 and bool((tensor == tensor.reshape(-1)[0]).all())
        found.append(Input(name, given, tuple(Dimension(*d) for d in dimensions), tensor.element_size(), uniform))
    return found


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
