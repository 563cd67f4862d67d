"""Device memory after a program: a leak is found, and a cache does not count as a leak."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformance import backends
from conformance.bare_device import BareDevice
from conformance.judging import programs
from conformance.scenarios.model import NotOffered, Results, Scenario
from conformance.vocabulary import Check

BLOCK = 512


class Device(backends.Capabilities):
    """CPU as a device whose blocks are counted by an adapter, or with ``bare`` by torch alone."""

    def __init__(self, bare: bool = False) -> None:
        super().__init__(BareDevice("hand", "cpu:0"), "torch")
        self.bare = bare
        self.blocks = 0

    def live_memory(self) -> tuple[int, int]:
        return self.blocks, self.blocks * BLOCK


def runs_until_judged(device: Device, keep: Callable[[int], int]) -> tuple[list[str], int]:
    """Judge a program that keeps blocks in each run. Return the failed checks, and the number of its device runs."""
    runs = 0

    def run(on: str) -> Results:
        nonlocal runs
        if on != "cpu":
            device.blocks += keep(runs)
            runs += 1
        return {"x": torch.ones(2)}

    found = programs.judge(Scenario("made:made", run, slow=True), device, lambda _: None)
    assert [m.facts for m in found.mismatches if m.check is Check.LEAK] in ([], [_of_one_block()])
    return [m.check.name for m in found.mismatches], runs


def _of_one_block() -> dict[str, object]:
    return {"kind": "device_leak", "blocks": 1, "bytes": BLOCK}


@pytest.mark.parametrize(("bare", "more"), [(False, programs.MORE_RUNS), (True, programs.MORE_RUNS_BY_TORCH)])
def test_a_program_that_keeps_a_block_in_each_run_leaks(bare: bool, more: int) -> None:
    assert runs_until_judged(Device(bare), lambda _: 1) == (["LEAK"], 1 + more)


def test_a_program_that_keeps_nothing_runs_once() -> None:
    assert runs_until_judged(Device(), lambda _: 0) == ([], 1)


def test_a_program_that_gives_back_memory_of_an_earlier_one_runs_once() -> None:
    device = Device()
    device.blocks = 5
    assert runs_until_judged(device, lambda _: -1) == ([], 1)


def test_what_is_kept_in_the_first_runs_alone_is_a_cache() -> None:
    assert runs_until_judged(Device(), lambda run: int(run < 2)) == ([], 3)


def test_workspaces_of_32_streams_are_no_leak_in_the_numbers_of_torch() -> None:
    assert runs_until_judged(Device(bare=True), lambda run: int(run < 32)) == ([], 33)


LACKING = NotOffered("no such thing here")


@pytest.mark.parametrize(
    ("of_device", "missing"),
    [
        (("a", "b_x", "b_y"), False),
        (("a",), True),
        (("a", "b_x"), True),
        (("a", "b_x", "b_y", "c"), True),
        (("a", "b"), False),  # "b" stands for "b_x" and "b_y"
        (("b",), True),
        (("a", "b", "b_x"), False),
    ],
)
def test_a_result_that_is_missing_is_found_though_another_one_is_not_offered(
    of_device: tuple[str, ...], missing: bool
) -> None:
    def run(on: str) -> Results:
        names = ("a", "b_x", "b_y") if on == "cpu" else of_device
        results: Results = {name: LACKING if name == "b" else torch.ones(2) for name in names}
        return {**results, "other": torch.ones(2) if on == "cpu" else LACKING}

    found = programs.judge(Scenario("made:made", run, slow=True), Device(), lambda _: None)
    assert [m.facts["kind"] for m in found.mismatches] == (["count"] if missing else [])
    assert "no such thing here" in found.left_out
