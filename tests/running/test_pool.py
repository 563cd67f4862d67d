"""Workers that run cells side by side: every cell once, whatever becomes of a worker."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from conformance.records import Gate, GateFailure, Observation
from conformance.running.pool import Gone, Pool, _Service, _write
from conformance.running.progress import Progress
from conformance.running.runner import Runner
from conformance.vocabulary import CellId, Status
from tests.running.work import Work

CELLS = [CellId("misc", f"op{i}", "float32", "contiguous") for i in range(100)]


@dataclass
class Stub:
    """A runner whose process does what the overload of a cell says."""

    broken: Gate = field(default_factory=Gate)
    lacking: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    searches: bool = False

    def gate(self) -> Gate:
        return self.broken

    def without(self, primitives: Sequence[str]) -> None:
        self.lacking = tuple(primitives)

    def count_on_subnormals(self, dtypes: Sequence[str]) -> None:
        self.kept = tuple(dtypes)

    def observe(self, cell: CellId) -> Observation:
        if cell.overload == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if cell.overload == "raises":
            raise ValueError(cell)
        if cell.overload == "sleeps":
            time.sleep(600)
        return Observation(
            cell, "native", Status.PASS, os.getpid(), wall_ns=1000, reason=" ".join(self.lacking + self.kept)
        )

    def searched(self, observation: Observation) -> Observation:
        return replace(observation, reason="searched")

    def close(self) -> None:
        """Do nothing: there is nothing to end."""


def complete(observation: Observation, without: Sequence[str]) -> Observation:
    return replace(observation, script=" ".join(["complete", *without]))


@contextmanager
def pool(stub: Stub | None = None, jobs: int = 2) -> Iterator[Pool]:
    made = Pool(cast("Callable[[], Runner]", lambda: stub or Stub()), jobs, complete)
    try:
        yield made
    finally:
        made.close()


def op(overload: str) -> CellId:
    return CellId("misc", overload, "float32", "contiguous")


@pytest.mark.parametrize(("cells", "jobs"), [(0, 2), (1, 3), (100, 1), (100, 3)])
def test_every_cell_is_observed_once_with_any_number_of_workers(cells: int, jobs: int) -> None:
    with pool(jobs=jobs) as workers:
        found = list(workers.run(CELLS[:cells]))
    assert Counter(o.cell for o in found) == Counter(CELLS[:cells])
    assert all(isinstance(o, Observation) and o.script == "complete" for o in found)


def test_each_worker_of_a_pool_runs_cells_in_its_own_process() -> None:
    with pool(jobs=3) as workers:
        found = [o for o in workers.run(CELLS) if isinstance(o, Observation)]
    processes = {o.cases for o in found}  # the stub puts its process id there
    assert len(processes) == 3
    assert os.getpid() not in processes


@pytest.mark.parametrize(("how", "said"), [("dies", "SIGKILL"), ("raises", "exit code 70")])
def test_a_worker_that_dies_loses_only_the_cell_that_it_runs(how: str, said: str) -> None:
    cells = [*CELLS[:40], op(how), *CELLS[40:]]
    for jobs in (1, 2):
        with pool(jobs=jobs) as workers:
            found = list(workers.run(cells))
        assert [o for o in found if isinstance(o, Gone)] == [Gone(op(how), said)]
        assert Counter(o.cell for o in found) == Counter(cells)


def test_a_run_ends_even_if_every_cell_kills_its_worker() -> None:
    with pool() as workers:
        assert [type(o) for o in workers.run([op("dies")] * 3)] == [Gone] * 3


def test_the_pool_runs_the_bringup_gate_in_a_worker() -> None:
    broken = Gate(GateFailure("copies are wrong", "a log"))
    with pool(Stub(broken)) as workers:
        assert workers.gate() == broken
    with pool() as workers:
        assert not workers.gate()
        assert len(list(workers.run(CELLS))) == len(CELLS)


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        (Gate(limits={"conj": GateFailure("conj: is wrong")}), "conj"),
        (Gate(subnormals=("float16",)), "float16"),
        (Gate(None, {"conj": GateFailure("conj: is wrong")}, ("float16",)), "conj float16"),
    ],
)
def test_all_workers_and_new_ones_work_by_the_result_of_the_gate(gate: Gate, told: str) -> None:
    with pool(Stub(gate)) as workers:
        workers.gate()
        found = [o for o in workers.run([op("dies"), *CELLS]) if isinstance(o, Observation)]
    assert {o.reason for o in found} == {told}
    assert {o.script for o in found} == {" ".join(["complete", *gate.limits])}
    assert len(found) == len(CELLS)


def test_each_worker_searches_for_leaks_after_its_last_cell() -> None:
    with pool(Stub(searches=True)) as workers:
        found = [o for o in workers.run(CELLS) if isinstance(o, Observation)]
    assert Counter(o.cell for o in found) == Counter(CELLS)
    last = {o.cases: o.reason for o in found}  # the last reason of each worker
    assert set(last.values()) == {"searched"}
    assert sum(o.reason == "searched" for o in found) == len(last)


def test_a_worker_reports_each_cell_once_that_it_runs_after_its_search_for_leaks() -> None:
    """After its search, the worker gets the cell of another worker that died."""
    incoming, requests = os.pipe()
    replies, outgoing = os.pipe()
    worker = _Service(cast("Callable[[], Runner]", lambda: Stub(searches=True)), complete, outgoing)
    for message in ([op("first").fields()], "end", [op("second").fields()], "end", "end"):
        _write(requests, json.dumps(message).encode())
    os.close(requests)
    worker.serve(incoming)
    os.close(outgoing)
    with os.fdopen(replies, "rb") as told:
        text = told.read()
    assert [text.count(name) for name in (b'"first"', b'"second"')] == [1, 1]


def test_closing_a_pool_does_not_wait_for_running_cells() -> None:
    with pool() as workers:
        run = workers.run([CELLS[0], op("sleeps"), op("sleeps")])
        assert next(run)
        began = time.monotonic()
    assert time.monotonic() - began < 60


def test_workers_run_cells_in_child_processes_of_their_own() -> None:
    cells = [replace(CELLS[0], layout=layout) for layout in ("contiguous", "expanded")]
    work = Work("ok", "fails")
    made = Pool(lambda: Runner(work, 600), 2)
    try:
        assert not made.gate()
        found = [o for o in made.run(cells) if isinstance(o, Observation)]
    finally:
        made.close()
    assert {(o.cell, o.status, o.cases) for o in found} == {(cell, Status.FAIL, 2) for cell in cells}


class Waiting(Work):
    """Work in which one cell does not end."""

    def run(
        self, cell: CellId, first: int, progress: Progress, stop: int | None = None
    ) -> tuple[Observation, int | None]:
        if cell == CELLS[1]:
            time.sleep(600)
        return super().run(cell, first, progress, stop)


def test_a_worker_that_is_killed_leaves_no_directory_of_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    work = Waiting("ok")
    made = Pool(lambda: Runner(work, 600), 2)
    try:
        assert next(made.run(CELLS[:2]))
        while len([*tmp_path.iterdir()]) < 2:
            time.sleep(0.01)
    finally:
        made.close()
    assert [*tmp_path.iterdir()] == []
