"""The exit code of a run."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.support.exit_codes import Exit, of_run

CLEAN: dict[str, Any] = {
    "bring_up": True, "balanced": True, "written": True, "collected": 3, "failed": 0, "errors": 0,
    "broken_expectations": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, Exit.OK),
        ({"failed": 1}, Exit.CELLS_FAILED),
        ({"errors": 1}, Exit.SUITE_ERROR),
        ({"broken_expectations": 1}, Exit.EXPECTATIONS),
        ({"collected": 0}, Exit.NONE_SELECTED),
        ({"failed": 1, "errors": 1, "broken_expectations": 1}, Exit.CELLS_FAILED),
        ({"failed": 1, "written": False}, Exit.RESULTS),
        ({"failed": 1, "balanced": False}, Exit.ACCOUNTING),
        ({"failed": 1, "balanced": False, "bring_up": False}, Exit.BRING_UP),
    ],
)
def test_the_gravest_finding_wins(given: dict[str, Any], code: Exit) -> None:
    assert of_run(**{**CLEAN, **given}) is code


def test_pytest_s_own_codes_keep_their_meaning() -> None:
    assert [int(code) for code in Exit if code < 10] == sorted(pytest.ExitCode)[:6]
