"""The checking allocator, in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from conformance.support import checked_heap

# Allocates 100 bytes, writes as many as its argument says, and frees them, with the checking allocator if present.
WRITES = """
import ctypes, sys
from conformance.support import checked_heap
checked_heap.restart()
allocate, release = ctypes.pythonapi.PyMem_RawMalloc, ctypes.pythonapi.PyMem_RawFree
allocate.restype = ctypes.c_void_p
block = ctypes.c_void_p(allocate(ctypes.c_size_t(100)))
ctypes.memset(block, 1, int(sys.argv[1]))
release(block)
print(sys.argv[1])
"""
needs_allocator = pytest.mark.skipif(not checked_heap.is_here(), reason="this C library has no checking allocator")


def run(written: int) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "MALLOC_CHECK_"}
    command = [sys.executable, "-c", WRITES, str(written)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@needs_allocator
def test_a_process_that_writes_past_a_block_ends_when_it_is_freed() -> None:
    assert run(101).returncode == -signal.SIGABRT


def test_a_process_that_stays_within_its_block_goes_on_with_its_arguments() -> None:
    found = run(100)
    assert (found.returncode, found.stdout) == (0, "100\n")


def test_a_process_that_runs_with_it_already_is_not_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_CHECK_", "3")
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("restarted"))
    checked_heap.restart()


def test_without_the_allocator_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_CHECK_", raising=False)
    monkeypatch.setattr(checked_heap, "_LIBRARY", "libno_such.so")
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("restarted"))
    assert not checked_heap.is_here()
    checked_heap.restart()
