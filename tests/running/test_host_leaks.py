"""Leaks of host memory: those of a library, and the memory of Python."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.explain import describe
from conformance.lanes import sanitizers
from conformance.records import CaseFailure
from conformance.running.host_leaks import mappings_of
from conformance.vocabulary import CellId

ROOT = Path(__file__).parents[2]
CELLS = [CellId("masking", "masked_fill_.Scalar", "float32", layout) for layout in ("a", "b", "c", "d", "e")]


LIBRARY = """
#include <cstdlib>
#include <cstring>
extern "C" {
void lose(int size) { volatile char* block = (char*)malloc(size); block[0] = 1; }
void* make(int size) { return malloc(size); }
void overrun(int size) { char* block = (char*)malloc(size); memset(block, 0, size + 1); free(block); }
int overflow(int to) { return 2147483647 + to; }
}
"""

SCRIPT = """
import ctypes, json, sys
from conformance.running.runner import Runner
from conformance.records import Observation
from conformance.vocabulary import CellId, Status

library = ctypes.CDLL(sys.argv[1])
library.make.restype = ctypes.c_void_p
kept = []

class Work:
    def run(self, cell, first, progress, stop=None):
        progress.note(first, "device")
        if cell.overload == "keep":
            kept.append(ctypes.c_void_p(library.make(40)))  # in memory of Python's own
        elif cell.overload != "nothing":
            getattr(library, cell.overload)(40)
        return Observation(cell, "native", Status.PASS, 1, compared=1), None
    def prepare(self):
        pass
    def prepare_for_doubts(self):
        pass
    def reference(self, cell, index):
        return True
    def settle(self):
        return None
    def arguments(self, cell, index):
        return ()
    def case_ids(self, cell):
        return [f"{cell}#case"]
    def route(self, cell):
        return "native"
    def operators(self, calls):
        return ()

if sys.argv[3]:
    getattr(library, sys.argv[3])(24)
runner = Runner(Work(), 60, inquiry_s=0)
names = sys.argv[2].split(",")
cells = [CellId("family", name, "float32", f"layout{i}") for i, name in enumerate(names)]
observed = [runner.observe(cell) for cell in cells]
observed[-1] = runner.searched(observed[-1])
seen = [one.to_json() for one in observed]
runner.close()
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a library of C functions with one mistake each, with both sanitizers. Return its path."""
    directory = tmp_path_factory.mktemp("sanitized")
    (directory / "kernels").mkdir()
    (directory / "kernels" / "demo.cpp").write_text(LIBRARY)
    compiler = shutil.which("g++") or "c++"
    flags = ["-O0", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-shared", "-fPIC"]
    command = [compiler, *flags, "kernels/demo.cpp", "-o", "libdemo.so"]
    subprocess.run(command, cwd=directory, check=True)
    return directory / "libdemo.so"


def observe(library: Path, *cells: str, before: str = "") -> list[dict[str, Any]]:
    """Return the runner's observations of cells that call these functions, after a call of the function ``before``."""
    variables = sanitizers.variables(("address", "undefined"), None, {})
    command = [sys.executable, "-c", SCRIPT, str(library), ",".join(cells), before]
    done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen: list[dict[str, Any]] = json.loads(done.stdout)
    return seen


def test_a_crash_has_a_short_sanitizer_report_and_the_next_cell_runs(library: Path) -> None:
    stopped, unharmed = observe(library, "overrun", "nothing")
    assert (stopped["status"], stopped["signal"], unharmed["status"]) == ("crash", "SIGABRT", "pass")
    failure = CaseFailure.from_json(stopped["failures"][0])
    assert failure.death
    assert failure.death.report
    first, *report = describe.death(failure.death)
    assert first.startswith("the process died: SIGABRT, on the device side; not repeated in fresh processes")
    assert report == [
        "AddressSanitizer: heap-buffer-overflow: WRITE of 41 bytes, 0 bytes past the end of a block of 40 bytes",
        "  at: kernels/demo.cpp:7 overrun",
        "  block allocated at: kernels/demo.cpp:7 overrun",
    ]
    assert (failure.death.report.kind, failure.death.report.line) == ("heap-buffer-overflow", "kernels/demo.cpp:7")


