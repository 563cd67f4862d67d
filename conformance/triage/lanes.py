"""The environments that a program is run in again: the user's own, a single thread, the backend's matrix."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformance.lanes import matrix

OWN = "as it is"
SINGLE = "single thread"
ALWAYS = (OWN, SINGLE)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def environments(backend: str, file: Path, offered: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Lane -> the variables it sets, the user's own first. Raises TomlError for a file that is not understood.

    ``offered`` is what the backend's adapter knows, used where there is no ``file``.
    """
    lanes: dict[str, dict[str, str]] = {OWN: {}, SINGLE: dict(ONE_THREAD)}
    if file.is_file():
        found = matrix.load(file)
        if found.backend == backend:
            return lanes | {e.name: dict(e.variables) for e in found.environments}
    return lanes | {name: dict(variables) for name, variables in offered.items()}
