"""The guarded heap, in processes of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.support import guarded_heap

pytestmark = pytest.mark.skipif(
    not (sys.platform.startswith("linux") and any(map(shutil.which, ("cc", "gcc", "clang")))),
    reason="the guarded heap needs Linux and a C compiler",
)

PRELUDE = """
import ctypes
from conformance.support import guarded_heap
assert guarded_heap.restart()
c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes, c.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
c.realloc.restype, c.realloc.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name != "CONFORMANCE_GUARDED_HEAP"}
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + code], env=variables, capture_output=True, text=True, check=False
    )


DEADLY = {
    "a read behind a block": "ctypes.string_at(c.malloc(64), 65)",
    "a write behind a block of no bytes": "ctypes.memset(c.malloc(0) + 40, 1, 8)",
    "a read of a freed block of two pages": "block = c.malloc(8000)\n    c.free(block)\n    ctypes.string_at(block, 8)",
    "a read behind a block that has grown": "ctypes.string_at(c.realloc(c.malloc(8), 4096), 4097)",
}


@pytest.mark.parametrize("what", DEADLY)
def test_it_ends_the_process(what: str) -> None:
    found = run(f"with guarded_heap.watched(0):\n    {DEADLY[what]}\nprint('alive')")
    assert (found.stdout, found.returncode) == ("", 128 + signal.SIGSEGV), found.stderr


def test_a_write_before_a_block_ends_the_process_when_the_block_is_freed() -> None:
    found = run("""
with guarded_heap.watched(0):
    block = c.malloc(64)
    ctypes.memset(block - 8, 7, 8)
    print('written', flush=True)
    c.free(block)
print('alive')
""")
    assert (found.stdout, found.returncode) == ("written\n", 128 + signal.SIGABRT), found.stderr


MANY = 3000  # blocks, after which a page that was freed has been used again


def test_a_freed_page_holds_what_fresh_memory_holds() -> None:
    found = run("""
for byte in (0, 0x40):
    with guarded_heap.watched(byte):
        block = c.malloc(64)
        ctypes.memset(block, 7, 64)
        c.free(block)
        print(ctypes.string_at(block, 64) == bytes([byte]) * 64)
""")
    assert (found.returncode, found.stdout) == (0, "True\nTrue\n"), found.stderr


def test_a_freed_page_is_used_again_and_a_read_behind_its_block_still_ends_the_process() -> None:
    found = run(f"""
with guarded_heap.watched(0):
    pages = set()
    for n in range({MANY}):
        block = c.malloc(64)
        pages.add(block // 4096)
        c.free(block)
    print(len(pages) < {MANY} // 2, flush=True)
    ctypes.string_at(block, 65)
print('alive')
""")
    assert (found.stdout, found.returncode) == ("True\n", 128 + signal.SIGSEGV), found.stderr


def test_a_write_to_a_freed_page_ends_the_process_when_the_page_is_used_again() -> None:
    found = run(f"""
with guarded_heap.watched(0):
    block = c.malloc(64)
    c.free(block)
    ctypes.memset(block + 60, 7, 1)
    print('written', flush=True)
    for n in range({MANY}):
        c.free(c.malloc(64))
print('alive')
""")
    assert (found.stdout, found.returncode) == ("written\n", 128 + signal.SIGABRT), found.stderr


def test_pages_that_many_freed_ones_wait_before_are_inaccessible() -> None:
    found = run(f"""
with guarded_heap.watched(0):
    blocks = [c.malloc(64) for _ in range(2 * {MANY})]
    for block in blocks:
        c.free(block)
    print(ctypes.string_at(blocks[0], 1), flush=True)
    ctypes.string_at(blocks[-1], 1)
print('alive')
""")
    assert (found.stdout, found.returncode) == ("b'\\x00'\n", 128 + signal.SIGSEGV), found.stderr


@pytest.mark.parametrize("elements", [1, 3, 16])
def test_a_read_behind_a_tensor_of_any_size_ends_the_process(elements: int) -> None:
    found = run(f"""
import torch
with guarded_heap.watched(0):
    ctypes.string_at(torch.zeros({elements}).data_ptr(), {4 * elements + 1})
print('alive')
""")
    assert (found.stdout, found.returncode) == ("", 128 + signal.SIGSEGV), found.stderr


def test_the_bytes_of_blocks_are_read_and_written_and_fresh_ones_hold_the_pattern() -> None:
    found = run("""
with guarded_heap.watched(0x40):
    block = c.malloc(5000)
    print(ctypes.string_at(block, 5000) == b"@" * 5000)
    ctypes.memset(block, 7, 5000)
    block = c.realloc(block, 9000)
    print(ctypes.string_at(block, 5001) == bytes([7]) * 5000 + b"@")
c.free(block)
later = c.malloc(5000)
ctypes.string_at(later, 5001)
c.free(later)
""")
    assert (found.returncode, found.stdout) == (0, "True\nTrue\n"), found.stderr


def test_blocks_of_before_can_be_freed_and_grow_while_it_is_on() -> None:
    found = run("""
block, other = c.malloc(64), c.malloc(64)
ctypes.memset(block, 7, 64)
with guarded_heap.watched(0):
    c.free(other)
    print(ctypes.string_at(c.realloc(block, 10_000), 64) == bytes([7]) * 64)
""")
    assert (found.returncode, found.stdout) == (0, "True\n"), found.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_is_asked_to_end_keeps_its_work_and_leaves_no_directory(
    number: signal.Signals, tmp_path: Path
) -> None:
    code = """
import time
from conformance.support.signals import interrupt_once
interrupt_once()
try:
    print("begun", flush=True)
    time.sleep(60)
finally:
    time.sleep(1)
    print("kept", flush=True)
"""
    variables = {name: value for name, value in os.environ.items() if name != "CONFORMANCE_GUARDED_HEAP"}
    with subprocess.Popen(
        [sys.executable, "-c", PRELUDE + code],
        env=variables | {"TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        assert process.communicate()[0] == "kept\n"
    assert process.returncode
    assert list(tmp_path.iterdir()) == []


def test_without_a_compiler_the_process_goes_on_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONFORMANCE_GUARDED_HEAP", raising=False)
    monkeypatch.setattr(guarded_heap, "_COMPILERS", ("no-such-compiler",))
    assert not guarded_heap.restart()
    with guarded_heap.watched(0):
        assert bytes(100)
