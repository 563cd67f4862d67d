"""The command lines that reports show next to a failing case."""

from __future__ import annotations

from collections.abc import Sequence


def repeat(case_id: str, backend: str, after: Sequence[str] = (), runs: int = 1) -> str:
    """Return the command that runs only this case after others, in at most ``runs`` processes, until it fails."""
    return f"pytest --pyargs conformance --backend {backend} --case '{case_id}'{_setting(after, runs)}"


def script(case_id: str, backend: str, after: Sequence[str] = (), runs: int = 1) -> str:
    """Return the command that writes a standalone script of only this case, in the setting of :func:`repeat`."""
    return f"conformance repro --backend {backend} '{case_id}'{_setting(after, runs)}"


def _setting(after: Sequence[str], runs: int) -> str:
    return "".join(f" --after '{one}'" for one in after) + (f" --runs {runs}" if runs > 1 else "")


def triage(case_id: str, backend: str) -> str:
    """Return the command that finds the first operator of this case that goes wrong on the device."""
    return f"conformance triage --backend {backend} '{case_id}'"


def in_lane(case_id: str, lane: str) -> str:
    """Return the command that runs only this case in the environment of a lane."""
    return f"conformance lane {lane} -- python -m pytest --pyargs conformance --case '{case_id}'"
