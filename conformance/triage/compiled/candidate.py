"""The program that compiles and calls one graph from a file, run by :mod:`conformance.triage.compiled.worker`.

Its arguments are ``FILE MODULE DEVICE``: importing MODULE loads the device; the graph's arguments are moved to DEVICE,
unless it is "".
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from pathlib import Path

import torch

from conformance.triage.compiled import dump


def main(file: str, module: str, device: str) -> None:
    """Compile and call the graph. Errors of both are not caught."""
    importlib.import_module(module)
    given = dump.load(Path(file), device or None)
    with contextlib.ExitStack() as modes:
        modes.enter_context(torch.set_grad_enabled(given.modes.get("grad", True)))
        for kind, dtype in given.modes.get("autocast", {}).items():
            modes.enter_context(torch.autocast(device or kind, dtype=dtype))
        torch.compile(given.graph, backend=given.backend, **given.options)(*given.args)


if __name__ == "__main__":
    main(*sys.argv[1:])
