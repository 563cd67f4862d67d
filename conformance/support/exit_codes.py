"""What the process's exit code says of a run: pytest's own codes keep their meaning, the suite's begin at 10."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of ``pytest conformance`` and, where they apply, of the ``conformance`` command."""

    OK = 0, "every cell is as expected"
    CELLS_FAILED = 1, "at least one cell failed that no rule expects to fail"
    INTERRUPTED = 2, "pytest was interrupted; for the conformance command: a mistake in its arguments or files"
    INTERNAL = 3, "pytest itself, or a plugin of it, broke"
    USAGE = 4, "pytest's arguments, or a file that they name, cannot be used"
    NONE_SELECTED = 5, "the selection left no cell"
    ACCOUNTING = 10, "the statuses do not add up to the cells collected; no count of this run can be trusted"
    BRING_UP = 11, "a primitive that every comparison needs is broken; nothing else was judged"
    EXPECTATIONS = 12, "a rule of the expected failures matches nothing, or a cell that it covers passed"
    SUITE_ERROR = 13, "the suite could not judge a cell, or lost the process that ran it: not the backend's defect"
    RESULTS = 14, "the results cannot be written, the disk being full or the like; `--resume` goes on from what was"
    UNKNOWN_CASE = 15, "`--case` names no case of this torch version and corpus"
    NEWLY_FAILING = (
        20,
        "of diff: a cell fails that did not before, or that is new; or fails in one lane and not in another",
    )
    DIFFERENT = 21, "of diff: nothing newly fails, but cells were fixed, changed kind, are new, gone or flaky"

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Exit:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member


def of_run(
    *, bring_up: bool, balanced: bool, written: bool, collected: int, failed: int, errors: int, broken_expectations: int
) -> Exit:
    """The code of a finished run; the gravest finding wins.

    ``failed`` counts unexpected failures of the backend, ``errors`` those of the suite itself and cells that it did not
    reach, ``broken_expectations`` rules that match nothing and cells that passed although a rule expects them to fail.
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
