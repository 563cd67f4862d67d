"""Faults that a memory lane finds and names, where a plain lane finds less or nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conformance.explain import describe
from conformance.records import CaseFailure

pytest.importorskip("refnpu", reason="the reference NPU is not installed")

ROOT = Path(__file__).parents[1]
REDZONE = {"REFNPU_ALLOCATOR": "redzone"}
GUARD = {"REFNPU_ALLOCATOR": "guard"}
GUARD_LEFT = {"REFNPU_ALLOCATOR": "guard_left"}
POOL = {"REFNPU_ALLOCATOR": "pool", "REFNPU_CAPACITY": str(1 << 30)}
LATE = {"REFNPU_LATE": "1", "REFNPU_DELAY_US": "random:1", "REFNPU_CAPACITY": str(1 << 30)}
PLAIN = {"REFNPU_ALLOCATOR": "aligned_alloc"}
ZERO = {"REFNPU_FILL_FRESH": "zero"}

FILL = ("fill_.Scalar", "float32", "contiguous")
SCATTER = ("masked_scatter_", "float32", "transposed")
SELECT = ("index_select.out", "float32", "contiguous")
TRIANGLE = ("triu", "float32", "contiguous")
COUNT = ("nonzero", "float32", "contiguous")

Cell = tuple[str, ...]
NO_CELL: Cell = ()
# Programs.
STATISTICS = ("devices:statistics_add_up",)
GROWN = ("storages:grown_tensor_keeps_elements",)
FREED = ("memory_needed:freed_memory_is_used_again",)
IN_USE = ("memory_needed:memory_in_use_is_waited_for",)
OWN = ("memory_needed:devices_have_memory_of_their_own",)
WALK = ("walks:tensors_on_streams",)
NUMBERS = ("memory_numbers:numbers_of_the_device",)
SEEDS = ("seeding:seeds_of_the_module",)

# By lane: fault ("" for none) → cells to try. One process per lane: the allocator mode is set when a process starts.
TRIED: dict[str, tuple[dict[str, str], dict[str, list[Cell]]]] = {
    "redzone": (REDZONE, {"": [FILL], "fill_one_past_end": [FILL], "writes_before_start": [FILL]}),
    "guard": (
        GUARD,
        {
            "": [FILL, SCATTER, SELECT],
            "fill_one_past_end": [FILL],
            "index_select_reads_past_end": [SELECT],
            "source_freed_early": [SCATTER],
        },
    ),
    "guard_left": (GUARD_LEFT, {"": [FILL], "writes_before_start": [FILL]}),
    "pool": (
        POOL,
        {
            "": [COUNT, STATISTICS, GROWN, FREED, IN_USE, OWN, WALK, NUMBERS, SEEDS],
            "scratch_grows": [COUNT],
            "pool_hands_out_twice": [NO_CELL],
            "reserved_not_lowered": [STATISTICS],
            "pool_rounds_down": [GROWN],
            "empty_cache_keeps_large": [STATISTICS],
            "pool_middle_block_merges_one_side": [STATISTICS],
            "empty_cache_of_current_device_alone": [STATISTICS],
            "pool_keeps_cached_when_full": [FREED],
            "pool_takes_from_other_device": [WALK],
            "pool_peak_counts_requests": [NUMBERS],
            "manual_seed_all_of_two_devices": [SEEDS],
            "capacity_shared_by_devices": [OWN],
        },
    ),
    "late": (LATE, {"": [FREED, IN_USE], "held_memory_is_out_of_memory": [IN_USE]}),
    "zero": (ZERO, {"": [TRIANGLE], "triangle_not_cleared": [TRIANGLE]}),
    "plain": (PLAIN, {"fill_one_past_end": [FILL], "block_too_short": [NO_CELL]}),
}

OBSERVE = """
import json, sys
from conformance import backends
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner
from conformance import ops
from conformance.vocabulary import CellId
from refnpu import testing

work = CellRunner(Plan(backends.find("refnpu"), Selection(), seed=20))
found = []
for fault, cells in json.loads(sys.argv[1]).items():
    testing.set_fault(fault or None)
    for cell in cells:
        runner = Runner(work, 600)
        broken = str(runner.gate())
        overload, *rest = cell or ("",)
        named = CellId(ops.facts(overload).family, overload, *rest) if rest else CellId.of_scenario(overload)
        seen = runner.observe(named).to_json() if cell else {}
        found.append(seen | {"broken": broken})
        runner.close()
