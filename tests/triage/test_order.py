"""Ops that fail only after others: repetition, minimization, and the script."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conformance.calls import sequence
from conformance.calls.sequence import Step, lone
from conformance.judging.oracle import CallOutcome
from conformance.records import Mismatch
from conformance.triage import before, rerun, script
from conformance.triage.evidence import Before
from tests.calls.test_calls import BACKEND, OPS, taken
from tests.calls.test_sequence import program, recorded
from tests.triage.test_triage import triage

SORTS_FIRST = """
import torch, {module}
x = torch.arange(40.0, device="{device}").view(5, 8)
values, order = torch.sort(x.flip(1) * 2, dim=1)
scaled = values / values.sum()
print(scaled.masked_fill(scaled > 0.03, 0.0).sum())
"""

REUSES = """
import torch, {module}
x = torch.arange(64.0, device="{device}")
a = x + 1
b = x + 2
del a
c = x * 3
d = x * 5
print((c - d).sum().item())
"""


def test_steps_are_made_again_over_the_storages_that_they_share() -> None:
    steps, _ = recorded(program)
    told: list[int] = []
    assert rerun.last(steps, BACKEND, told.append) == []
    assert told == [0, 1, 2, 3]


def test_a_replayed_step_gets_the_storages_that_earlier_steps_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program's y is 3 after add_, and 2 without it. Steps that are taken apart get the recorded value."""
    steps, _ = recorded(program)
    seen: list[float] = []

    def differences(_: object, call: object, actual: CallOutcome, twice: object) -> list[Mismatch]:
        seen.append(float(actual.returned[0]))
        return []

    monkeypatch.setattr(rerun, "differences", differences)
    rerun.last(steps, BACKEND, lambda _: None)
    rerun.last(sequence.part(steps, {0, 1, 3}), BACKEND, lambda _: None)
    rerun.last(sequence.taken_apart(steps), BACKEND, lambda _: None)
    assert seen == [-3, -2, -3]


def test_a_script_of_several_calls_shares_and_frees_storages() -> None:
    steps, _ = recorded(program)
    text = script.script(steps, BACKEND, "neg after others")
    assert "r1 = torch.ops.aten.mul.Tensor(r0.as_strided((4,), (1,), 0), 2)" in text
    assert "del r0" in text
    assert script.own_lines(text) <= 10
    exec(compile(text, "script", "exec"), {})  # raises if the two sides differ
    assert "del" not in script.script(sequence.kept_alive(steps), BACKEND, "")


def test_a_script_shows_arguments_that_share_a_storage() -> None:
    x = torch.arange(6.0)
    text = script.script([lone(taken(OPS.add.Tensor, x[:4], x[2:]))], BACKEND, "add")
    assert "torch.ops.aten.add.Tensor(t0, t0.as_strided((4,), (1,), 2))" in text
    exec(compile(text, "script", "exec"), {})


def test_a_script_shows_complex_numbers_that_are_not_finite() -> None:
    x = torch.tensor([complex(float("nan"), 1), complex(float("inf"), -0.0), -0.0j])
    text = script.script([lone(taken(OPS.mul.Tensor, x, complex(float("inf"), 0)))], BACKEND, "mul")
    exec(compile(text, "script", "exec"), {})


def test_a_script_of_many_calls_is_refused() -> None:
    with pytest.raises(ValueError, match="20 calls are too many"):
        script.script([Step(taken(OPS.neg.default, torch.ones(1)), (0,))] * 20, BACKEND, "")


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (Before(9, again=(3, 3), alone=(1, 3)), "it is flaky"),
        (Before(9, again=(0, 3), alone=(0, 3)), "the cause is not in the calls"),
        (Before(9, cut=4, again=(0, 3)), "the first 4 calls of the program were not recorded"),
        (Before(9, missed=(("to_dense", 2),)), "cannot be recorded, and were not repeated: to_dense (2)"),
        (Before(9, 0, (), (3, 3), (0, 3), ("sort",), (2, 3), True), "after fewer calls it did not fail each time"),
        (Before(9, 0, (), (3, 3), (0, 3), ("sort",), (3, 3), True), "after sort: in 3 of 3 fresh processes, 0 of 3"),
        (Before(9, 0, (), (3, 3), (0, 3), ("sort",), (3, 3), False), "no time to search for fewer calls"),
    ],
)
def test_triage_reports_what_it_knows_about_earlier_calls(known: Before, said: str) -> None:
    assert any(said in note for note in before.notes(known))


def test_a_death_after_a_sort_has_a_short_script_that_contains_the_sort(tmp_path: Path) -> None:
    pytest.importorskip("refnpu")
    code, found, said = triage(
        tmp_path, "refnpu", "npu", "--backend", "refnpu", "--lanes", "malloc", program=SORTS_FIRST,
        REFNPU_FAULT="crash_after_sort",
    )  # fmt: skip
    assert code == 1, said
    assert found["evidence"]["before"]["needed"] == ["sort"]
    assert "masked_fill_, called by masked_fill.Scalar, after sort (call 8 of the program" in said
    assert "it fails after sort: in 3 of 3 fresh processes, 0 of 3 without" in said
    rulings = {v["hypothesis"]: v["ruling"] for v in found["verdicts"]}
    assert (rulings["allocator"], rulings["threads"]) == ("ruled out", "ruled out")
    assert "fails when run" in said
    assert script.own_lines(found["script"]) <= 10
    assert found["script"].index("aten.sort") < found["script"].index("aten.masked_fill")


def test_memory_given_out_twice_is_found_at_the_call_that_gets_it(tmp_path: Path) -> None:
    """Each result of the program is right when it is made, but the last one is placed on a result that still exists."""
    pytest.importorskip("refnpu")
    code, found, said = triage(
        tmp_path, "refnpu", "npu", "--backend", "refnpu", "--lanes", "pool", program=REUSES,
        REFNPU_FAULT="pool_hands_out_twice",
    )  # fmt: skip
    assert code == 1, said
    assert "was given memory that the result of mul.Tensor (call 3) still occupies" in said
    needed = found["evidence"]["before"]["needed"]
    assert needed[0] == "add.Tensor"  # the memory that it frees is given out twice
    assert needed[-1] == "mul.Tensor"
    assert "fails when run" in said
    assert script.own_lines(found["script"]) <= 10
    assert "del r0" in found["script"]
    rulings = {v["hypothesis"]: v["ruling"] for v in found["verdicts"]}
    assert (rulings["allocator"], rulings["threads"]) == ("holds", "ruled out")


@pytest.mark.parametrize("program", [SORTS_FIRST, REUSES])
def test_the_same_programs_on_a_sound_device_end_with_nothing_found(tmp_path: Path, program: str) -> None:
    pytest.importorskip("refnpu")
    code, found, said = triage(tmp_path, "refnpu", "npu", "--backend", "refnpu", "--lanes", "pool", program=program)
    assert code == 0, said
    assert found["script"] == ""
