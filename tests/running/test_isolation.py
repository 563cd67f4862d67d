"""Forked and spawned children: the same interface and replies, and the choice between them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from conformance import backends
from conformance.backends import Capabilities
from conformance.contexts.model import devices_of
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.running.cell_runner import CellRunner
from conformance.running.child import Child
from conformance.running.isolation import AUTO, FORK, SPAWN, Spawning, choose
from conformance.running.protocol import Stretch
from conformance.running.runner import Runner
from conformance.vocabulary import CellId, Status

CELL = CellId("masking", "masked_fill_.Scalar", "float32", "contiguous")
SELECTION = Selection(layouts=frozenset({"contiguous", "step2"}), dtypes=frozenset({"float32"}))


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan(backends.find("torch:cpu"), SELECTION, seed=20)


@pytest.fixture(scope="module")
def spawning(plan: Plan) -> Iterator[Spawning]:
    spawning = Spawning(plan.recipe())
    yield spawning
    spawning.close()


def test_the_user_chooses_the_isolation_before_the_backend_does() -> None:
    assert choose(AUTO, "fork", device_in_use=False) == (FORK, "")
    assert choose(AUTO, "spawn", device_in_use=False) == (SPAWN, "")
    assert choose(FORK, "spawn", device_in_use=False) == (FORK, "")
    assert choose(SPAWN, "fork", device_in_use=True) == (SPAWN, "")


def test_children_are_spawned_with_a_notice_if_the_device_is_in_use() -> None:
    mode, said = choose(AUTO, "fork", device_in_use=True)
    assert mode == SPAWN
    assert said.startswith("cells run in spawned processes: this process has used the device")
    with pytest.raises(ValueError, match="load the backend without using its device, or give --isolation spawn"):
        choose(FORK, "fork", device_in_use=True)


def test_isolation_is_that_of_the_adapter_and_fork_without_one() -> None:
    adapter = SimpleNamespace(name="demo", device="cpu", isolation="spawn")
    assert Capabilities(adapter, "demo").isolation == "spawn"
    assert backends.find("torch:cpu").isolation == "fork"


def test_a_device_is_in_use_if_its_torch_module_is_initialized(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Capabilities(SimpleNamespace(name="demo", device="mydev"), "demo")
    assert not backend.in_use()
    monkeypatch.setattr(torch, "mydev", SimpleNamespace(is_initialized=lambda: True), raising=False)
    assert backend.in_use()
    assert not backends.find("torch:cpu").in_use()


def test_children_are_spawned_if_a_fork_says_that_it_could_not_use_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.getpid()
    module = SimpleNamespace(is_initialized=lambda: False, _is_in_bad_fork=lambda: os.getpid() != here)
    monkeypatch.setattr(torch, "mydev", module, raising=False)
    forking, spawning = (SimpleNamespace(name="demo", device="mydev", isolation=mode) for mode in (FORK, SPAWN))
    assert Capabilities(forking, "demo").in_use()
    assert not Capabilities(spawning, "demo").in_use()  # a spawned child needs no fork
    monkeypatch.setattr(module, "_is_in_bad_fork", lambda: False)
    assert not Capabilities(forking, "demo").in_use()


def test_devices_are_counted_without_an_end_to_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    module = SimpleNamespace(device_count=lambda: counted.append(1) or 2)  # type: ignore[func-returns-value]
    monkeypatch.setattr(torch, "mydev", module, raising=False)
    assert devices_of(Capabilities(SimpleNamespace(name="demo", device="mydev"), "demo")) == 2
    assert counted == []
    assert devices_of(Capabilities(SimpleNamespace(name="demo", device="mydev", isolation=SPAWN), "demo")) == 2
    assert counted == [1]


def test_a_plan_made_from_a_recipe_has_the_same_cases(plan: Plan) -> None:
    again = Plan.made_from(plan.recipe())
    assert (again.selection, again.backend.device, again.case_ids(CELL)) == (SELECTION, "cpu", plan.case_ids(CELL))


def test_a_spawned_child_observes_the_same_as_a_forked_child(plan: Plan, spawning: Spawning) -> None:
    runner = Runner(CellRunner(plan), 600, spawning, inquiry_s=0)
    assert not runner.gate()
    spawned = runner.observe(CELL)
    forked = Runner(CellRunner(plan), 600).observe(CELL)
    assert (spawned.status, spawned.cases, spawned.compared) == (forked.status, forked.cases, forked.compared)
    child = spawning.fresh()
    assert isinstance(child.ask(Stretch(CELL, 0, 1).request(), 60), dict)
    child.kill()


def test_the_spare_child_takes_over_from_a_dead_spawned_child(
    plan: Plan, spawning: Spawning, monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[Child] = []
    fresh = spawning.fresh

    def kept() -> Child:
        children.append(fresh())
        return children[-1]

    monkeypatch.setattr(spawning, "fresh", kept)
    runner = Runner(CellRunner(plan), 600, spawning, inquiry_s=0)
    assert runner.observe(CELL).status is Status.PASS
    os.kill(children[0].pid, signal.SIGKILL)
    died = runner.observe(CELL)
    assert (died.status, died.signal) == (Status.CRASH, "SIGKILL")
    assert died.cases == len(plan.case_ids(CELL))
    assert len(children) == 2
    for child in children:
        child.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_spawned_children_end_with_their_parent() -> None:
    code = (
        "import os, signal\n"
        "from conformance.running.isolation import Spawning\n"
        "spawning = Spawning({'backend': 'torch:cpu'})\n"
        "print(spawning.fresh().pid, spawning.fresh().pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False).stdout
    deadline = time.monotonic() + 120
    while any(runs(int(pid)) for pid in said.split()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
