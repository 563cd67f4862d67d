"""One thread, one seed, no fault awake, and a leak check for tests that ask for it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import driver_program
import pytest
import refnpu  # makes the device exist
import refnpu.testing
import torch

AT_START = refnpu.testing.active_fault()


@pytest.fixture(autouse=True)
def quiet_backend() -> Iterator[None]:
    """One thread and one seed; whatever fault a test woke is put back to sleep, but for the one of the run's start."""
    torch.set_num_threads(1)
    torch.manual_seed(0)  # the device's generators too
    yield
    refnpu.testing.set_fault(AT_START)


@pytest.fixture
def no_garbage() -> Iterator[None]:
    """Frees what earlier tests left in reference cycles, and nothing more while a test compares numbers of memory."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def no_leak() -> Iterator[None]:
    """Fails a test that leaves blocks behind on the device."""
    gc.collect()
    before = torch.npu.memory_stats(0)["live_blocks"]
    yield
    gc.collect()
    assert torch.npu.memory_stats(0)["live_blocks"] == before


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with the driver's behaviours."""
    return driver_program.compiled(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="session")
def driver_without_faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same program as somebody builds it who copies the backend; debug information would hold names."""
    directory = tmp_path_factory.mktemp("driver_without_faults")
    return driver_program.compiled(directory, "-DREFNPU_FAULTS=0", "-g0")


@pytest.fixture(scope="session")
def race_checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same program under ThreadSanitizer."""
    return driver_program.compiled_for_races(tmp_path_factory.mktemp("race_checked"))


@pytest.fixture
def python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script in a fresh interpreter; keyword arguments are its environment's additions."""

    def run(script: str, timeout: float = 600, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script],
            env=dict(os.environ) | environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run
