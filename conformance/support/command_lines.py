"""The command lines that reports show next to a failing case."""

from __future__ import annotations


def repeat(case_id: str, backend: str) -> str:
    """Return the command that runs just this case."""
    return f"pytest --pyargs conformance --backend {backend} --case '{case_id}'"


def script(case_id: str, backend: str) -> str:
    """Return the command that writes a standalone script of just this case."""
    return f"conformance repro --backend {backend} '{case_id}'"


def triage(case_id: str, backend: str) -> str:
    """Return the command that finds the first operator of this case that goes wrong on the device."""
    return f"conformance triage --backend {backend} '{case_id}'"


def in_lane(case_id: str, lane: str) -> str:
    """Return the command that runs just this case in the environment of a lane."""
    return f"conformance lane {lane} -- python -m pytest --pyargs conformance --case '{case_id}'"
