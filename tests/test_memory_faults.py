"""What each memory lane adds: faults that it finds, named by it, where a plain lane sees less or nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("refnpu", reason="the reference NPU is not installed")

ROOT = Path(__file__).parents[1]
REDZONE = {"REFNPU_ALLOCATOR": "redzone"}
GUARD = {"REFNPU_ALLOCATOR": "guard"}
GUARD_LEFT = {"REFNPU_ALLOCATOR": "guard_left"}
POOL = {"REFNPU_ALLOCATOR": "pool"}
PLAIN = {"REFNPU_ALLOCATOR": "aligned_alloc"}
ZERO = {"REFNPU_FILL_FRESH": "zero"}

FILL = ("fill_.Scalar", "float32", "contiguous")
SCATTER = ("masked_scatter_", "float32", "transposed")
SELECT = ("index_select.out", "float32", "contiguous")
TRIANGLE = ("triu", "float32", "contiguous")
COUNT = ("nonzero", "float32", "contiguous")

Cell = tuple[str, str, str]

# Run in a process of its own, for the allocator mode is chosen when a process starts.
OBSERVE = """
import json, sys
from conformance import backends
from conformance.runner import Runner
from conformance.suite import Selection, Suite
from refnpu import testing
from tests.test_faults import observe

suite = Suite(backends.find("refnpu"), Selection(), seed=20)
testing.set_fault(sys.argv[1] or None)
runner = Runner(suite, 60)
found = observe(suite, *sys.argv[2:]).to_json() if sys.argv[2:] else {}
print(json.dumps(found | {"broken": runner.gate(suite.bring_up)}))
"""


@cache
def _observe(lane: tuple[tuple[str, str], ...], fault: str, cell: tuple[str, ...]) -> dict[str, Any]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REFNPU_")}
    command = [sys.executable, "-W", "ignore", "-c", OBSERVE, fault, *cell]
    done = subprocess.run(command, env=clean | dict(lane), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def observe(lane: Mapping[str, str], fault: str, cell: tuple[str, ...]) -> dict[str, Any]:
    return _observe(tuple(sorted(lane.items())), fault, cell)


def first_failure(found: dict[str, Any]) -> tuple[str, str]:
    assert found["failures"], found
    return found["failures"][0]["check"], found["failures"][0]["message"]


@pytest.mark.parametrize(
    ("lane", "cell"),
    [
        (REDZONE, FILL), (GUARD_LEFT, FILL), (GUARD, SCATTER), (GUARD, SELECT), (ZERO, TRIANGLE), (POOL, COUNT),
    ],
)  # fmt: skip
def test_the_clean_backend_passes(lane: Mapping[str, str], cell: Cell) -> None:
    found = observe(lane, "", cell)
    assert (found["status"], found["broken"]) == ("pass", "")


@pytest.mark.parametrize(
    ("fault", "where"),
    [("fill_one_past_end", "written past its end"), ("writes_before_start", "written before its start")],
)
def test_a_redzone_names_the_argument_the_side_and_the_offset(fault: str, where: str) -> None:
    check, message = first_failure(observe(REDZONE, fault, FILL))
    assert check == "redzone"
    assert "redzone: self: 0x" in message
    assert f"{where}, first at byte offset" in message


def test_without_a_redzone_a_write_outside_the_storage_is_not_seen() -> None:
    assert observe(PLAIN, "fill_one_past_end", FILL)["status"] == "pass"


@pytest.mark.parametrize(
    ("lane", "fault", "cell"),
    [
        (GUARD, "fill_one_past_end", FILL),
        (GUARD_LEFT, "writes_before_start", FILL),
        (GUARD, "index_select_reads_past_end", SELECT),
        (GUARD, "source_freed_early", SCATTER),
    ],
)
def test_a_guard_page_stops_the_very_case(lane: Mapping[str, str], fault: str, cell: Cell) -> None:
    found = observe(lane, fault, cell)
    assert (found["status"], found["signal"]) == ("crash", "SIGSEGV")
    assert found["failures"][0]["case"].startswith("ops/")


def test_a_result_that_is_right_only_over_zeros_is_found_by_other_fresh_memory() -> None:
    check, message = first_failure(observe(ZERO, "triangle_not_cleared", TRIANGLE))
    assert check == "uninitialized"
    assert "other bits when fresh device memory holds 0xFF" in message


def test_a_scratch_block_that_grows_is_a_leak() -> None:
    check, message = first_failure(observe(POOL, "scratch_grows", COUNT))
    assert check == "leak"
    assert "bytes are live after the call" in message


@pytest.mark.parametrize(("lane", "fault"), [(PLAIN, "block_too_short"), (POOL, "pool_hands_out_twice")])
def test_the_gate_stops_at_memory_that_is_not_the_caller_s_own(lane: Mapping[str, str], fault: str) -> None:
    assert observe(lane, fault, ())["broken"]
