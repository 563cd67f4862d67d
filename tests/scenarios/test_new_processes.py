"""Processes that a scenario starts: their results and errors, and the end of all of them when one dies."""

from __future__ import annotations

import os
import signal
import time

import pytest
import torch

from conformance.scenarios.model import NotOffered, Results
from conformance.scenarios.new_processes import ProcessDied, results_of

# If a process has started the server of new processes, its forked children cannot start new processes.
pytestmark = pytest.mark.forked


def numbers(number: float, *, refuses: bool = False) -> Results:
    return {"x": torch.full((2,), number), "y": NotOffered("float8") if refuses else torch.ones(1)}


def fails(how: str) -> Results:
    if how == "raises":
        raise ValueError("no such number\nand more")
    if how == "refuses":
        raise NotImplementedError("no such call")
    if how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "waits":
        time.sleep(3600)
    return {}


def test_results_are_those_of_the_processes_in_order() -> None:
    first, second = results_of("cpu", numbers, [(1.0,), (2.0,)])
    assert [str(first["x"]), str(second["x"])] == ["tensor([1., 1.])", "tensor([2., 2.])"]
    assert list(first) == ["x", "y"]


def test_a_result_that_is_not_offered_comes_back_as_such() -> None:
    (found,) = results_of("cpu", refusing, [(1.0,)])
    assert isinstance(found["y"], NotOffered)
    assert str(found["y"]) == "float8"


def refusing(number: float) -> Results:
    return numbers(number, refuses=True)


@pytest.mark.parametrize(
    ("how", "kind", "said"),
    [
        ("raises", RuntimeError, r"^process 1 raised ValueError: no such number$"),
        ("refuses", NotOffered, r"^no such call$"),
        ("dies", ProcessDied, r"^process 1 died: signal 9$"),
    ],
)
def test_the_error_of_one_process_ends_the_others(how: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        results_of("cpu", fails, [("waits",), (how,)])
