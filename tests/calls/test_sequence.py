"""Sequences of calls: the storages that they share, and the calls that remain when some are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from conformance.calls import file, sequence
from conformance.calls.sequence import Gaps, Step
from conformance.judging.twins import CPU
from conformance.triage.history import History
from conformance.triage.watch import Watch
from tests.calls.test_calls import BACKEND, OPS, taken


def recorded(program: Any, **bounds: int) -> tuple[list[Step], Gaps]:
    """Return the steps of a program on the CPU, as a watched run keeps them, and their gaps."""
    history = History(CPU, **bounds)
    with Watch(BACKEND, lambda *_: None, lambda *_: None, history):
        program()
    return history.steps, history.gaps


def program() -> None:
    x = torch.ones(4)
    y = x * 2
    y.add_(x)
    del x
    y.neg()


def test_storages_are_known_again_and_their_end_is_seen() -> None:
    steps, gaps = recorded(program)
    assert sequence.names(steps) == ["ones", "mul.Tensor", "add_.Tensor", "neg"]
    ones, mul, add, neg = steps
    x, y = ones.results[0], mul.results[0]
    assert mul.storages == (x,)
    assert add.storages == (y, x)
    assert add.results == (y,)
    assert (neg.storages, neg.freed) == ((y,), (x,))
    assert gaps == Gaps()


def test_a_storage_that_does_not_change_is_stored_once() -> None:
    weight = torch.ones(1000)
    steps, _ = recorded(lambda: [weight * 2, weight + 1])
    assert steps[0].call.storages["s0"] is steps[1].call.storages["s0"]
    steps, _ = recorded(lambda: [weight.add_(1), weight.add_(1)])
    assert steps[0].call.storages["s0"][0] != steps[1].call.storages["s0"][3]


@pytest.mark.parametrize("bounds", [{"most_calls": 2}, {"most_bytes": 2 * 4000}])
def test_the_last_calls_are_kept_within_bounds_and_the_rest_counted(bounds: dict[str, int]) -> None:
    def five() -> None:
        for size in range(5):
            torch.ones(1000).mul_(size)  # after mul_, each tensor has other bytes than the next

    steps, gaps = recorded(five, **bounds)
    assert len(steps) + gaps.cut == 10
    assert sum(s.call.elements for s in steps) <= 8000
    assert 0 < len(steps) <= 4


def test_a_bound_of_bytes_counts_what_is_kept_once_only_once() -> None:
    weight = torch.ones(1000)
    steps, gaps = recorded(lambda: [weight * n for n in range(5)], most_bytes=4000)
    assert len(steps) == 5
    assert gaps.cut == 0


def test_a_call_that_cannot_be_kept_is_counted() -> None:
    _, gaps = recorded(lambda: torch.ones(2).to_sparse().to_dense())
    assert gaps.missed
    assert gaps.cut == 0


def test_storages_freed_before_a_dropped_step_are_freed_before_the_next() -> None:
    steps, _ = recorded(program)
    with_end = [*steps, Step(taken(OPS.neg.default, torch.ones(1)), (99,))]
    assert sequence.part(with_end, {1, 4})[1].freed == steps[3].freed
    assert sequence.without_strangers(sequence.part(with_end, {4}))[0].freed == ()


def test_taken_apart_no_two_steps_share_a_storage() -> None:
    steps, _ = recorded(program)
    shared = torch.arange(6.0)
    apart = sequence.taken_apart([*steps, Step(taken(OPS.add.Tensor, shared[:4], shared[2:]), (7, 7))])
    numbers = [set(step.storages) for step in apart]
    assert sum(map(len, numbers)) == len(set.union(*numbers))
    assert apart[-1].storages[0] == apart[-1].storages[1]


def test_a_file_holds_the_steps_and_what_is_missing(tmp_path: Path) -> None:
    steps, _ = recorded(program)
    gaps = Gaps(3, (("to_sparse", 1),))
    sequence.save(tmp_path / "steps", steps, gaps)
    found, missing = sequence.load(tmp_path / "steps")
    assert missing == gaps
    assert [(s.storages, s.results, s.freed) for s in found] == [(s.storages, s.results, s.freed) for s in steps]
    assert [s.call.case for s in found] == [s.call.case for s in steps]


def test_recorded_calls_are_not_taken_for_a_sequence(tmp_path: Path) -> None:
    file.save(tmp_path / "calls", [taken(OPS.neg.default, torch.ones(1))])
    with pytest.raises(file.CallsError, match="without a sequence"):
        sequence.load(tmp_path / "calls")
