"""The facts about the machine in a run's manifest."""

from __future__ import annotations

import ctypes
import hashlib
from pathlib import Path

from conformance.support import machine


def test_the_processor_is_what_the_system_calls_it(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nmodel name\t: Example CPU @ 2.0GHz\n")
    assert machine.cpu_model(file) == "Example CPU @ 2.0GHz"
    assert machine.cpu_model(tmp_path / "nowhere")


def test_the_math_library_is_known_by_its_bytes(tmp_path: Path) -> None:
    library = tmp_path / "libm.so.6"
    library.write_bytes(b"one build")
    maps = tmp_path / "maps"
    maps.write_text(f"7f00-7f01 r-xp 0000 fe:01 12    {library}\n7f02-7f03 rw-p 0000 00:00 0\n")
    assert machine.libm(maps) == hashlib.sha256(b"one build").hexdigest()[:12]
    assert machine.libm(tmp_path / "nowhere") == ""


def test_this_process_has_both() -> None:
    ctypes.CDLL("libm.so.6")
    assert machine.libc().startswith("glibc ")
    assert len(machine.libm()) == 12
