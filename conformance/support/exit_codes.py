"""The exit codes of a run. pytest's own codes keep their meaning; the suite's begin at 10."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of ``pytest conformance`` and, where they apply, of the ``conformance`` command."""

    OK = 0, "every cell is as expected"
    CELLS_FAILED = 1, "at least one cell failed that is not a known failure"
    INTERRUPTED = 2, "interrupted; for the `conformance` command also: an error in its arguments or files"
    INTERNAL = 3, "an internal error of pytest or of one of its plugins"
    USAGE = 4, "invalid arguments of pytest, or an unusable file that they name"
    NONE_SELECTED = 5, "the options select no cell"
    ACCOUNTING = 10, "the numbers of the statuses do not add up to the collected cells; do not trust this run's counts"
    BRING_UP = 11, "the bring-up gate found a broken primitive that every comparison needs; no cell was judged"
    EXPECTATIONS = 12, "a known failure matches no cell, or a cell that it covers passed with all its cases"
    SUITE_ERROR = 13, "the suite could not judge a cell, or lost the process that ran it; not a defect of the backend"
    RESULTS = 14, "results could not be written (for example, the disk is full); run again with `--resume`"
    UNKNOWN_CASE = 15, "`--case` names no case of this torch version and corpus"
    NEWLY_FAILING = (
        20,
        "of `diff`: a cell newly fails: it did not fail before, or is new, or fails in one lane and not in another",
    )
    DIFFERENT = 21, "of `diff`: no cell newly fails, but cells were fixed, changed kind, are new, gone or flaky"

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Exit:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member


def of_run(
    *, bring_up: bool, balanced: bool, written: bool, collected: int, failed: int, errors: int, broken_expectations: int
) -> Exit:
    """Return the exit code of a finished run: the code of the most serious finding.

    ``failed``: number of unexpected failures of the backend. ``errors``: number of errors of the suite itself and of
    cells that it did not reach. ``broken_expectations``: number of known failures that match nothing, and of cells that
    passed despite a known failure.
    """
    findings = (
        (not bring_up, Exit.BRING_UP),
        (not balanced, Exit.ACCOUNTING),
        (not written, Exit.RESULTS),
        (not collected, Exit.NONE_SELECTED),
        (failed > 0, Exit.CELLS_FAILED),
        (errors > 0, Exit.SUITE_ERROR),
        (broken_expectations > 0, Exit.EXPECTATIONS),
    )
    return next((code for found, code in findings if found), Exit.OK)
