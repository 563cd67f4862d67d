"""The environments in which triage runs a program: the user's own, a single thread, those of the matrix."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformance.lanes import matrix

OWN = "as it is"
SINGLE = "single thread"
ALWAYS = (OWN, SINGLE)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def environments(backend: str, file: Path, offered: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return the variables of each lane, the user's own environment first. Raises TomlError.

    ``offered``: the environments of the backend's adapter, used if there is no ``file`` or it is of another backend.
    """
    lanes: dict[str, dict[str, str]] = {OWN: {}, SINGLE: dict(ONE_THREAD)}
    if file.is_file():
        found = matrix.load(file)
        if found.backend == backend:
            return lanes | {e.name: dict(e.variables) for e in found.environments}
    return lanes | {name: dict(variables) for name, variables in offered.items()}