def test_undefined_behaviour_ends_a_cell_with_a_sanitizer_report(library: Path) -> None:
    (failure,) = observe(library, "overflow")[0]["failures"]
    report = failure["death"]["report"]
    assert report["kind"] == "signed-integer-overflow"
    assert "40 + 2147483647 cannot be represented" in report["detail"]
    assert report["stack"][0] == "kernels/demo.cpp:8 overflow"


def test_a_host_leak_fails_its_batch_and_names_the_leaking_cell(library: Path) -> None:
    seen = observe(library, "nothing", "nothing", "lose", "nothing", "nothing")
    (found,) = [o for o in seen if o["status"] == "fail"]
    (failure,) = found["failures"]
    assert failure["check"] == "leak"
    assert failure["case"] == "ops/family.py::lose[float32-layout2]"
    said = describe.first_line(CaseFailure.from_json(failure)), *describe.findings(CaseFailure.from_json(failure))
    # The time that a search takes decides when the next is due, so a batch has three to five cells.
    assert re.match(r"host memory was lost in the batch of [3-5] cells that ends here, by ops/family.py::lose", said[0])
    assert "  40 bytes in 1 host blocks, allocated at: kernels/demo.cpp:5 lose" in "\n".join(said)


def test_a_block_that_only_a_python_object_refers_to_is_not_lost(library: Path) -> None:
    assert [o["status"] for o in observe(library, "nothing", "keep", "keep", "nothing")] == ["pass"] * 4


MAPS = """\
55d0c0000000-55d0c0004000 rw-p 00000000 00:00 0                          [heap]
602000000000-602000010000 rw-p 00000000 00:00 0
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
7f0000100000-7f0000101000 ---p 00000000 00:00 0
7f0000200000-7f0000300000 rw-p 00000000 00:00 0                          [anon:cpython:pymalloc]
7f0000400000-7f0000500000 rw-p 00000000 fe:00 42                         /usr/lib/python with a space.so
7f0000600000-7f0000700000 r--p 00000000 00:00 0
"""


def test_the_memory_of_python_is_each_anonymous_mapping_with_an_object_that_is_not_from_malloc() -> None:
    heap, malloc, first, second, file, constants = (
        0x55D0C0000010, 0x602000000020, 0x7F0000000000, 0x7F00002FFFF0, 0x7F0000400010, 0x7F0000600010
    )  # fmt: skip
    objects = sorted([heap, malloc, first, second, file, constants])
    assert mappings_of(objects, MAPS, lambda address: address == malloc) == [
        (0x7F0000000000, 0x7F0000100000),
        (0x7F0000200000, 0x7F0000300000),
    ]
    assert mappings_of([malloc, malloc + 16], MAPS, lambda address: address == malloc) == [
        (0x602000000000, 0x602000010000)
    ]
    assert mappings_of([], MAPS) == []


def test_cells_without_a_leak_pass_the_leak_search(library: Path) -> None:
    assert [o["status"] for o in observe(library, "nothing", "nothing")] == ["pass", "pass"]


def test_a_leak_from_before_the_first_cell_fails_no_cell(library: Path) -> None:
    assert [o["status"] for o in observe(library, "nothing", "nothing", before="lose")] == ["pass", "pass"]


def test_a_cell_that_leaks_more_than_was_leaked_before_it_fails(library: Path) -> None:
    seen = observe(library, "nothing", "lose", before="lose")
    assert [o["status"] for o in seen if o["status"] != "pass"] == ["fail"]
    (failure,) = next(o["failures"] for o in seen if o["status"] == "fail")
    assert failure["case"] == "ops/family.py::lose[float32-layout1]"
