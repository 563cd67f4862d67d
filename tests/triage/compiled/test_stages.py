"""The stage of the compiler that the evidence names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.triage.compiled import report
from conformance.triage.compiled.model import (
    DYNAMO,
    OWN,
    PLAIN,
    Blame,
    Evidence,
    Kind,
    Run,
    Script,
    Versions,
    Wrong,
)
from conformance.triage.compiled.stages import Stage, fault, sound, stage

WRONG = Wrong(Kind.VALUES, "1 of 9 values differ", phase="forward", subject="result 0", graph=0, call=0)
RIGHT = (Run(PLAIN), Run(DYNAMO, graphs=1, calls=1), Run(OWN, graphs=1, calls=1, names=("inductor",)))
CLEAN = Evidence(("script.py",), Versions("2.13", "3.11", "a processor"), runs=RIGHT, complete=True)


def wrong(blame: Blame | None = None, name: str = "inductor", what: Wrong = WRONG, script: str = "") -> Evidence:
    runs = (*RIGHT[:2], Run(OWN, what, names=(name,)))
    return replace(CLEAN, runs=runs, blame=blame, script=Script(script, on_cpu=script) if script else None)


def test_a_program_that_is_right_has_no_stage() -> None:
    assert stage(CLEAN) is None
    assert report.headline(CLEAN) == "nothing differs: 1 calls of 1 compiled graphs"


def test_a_wrong_op_without_the_compiler_comes_first() -> None:
    assert stage(replace(wrong(), eager="add.Tensor (call 3): value")) is Stage.EAGER


def test_a_result_that_dynamo_alone_changes_is_dynamos() -> None:
    assert stage(replace(CLEAN, differs="result 0 of call 1")) is Stage.DYNAMO


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("aot_eager", Stage.AOT),
        ("aot_eager_decomp_partition", Stage.DECOMPOSITION),
        ("aot_eager_decomp_partition_crossref", Stage.FAKE),
    ],
)
def test_the_first_backend_that_is_wrong_names_the_stage(backend: str, expected: Stage) -> None:
    assert stage(wrong(Blame(backend, "eager"))) is expected


def test_inductors_stage_is_that_of_the_subsystem_to_blame() -> None:
    assert stage(wrong(Blame("inductor", "aot_eager", "lowerings", 1, "relu"))) is Stage.LOWERING
    assert stage(wrong(Blame("inductor", "aot_eager", "post_grad_passes", 2, "a pass"))) is Stage.PASSES
    assert stage(wrong(Blame("inductor", "aot_eager"))) is Stage.INDUCTOR


def test_a_graph_that_is_right_on_cpu_blames_the_generated_kernel() -> None:
    blame = Blame("inductor", "aot_eager", "lowerings", 1, "relu")
    assert stage(wrong(blame, script="right")) is Stage.KERNEL
    assert stage(wrong(blame, script="as wrong")) is Stage.LOWERING


def test_an_error_of_the_cxx_compiler_blames_the_generated_kernel() -> None:
    refused = Wrong(Kind.RAISED, "C++ compile error", "CppCompileError", compiler="a.cpp:3: error: no such type")
    assert stage(wrong(what=refused)) is Stage.KERNEL
    assert "a.cpp:3: error: no such type" in report.text(wrong(what=refused))


def test_a_crash_under_inductor_is_inductors() -> None:
    died = Wrong(Kind.DIED, "SIGSEGV", "SIGSEGV", "forward", graph=0, call=0)
    runs = (Run(PLAIN), Run(DYNAMO, graphs=1, calls=1, names=("inductor",)), Run(OWN, died, died))
    crashed = replace(CLEAN, runs=runs, blame=Blame("inductor", "aot_eager", "lowerings", 0, "sin"))
    assert stage(crashed) is Stage.LOWERING


def test_another_backend_than_inductor_is_to_blame_itself() -> None:
    assert stage(wrong(Blame(OWN, "aot_eager"), name="mine")) is Stage.BACKEND


def test_an_end_that_the_program_has_without_the_compiler_is_no_fault() -> None:
    exit_one = Wrong(Kind.EXITED, "exit code 1", "1")
    assert fault(Run(OWN, ended=exit_one), Run(PLAIN, ended=exit_one)) is None
    assert fault(Run(OWN, ended=exit_one), Run(PLAIN)) == exit_one
    assert fault(Run(OWN, ended=replace(exit_one, error="3")), Run(PLAIN, ended=exit_one)) is not None
    assert fault(Run(OWN), Run(PLAIN, ended=exit_one)) is not None


def test_a_report_of_an_interrupted_triage_says_so() -> None:
    assert report.headline(replace(CLEAN, complete=False)) == "interrupted: nothing has differed so far"
    assert report.headline(replace(wrong(), complete=False)).startswith("interrupted; so far: first difference")


def test_a_report_names_both_backends_between_which_values_differ() -> None:
    said = report.text(wrong(Blame("inductor", "aot_eager", "lowerings", 1, "relu", runs=9)))
    assert "values differ between aot_eager and inductor" in said
    assert "subsystem: lowerings, application 1, from 0: relu" in said


def test_a_program_that_compiles_nothing_is_told_so() -> None:
    nothing = replace(CLEAN, runs=(*RIGHT[:2], Run(OWN)))
    assert "compiles nothing" in report.headline(nothing)
    assert not sound(nothing)
    assert sound(CLEAN)


def test_a_program_that_fails_without_the_compiler_too_is_not_sound() -> None:
    ended = Wrong(Kind.RAISED, "no file", "ValueError")
    e = replace(CLEAN, runs=tuple(replace(run, ended=ended) for run in RIGHT))
    assert stage(e) is None
    assert not sound(e)
    said = "the program itself fails, also without torch.compile: ValueError: no file; before that, nothing differs"
    assert report.headline(e).startswith(said)
