"""The bring-up gate: a broken primitive is reported, even if it kills its process, and cells run without it."""

from __future__ import annotations

from conformance.records import Gate, GateFailure
from conformance.running.runner import Runner
from conformance.vocabulary import Status
from tests.running.work import CELL, Work


def test_the_gate_reports_a_broken_primitive_even_if_it_crashes() -> None:
    work = Work()
    assert not Runner(work, 600).gate()
    work.broken = {0: "allocate: nothing given", 1: "dies"}
    assert Runner(work, 600).gate() == Gate(GateFailure("allocate: nothing given"))
    work.broken = {0: "dies"}
    found = Runner(work, 600).gate().failure
    assert found
    assert found.headline == "allocate (memory): the process that tried it died: SIGSEGV"


def test_cells_run_without_the_primitives_that_do_not_block_a_run() -> None:
    work = Work("ok", "needs conj")
    work.broken = {1: "dies", 2: "neg: is wrong"}
    runner = Runner(work, 600)
    limits = runner.gate().limits
    assert [*limits] == ["conj", "neg"]
    assert limits["conj"].headline == "conj (resolves): the process that tried it died: SIGSEGV"
    assert limits["neg"].headline == "neg: is wrong"
    assert runner.observe(CELL).status is Status.PASS
    runner.close()


def test_cells_are_judged_by_the_subnormal_numbers_that_the_device_keeps() -> None:
    work = Work("ok", "needs float64")
    work.flushes = {"float16": "dies", "float32": "flushes"}
    runner = Runner(work, 600)
    gate = runner.gate()
    assert not gate
    assert gate.subnormals == ("float64",)
    assert runner.observe(CELL).status is Status.PASS
    runner.close()
