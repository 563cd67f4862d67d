"""The driver's C++ tests as a program of their own: compiled without torch, one behaviour per process."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

BACKEND = Path(__file__).parent.parent
SOURCES = sorted(Path(__file__).parent.glob("*_test.cpp"))
BEHAVIOURS = [name for source in SOURCES for name in re.findall(r"^TEST\((\w+)\)", source.read_text(), re.MULTILINE)]
PROTECTED = "guard protected"
MODES = ["malloc", "aligned_alloc", "pool", "redzone", "guard", "guard_left", PROTECTED]
KEPT = ("REFNPU_FAULT",)
#: The environment of a run under ThreadSanitizer.
RACES = {"REFNPU_DEVICES": "3", "TSAN_OPTIONS": "halt_on_error=1:exitcode=66:allocator_may_return_null=1"}


def compiled(directory: Path, *flags: str) -> Path:
    """Compile the test program from the driver's sources and the behaviours, without torch. Return its path."""
    program = directory / "driver_test"
    sources = [*SOURCES, *BACKEND.glob("driver/src/**/*.cpp")]
    include = [f"-I{BACKEND}", f"-I{BACKEND / 'driver/include'}"]
    flags = ("-std=c++20", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror", *flags)
    subprocess.run([os.environ.get("CXX", "g++"), *flags, *include, *map(str, sources), "-o", program], check=True)
    return program


def compiled_for_races(directory: Path) -> Path:
    """Compile the test program with ThreadSanitizer. Skip the test if the compiler lacks it."""
    probe = directory / "probe.cpp"
    probe.write_text("int main() {}\n")
    compiler = os.environ.get("CXX", "g++")
    tried = subprocess.run(
        [compiler, "-fsanitize=thread", probe, "-o", directory / "probe"], capture_output=True, text=True, check=False
    )
    if tried.returncode != 0:
        pytest.skip(f"{compiler} has no ThreadSanitizer: {tried.stderr.strip().splitlines()[-1]}")
    return compiled(directory, "-fsanitize=thread")


def run(program: Path, behaviour: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a behaviour without the environment's REFNPU variables, except the fault of the whole test run."""
    clean = {name: value for name, value in os.environ.items() if name in KEPT or not name.startswith("REFNPU_")}
    return subprocess.run(
        [program, behaviour], env=clean | environment, capture_output=True, text=True, timeout=600, check=False
    )


def variables(mode: str) -> dict[str, str]:
    if mode == PROTECTED:
        return {"REFNPU_ALLOCATOR": "guard", "REFNPU_PROTECT": "1"}
    return {"REFNPU_ALLOCATOR": mode}


def assert_passes(program: Path, behaviour: str, mode: str, **environment: str) -> None:
    done = run(program, behaviour, **variables(mode), REFNPU_DEVICES="3", **environment)
    assert done.returncode == 0, f"{behaviour}: {done.stdout}{done.stderr}"
