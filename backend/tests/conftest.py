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
import refnpu  # registers the device
import refnpu.testing
import torch

AT_START = refnpu.testing.active_fault()


@pytest.fixture(autouse=True)
def quiet_backend() -> Iterator[None]:
    """Use one thread and one seed. After the test, set the fault again that was awake at the start of the run."""
    torch.set_num_threads(1)
    torch.manual_seed(0)  # the device's generators too
    yield
    refnpu.testing.set_fault(AT_START)


@pytest.fixture
def no_garbage() -> Iterator[None]:
    """Free the reference cycles of earlier tests, and collect no others while a test compares memory statistics."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def no_leak() -> Iterator[None]:
    """Fail a test that leaves blocks on the device."""
    gc.collect()
    before = torch.npu.memory_stats(0)["live_blocks"]
    yield
    gc.collect()
    assert torch.npu.memory_stats(0)["live_blocks"] == before


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program with the driver's behaviours."""
    return driver_program.compiled(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="session")
def driver_without_faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program as users build it who copy the backend: without faults. Debug information would hold names."""
    directory = tmp_path_factory.mktemp("driver_without_faults")
    return driver_program.compiled(directory, "-DREFNPU_FAULTS=0", "-g0")


@pytest.fixture(scope="session")
def race_checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program built with ThreadSanitizer."""
    return driver_program.compiled_for_races(tmp_path_factory.mktemp("race_checked"))


@pytest.fixture
def python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a script in a new interpreter. Keyword arguments are added to its environment."""

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
