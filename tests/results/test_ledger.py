"""The ledger of a run: every cell once, written at once, and the exit code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance.records import Gate, GateFailure, Observation
from conformance.results import store
from conformance.results.expectations import KnownFailure
from conformance.results.ledger import Ledger
from conformance.results.run_end import RunEnd
from conformance.results.summary import Target
from conformance.support.exit_codes import Exit
from conformance.vocabulary import Status
from tests.records import manifest, observed

CELLS = (observed("mm"), observed("cat"), observed("fft"))
CAT_FAILS = KnownFailure(op=("cat",), reason="known")


def closed(
    directory: Path,
    *seen: Observation,
    known: tuple[KnownFailure, ...] = (),
    gate: GateFailure | None = None,
    limits: Mapping[str, GateFailure] | None = None,
    complete: bool = True,
) -> RunEnd:
    """Return the end of a run of CELLS that observed ``seen``."""
    ledger = Ledger(
        directory,
        manifest(collected=len(CELLS), complete=complete),
        [o.cell for o in CELLS],
        [Target("mm", "native")],
        known,
    )
    ledger.gate = Gate(gate, limits or {})
    for observation in seen:
        ledger.enter(observation)
    return ledger.close(0.1, 1.0)


def test_a_broken_primitive_that_few_cells_need_is_one_failure_of_the_run(tmp_path: Path) -> None:
    limits = {"conjugate": GateFailure("conjugate: the process that tried it died: SIGSEGV", "a stack")}
    end = closed(tmp_path, *CELLS, limits=limits)
    assert end.code is Exit.CELLS_FAILED
    line = "BROKEN: conjugate: the process that tried it died: SIGSEGV; 0 cells not reached"
    assert end.text.split("\n")[0] == line
    assert end.text.count("conjugate") == 1
    assert store.read_summary(tmp_path)["limits"] == [
        {"primitive": "conjugate", "headline": limits["conjugate"].headline, "cells": 0}
    ]


def test_a_run_in_which_all_passed_is_good(tmp_path: Path) -> None:
    end = closed(tmp_path, *CELLS)
    assert end.code is Exit.OK
    assert "accounting: 3 collected = 3 pass + 0 fail" in end.text
    assert store.read(tmp_path).observations == CELLS


def test_cells_that_were_not_seen_are_not_reached_and_say_why(tmp_path: Path) -> None:
    end = closed(tmp_path, CELLS[0])
    assert (
        "accounting: 3 collected = 1 pass + 0 fail + 0 error + 0 crash + 0 timeout + 0 unsupported + 2 not_reached"
        in (end.text)
    )
    assert [o.reason for o in store.read(tmp_path).observations] == ["", *["the run ended before it"] * 2]


def test_observations_are_on_disk_before_the_run_ends(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, manifest(collected=3), [o.cell for o in CELLS], [], ())
    ledger.enter(CELLS[0])
    assert store.read(tmp_path).observations == (CELLS[0],)
    assert not (tmp_path / store.SUMMARY).exists()
    ledger.close(0.1, 1.0)


def test_a_cell_entered_twice_unbalances_the_account(tmp_path: Path) -> None:
    end = closed(tmp_path, *CELLS, CELLS[0])
    assert end.code is Exit.ACCOUNTING
    assert "ERROR: accounting does not balance" in end.text


def test_a_cell_that_nobody_collected_unbalances_the_account(tmp_path: Path) -> None:
    assert closed(tmp_path, *CELLS, observed("stranger")).code is Exit.ACCOUNTING


def test_a_broken_primitive_is_named_and_nothing_else_counts(tmp_path: Path) -> None:
    end = closed(tmp_path, gate=GateFailure("copy_bytes: 7 bytes came back changed", "last words"))
    assert end.code is Exit.BRING_UP
    said = "bring-up gate: copy_bytes: 7 bytes came back changed\nlast words\nno cell was judged\n"
    assert end.text.startswith(said)
    reasons = {o.reason for o in store.read(tmp_path).observations}
    assert reasons == {"bring-up gate: copy_bytes: 7 bytes came back changed"}


def test_a_run_fails_if_a_cell_is_not_reached_because_its_process_is_lost(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    for observation in CELLS[:2]:
        ledger.enter(observation)
    ledger.lose(CELLS[1].cell, "worker 'gw0' crashed")  # reported before the worker died
    ledger.lose(CELLS[2].cell, "worker 'gw1' crashed")
    end = ledger.close(0.1, 1.0)
    assert end.code is Exit.SUITE_ERROR
    assert "accounting: 3 collected = 2 pass" in end.text
    assert "worker 'gw1' crashed; run again with --resume" in store.read(tmp_path).observations[2].reason


def test_observations_of_an_earlier_run_are_in_the_ledger_and_on_disk(tmp_path: Path) -> None:
    ledger = opened(tmp_path, *CELLS[:2])
    ledger.enter(CELLS[2])
    end = ledger.close(0.1, 1.0)
    assert end.code is Exit.OK
    assert "accounting: 3 collected = 3 pass" in end.text
    assert end.text.startswith("resumed: 2 of 3 cells were observed by an earlier run\n")
    assert store.read(tmp_path).observations == CELLS


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_is_said_and_the_account_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = opened(tmp_path)
    ledger.enter(CELLS[0])
    fill_disk_under(tmp_path / store.OBSERVATIONS)
    with pytest.raises(store.StoreError, match=r"cannot be written: .*No space left on device"):
        ledger.enter(CELLS[1])
    ledger.enter(CELLS[2])
    end = ledger.close(0.1, 1.0)
    assert end.code is Exit.RESULTS
    assert "No space left on device; earlier observations are kept; run again with --resume" in end.text
    assert "accounting: 3 collected = 3 pass" in end.text
    assert store.read(tmp_path).observations == CELLS[:1]
    assert not (tmp_path / store.SUMMARY).exists()


def fill_disk_under(file: Path) -> None:
    """Replace this process's open descriptor of the file with a device that is always full."""
    number = next(n for n in os.listdir("/proc/self/fd") if Path(f"/proc/self/fd/{n}").resolve() == file.resolve())  # noqa: PTH208  # the number, not a path
    with Path("/dev/full").open("wb", buffering=0) as full:
        os.dup2(full.fileno(), int(number))


