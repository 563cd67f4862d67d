"""Ops that are called at the same time: workspaces and plans shared by calls are found."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

import pytest
import torch

from conformance.scenarios import at_once
from conformance.scenarios.kinds_of_ops import CALLS, alone, are_alike, operands
from conformance.scenarios.model import Broken, NotOffered, Results

# The switch interval stays changed, and a thread may wait forever.
pytestmark = pytest.mark.forked

Kept = TypeVar("Kept")
CUMSUM, NEG, MAIN = torch.Tensor.cumsum, torch.neg, threading.get_ident()


def results_alone(folder: Path) -> str:
    """Return the path of a file with the results of all calls, each called alone.

    The test's own process makes the calls, since one of them computes a gradient.
    """
    wanted, lacking = at_once.results_alone("cpu")
    assert not lacking
    torch.save(wanted, folder / "wanted")
    return str(folder / "wanted")


def broken(results: Results) -> set[str]:
    return {name for name, one in results.items() if isinstance(one, Broken)}


@pytest.mark.parametrize("kind", at_once.PROCESSES)
def test_calls_of_threads_that_share_nothing_are_right(kind: str, tmp_path: Path) -> None:
    file = results_alone(tmp_path)
    found = at_once.work_of_threads("cpu", kind, "one_stream", file)
    assert found.keys() == CALLS.keys()
    assert broken(found) == set()


class _Shared(Generic[Kept]):
    """A place that the calls of all threads share. The first call waits until another thread has used the place."""

    def __init__(self) -> None:
        self._kept, self._changed = list[Kept](), threading.Condition()

    def replaced(self, mine: Kept) -> Kept:
        """Store ``mine``. Return it, or in the first call, the value with which another call replaced it.

        If all other calls store the same object, the first call gets its own too.
        """
        with self._changed:
            self._kept.append(mine)
            self._changed.notify_all()
            if len(self._kept) > 1:
                return mine
            others = (at_once.THREADS - 1) * at_once.IN_A_ROW
            self._changed.wait_for(lambda: self._other(mine) is not mine or len(self._kept) > others)
            return self._other(mine)

    def _other(self, mine: Kept) -> Kept:
        return next((one for one in self._kept if one is not mine), mine)


def _in_one_workspace() -> Callable[[torch.Tensor, int], torch.Tensor]:
    kept = {dim: _Shared[torch.Tensor]() for dim in (0, 1)}
    return lambda x, dim: kept[dim].replaced(CUMSUM(x, dim))


def test_a_workspace_of_all_threads_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = results_alone(tmp_path)
    monkeypatch.setattr(torch.Tensor, "cumsum", _in_one_workspace())
    found = at_once.work_of_threads("cpu", "same", "one_stream", file)
    assert broken(found) == {"cumsum", "cumsum_of_vector"}
    assert found["cumsum"] == Broken(("# 4 threads of a new process make this call at once", "x.cumsum(1)"), 1, None)


def test_a_plan_of_another_thread_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = results_alone(tmp_path)
    ops = {name: getattr(torch, name) for name in ("exp", "sin", "neg")}

    def found(kind: str) -> set[str]:
        plan = _Shared[Callable[[torch.Tensor], torch.Tensor]]()
        for name, op in ops.items():
            monkeypatch.setattr(torch, name, lambda x, op=op: plan.replaced(op)(x))
        return broken(at_once.work_of_threads("cpu", kind, "one_stream", file))

    assert found("same") == set()
    mixed = found("mixed")
    assert len(mixed) == 1
    assert mixed <= ops.keys()


def test_a_call_that_other_threads_keep_from_working_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = results_alone(tmp_path)
    running, refused = threading.Lock(), threading.Event()

    def neg(x: torch.Tensor) -> torch.Tensor:
        if not running.acquire(blocking=False):
            refused.set()
            raise RuntimeError("the device is busy")
        refused.wait(600)
        running.release()
        return NEG(x)

    monkeypatch.setattr(torch, "neg", neg)
    found = at_once.work_of_threads("cpu", "same", "one_stream", file)
    assert broken(found) == {"neg"}
    assert isinstance(found["neg"], Broken)
    assert found["neg"].error == ("RuntimeError", "the device is busy")


def test_threads_that_wait_for_each_other_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = results_alone(tmp_path)
    monkeypatch.setattr(at_once, "PATIENCE", 0.5)
    monkeypatch.setattr(torch, "exp", lambda _: time.sleep(60))
    with pytest.raises(RuntimeError, match="4 threads have not ended a step"):
        at_once.work_of_threads("cpu", "same", "one_stream", file)


def test_steps_may_take_long_together(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(at_once, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    ended = list[int]()

    def work(i: int, begin: Callable[[], object]) -> None:
        for _ in range(3):
            begin()
            clock[0] += 0.4 * at_once.PATIENCE  # in each of two threads
        begin()
        time.sleep(0.5)  # more time than the limit of one step has passed since the beginning
        ended.append(i)

    at_once.run_threads(2, work)
    assert sorted(ended) == [0, 1]


def test_a_call_that_is_not_offered_alone_is_asked_of_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_this_process(_: str, work: Any, arguments: list[tuple[Any, ...]]) -> list[Results]:
        if arguments[0][2] == "own_streams":
            raise NotOffered("streams")
        return [dict.fromkeys(torch.load(arguments[0][3]), torch.tensor(True))]

    def refused(_: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("no kernel for neg")

    monkeypatch.setattr(at_once, "results_of", in_this_process)
    monkeypatch.setattr(torch, "neg", refused)
    found = at_once.calls_of_threads("cpu:0")
    assert str(found["one_stream.same.neg"]) == "neg alone: no kernel for neg"
    assert {name for name, one in found.items() if isinstance(one, NotOffered)} == {
        "own_streams", "one_stream.same.neg", "one_stream.mixed.neg",
    }  # fmt: skip
    of_one_stream = {name for name in at_once.calls_of_threads("cpu") if name.startswith("one_stream")}
    assert found.keys() == {*of_one_stream, "own_streams"}


def test_calls_on_two_streams_that_share_nothing_are_right() -> None:
    assert broken(at_once.calls_on("cpu")) == set()


def test_a_workspace_of_two_streams_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = torch.empty(0)

    def cumsum(x: torch.Tensor, dim: int) -> torch.Tensor:
        return torch.cumsum(
            x, dim, out=workspace.resize_(x.shape)
        )  # like a stream that has not yet run the copy out of it

    monkeypatch.setattr(torch.Tensor, "cumsum", cumsum)
    assert broken(at_once.calls_on("cpu")) == {"cumsum", "cumsum_of_vector"}


def test_the_results_of_two_operands_differ() -> None:
    given = [operands("cpu", i, at_once.ROWS) for i in (0, 1)]
    found = {name: [made for one in given if isinstance(made := alone(name, one), list)] for name in CALLS}
    assert {name for name, (one, other) in found.items() if not are_alike(one, one) or are_alike(one, other)} == set()
