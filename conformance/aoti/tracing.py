"""The process that compiles a model with the value printer, and runs it.

``python -m conformance.aoti.tracing BACKEND MODEL INPUTS PACKAGE EXPECTED FACTS``. If PACKAGE exists, it is run without
a new compilation. INPUTS is a file, or "" for the example inputs. The nodes' eager values are written to EXPECTED.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from conformance import backends
from conformance.aoti import compare
from conformance.aoti.progress import Progress, first_lines
from conformance.aoti.spec import Model, SpecError, inputs_from, load
from conformance.torch_versions import compilers
from conformance.triage.compiled.twins import copies


def main(arguments: list[str]) -> int:
    """Compile and run the model, and write the facts. Return the exit code."""
    backend_name, spec, file, package, expected, facts = arguments
    progress = Progress(Path(facts))
    try:
        backend = backends.find(backend_name)
        model = load(spec, backend.device)
        inputs = inputs_from(Path(file), model, backend.device) if file else model.tensors
        with torch.no_grad():
            _run(backend, model, inputs, Path(package), Path(expected), progress)
    except (SpecError, backends.BackendNotFound) as e:
        progress.tell(mistake=str(e))
    except Exception as e:  # noqa: BLE001  # any error of the model or the compiler is recorded
        progress.tell(raised=first_lines(e))
    return 0


def _run(
    backend: backends.Capabilities,
    model: Model,
    inputs: Sequence[torch.Tensor],
    package: Path,
    expected: Path,
    progress: Progress,
) -> None:
    progress.tell(phase="eager")  # each call gets copies of the inputs with the same strides, as a model may write them
    eager = compilers.leaves_of(model.module(*model.with_tensors(copies(inputs))))
    if not package.exists():
        progress.tell(phase="compile")
        progress.tell(**_compile(model, inputs, eager, package, expected))
    progress.tell(phase="load")
    loaded = compilers.load_package(str(package))
    progress.tell(phase="call")
    actual = compilers.leaves_of(loaded(*model.with_tensors(copies(inputs))))
    backend.synchronize()
    progress.tell(phase="compare")
    progress.tell(phase="done", difference=compare.first_difference(eager, actual))


def _compile(
    model: Model, inputs: Sequence[torch.Tensor], eager: list[Any], package: Path, expected: Path
) -> dict[str, Any]:
    """Compile for the example inputs. Return the nodes of the buffers, and how the graph differs from the module."""
    graphs: list[Any] = []
    exported = torch.export.export(model.module, model.inputs, dynamic_shapes=model.dynamic_shapes)
    with compilers.compiled_graphs(graphs):
        compilers.compile_package(exported, str(package))
    nodes: dict[str, Any] = {}
    passes = ""
    for graph in graphs[:1]:  # a package has one graph, besides a graph of constants
        nodes = compilers.buffers_of(graph)
        try:
            values, outputs = compilers.values_of(graph, copies(inputs))
        except Exception as e:  # noqa: BLE001  # inputs that the model was not compiled for, which the check refuses
            return {"nodes": {}, "passes": "", "unread": first_lines(e)}
        torch.save({n: v.cpu() for n, v in values.items()}, expected)
        passes = compare.first_difference(eager, outputs[: len(eager)])
    return {"nodes": nodes, "passes": passes}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
