"""The process group of the device: collective calls of two processes, over gloo and copies on the host."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

PROGRAM = Path(__file__).parent / "process_group_program.py"

pytestmark = pytest.mark.skipif(
    not (torch.distributed.is_available() and torch.distributed.is_gloo_available()), reason="torch has no gloo"
)


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    """Return the results of each of the two processes."""
    program = [sys.executable, "-W", "ignore", str(PROGRAM)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout.splitlines()[-1]))


def test_the_default_backend_of_the_device_is_the_group_of_refnpu() -> None:
    assert torch.distributed.get_default_backend_for_device("npu:1") == "refnpu"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("sum_on_the_cpu", [11.0, 22.0]),
        ("sum_of_every_second", [11.0, 0.0, 22.0, 0.0]),
        ("sum_of_late_work", [23.0, 45.0]),
        ("sum_seen_on_another_stream", [12.0, 23.0]),
        ("completed_without_a_wait", [11.0, 22.0]),
        ("value_of_the_future", [1.0, 11.0, 22.0]),
    ],
)
def test_both_processes_have_the_sum(found: list[dict[str, Any]], call: str, expected: list[float]) -> None:
    assert [each[call] for each in found] == [expected, expected]


def test_each_process_has_the_result_on_its_own_device(found: list[dict[str, Any]]) -> None:
    assert [each["sum_on_the_device"] for each in found] == [[11.0, 22.0, 0], [11.0, 22.0, 1]]


def test_the_result_is_on_the_device_after_the_wait(found: list[dict[str, Any]]) -> None:
    expected = [[1.0, 2.0, 11.0, 22.0], [10.0, 20.0, 11.0, 22.0]]
    assert [each["before_and_after_the_wait"] for each in found] == expected


def test_a_batch_of_calls_is_refused(found: list[dict[str, Any]]) -> None:
    assert all("does not offer batches of calls" in each["batch_of_calls"] for each in found)