def opened(directory: Path, *already: Observation) -> Ledger:
    """Return an open ledger of CELLS, of which an earlier run observed ``already``."""
    known = {str(o.cell): o for o in already}
    return Ledger(directory, manifest(collected=3), [o.cell for o in CELLS if o not in already], [], (), known)


@pytest.mark.parametrize(
    ("status", "code"),
    [(Status.FAIL, Exit.CELLS_FAILED), (Status.CRASH, Exit.CELLS_FAILED), (Status.ERROR, Exit.SUITE_ERROR)],
)
def test_the_kind_of_failure_decides_the_exit_code(tmp_path: Path, status: Status, code: Exit) -> None:
    assert closed(tmp_path, CELLS[0], observed("cat", status=status), CELLS[2]).code is code


def test_a_failure_that_a_rule_expects_is_not_listed(tmp_path: Path) -> None:
    end = closed(tmp_path, CELLS[0], observed("cat", status=Status.FAIL), CELLS[2], known=(CAT_FAILS,))
    assert end.code is Exit.OK
    assert "failing cells" not in end.text
    assert "+ 1 fail +" in end.text


def test_a_rule_under_which_a_cell_passes_breaks_the_run(tmp_path: Path) -> None:
    end = closed(tmp_path, *CELLS, known=(CAT_FAILS,))
    assert end.code is Exit.EXPECTATIONS
    assert end.text.startswith("unexpected pass: ops/masking.py::cat[float32-contiguous]\n")


def test_a_rule_that_matches_no_cell_breaks_a_complete_run_alone(tmp_path: Path) -> None:
    outlived = (KnownFailure(op=("gone",), reason="known"),)
    end = closed(tmp_path, *CELLS, known=outlived)
    assert end.code is Exit.EXPECTATIONS
    assert end.text.startswith("matches no cell: rule op=gone -> fail\n")
    assert closed(tmp_path, *CELLS, known=outlived, complete=False).code is Exit.OK