print(json.dumps(found))
"""


@cache
def observed(lane: str) -> dict[tuple[str, Cell], dict[str, Any]]:
    """Return, by fault and cell, the observation of the cell, with the gate's error as ``broken``."""
    variables, tried = TRIED[lane]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REFNPU_")}
    command = [sys.executable, "-W", "ignore", "-c", OBSERVE, json.dumps(tried)]
    done = subprocess.run(command, env=clean | variables, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    keys = [(fault, cell) for fault, cells in tried.items() for cell in cells]
    return dict(zip(keys, json.loads(done.stdout.splitlines()[-1]), strict=True))


def observe(lane: str, fault: str, cell: Cell) -> dict[str, Any]:
    return observed(lane)[fault, cell]


def first_failure(found: dict[str, Any]) -> tuple[str, str]:
    assert found["failures"], found
    first = CaseFailure.from_json(found["failures"][0])
    return first.check, "\n".join(describe.findings(first))


@pytest.mark.parametrize(
    ("lane", "cell"),
    [(lane, cell) for lane, (_, tried) in TRIED.items() for cell in tried.get("", [])],
)
def test_the_clean_backend_passes(lane: str, cell: Cell) -> None:
    found = observe(lane, "", cell)
    assert (found["status"], found["broken"]) == ("pass", "")


@pytest.mark.parametrize(
    ("fault", "where"),
    [("fill_one_past_end", "written past its end"), ("writes_before_start", "written before its start")],
)
def test_a_redzone_names_the_argument_the_side_and_the_offset(fault: str, where: str) -> None:
    check, message = first_failure(observe("redzone", fault, FILL))
    assert check == "redzone"
    assert "redzone: self: 0x" in message
    assert f"{where}, first at byte offset" in message


def test_without_a_redzone_a_write_outside_the_storage_is_not_seen() -> None:
    assert observe("plain", "fill_one_past_end", FILL)["status"] == "pass"


@pytest.mark.parametrize(
    ("lane", "fault", "cell", "kernel", "where"),
    [
        ("guard", "fill_one_past_end", FILL, "fill", "nearest live block"),
        ("guard_left", "writes_before_start", FILL, "fill", "nearest live block"),
        ("guard", "index_select_reads_past_end", SELECT, "index_select", "nearest live block"),
        ("guard", "source_freed_early", SCATTER, "masked_scatter_", "inside"),
    ],
)
def test_a_guard_page_stops_the_very_case_and_names_the_kernel(
    lane: str, fault: str, cell: Cell, kernel: str, where: str
) -> None:
    found = observe(lane, fault, cell)
    assert (found["status"], found["signal"]) == ("crash", "SIGSEGV")
    assert f"in kernel '{kernel}': {where}" in found["failures"][0]["death"]["log"]
    assert found["failures"][0]["case"].startswith("ops/")


def test_a_result_that_needs_zeroed_memory_fails_with_a_fill_pattern() -> None:
    check, message = first_failure(observe("zero", "triangle_not_cleared", TRIANGLE))
    assert check == "uninitialized"
    assert "other bits when fresh device memory holds 0xFF" in message


def test_a_scratch_block_that_grows_is_a_leak() -> None:
    check, message = first_failure(observe("pool", "scratch_grows", COUNT))
    assert check == "leak"
    assert "bytes are live after the call" in message


@pytest.mark.parametrize(
    ("fault", "program"),
    [
        ("reserved_not_lowered", STATISTICS),
        ("pool_rounds_down", GROWN),
        ("empty_cache_keeps_large", STATISTICS),
        ("pool_middle_block_merges_one_side", STATISTICS),
        ("empty_cache_of_current_device_alone", STATISTICS),
        ("pool_keeps_cached_when_full", FREED),
        ("pool_takes_from_other_device", WALK),
        ("pool_peak_counts_requests", NUMBERS),
        ("manual_seed_all_of_two_devices", SEEDS),
        ("capacity_shared_by_devices", OWN),
    ],
)
def test_a_program_finds_what_a_pool_counts_rounds_or_keeps_wrong(fault: str, program: Cell) -> None:
    check, _ = first_failure(observe("pool", fault, program))
    assert check == "value"


def test_a_program_finds_that_memory_in_use_is_not_waited_for() -> None:
    check, _ = first_failure(observe("late", "held_memory_is_out_of_memory", IN_USE))
    assert check == "value"


@pytest.mark.parametrize(("lane", "fault"), [("plain", "block_too_short"), ("pool", "pool_hands_out_twice")])
def test_the_gate_stops_at_memory_that_is_not_the_caller_s_own(lane: str, fault: str) -> None:
    assert observe(lane, fault, NO_CELL)["broken"]
