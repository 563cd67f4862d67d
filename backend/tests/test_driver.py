"""The driver without torch: its C++ behaviours, each in a process of its own, in both allocator modes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

BACKEND = Path(__file__).parent.parent
SOURCE = Path(__file__).with_name("driver_test.cpp")
ENVIRONMENT = "the_environment_is_what_was_asked"
BEHAVIOURS = [
    line.split("(")[1].split(")")[0]
    for line in SOURCE.read_text().splitlines()
    if line.startswith("      TEST(") and ENVIRONMENT not in line
]


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program: the driver's sources and the behaviours, compiled with no torch in sight."""
    program = tmp_path_factory.mktemp("driver") / "driver_test"
    sources = [SOURCE, *BACKEND.glob("driver/src/**/*.cpp")]
    include = [f"-I{BACKEND}", f"-I{BACKEND / 'driver/include'}"]
    flags = ["-std=c++20", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([os.environ.get("CXX", "g++"), *flags, *include, *map(str, sources), "-o", program], check=True)
    return program


def run(program: Path, behaviour: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REFNPU_")}
    return subprocess.run(
        [program, behaviour], env=clean | environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("mode", ["malloc", "aligned_alloc"])
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_driver(driver: Path, behaviour: str, mode: str) -> None:
    done = run(driver, behaviour, REFNPU_ALLOCATOR=mode, REFNPU_DEVICES="3")
    assert done.returncode == 0, done.stdout + done.stderr


def environment(driver: Path, **variables: str) -> list[str]:
    """[allocator mode, configuration error, npuMalloc's error, address modulo 64, fault that is awake]."""
    return run(driver, ENVIRONMENT, **variables).stdout.strip().split("|")


def test_malloc_is_the_mode_unless_another_is_asked_for(driver: Path) -> None:
    assert environment(driver)[:3] == ["malloc", "", "0"]


def test_aligned_alloc_aligns_to_64_bytes(driver: Path) -> None:
    assert environment(driver, REFNPU_ALLOCATOR="aligned_alloc") == ["aligned_alloc", "", "0", "0", ""]


def test_an_unknown_mode_is_refused_with_the_near_name(driver: Path) -> None:
    _, error, code, *_ = environment(driver, REFNPU_ALLOCATOR="aligned_aloc")
    assert "unknown allocator mode 'aligned_aloc'; did you mean 'aligned_alloc'?" in error
    assert code == "11"


def test_a_fault_is_woken_by_the_environment(driver: Path) -> None:
    assert environment(driver, REFNPU_FAULT="double_free")[4] == "double_free"


def test_an_unknown_fault_is_refused_with_the_near_name(driver: Path) -> None:
    assert "did you mean 'double_free'?" in environment(driver, REFNPU_FAULT="doublefree")[1]


def test_a_device_count_that_is_no_number_is_refused(driver: Path) -> None:
    assert "REFNPU_DEVICES='two': expected a whole number from 1 to 64" in environment(driver, REFNPU_DEVICES="two")[1]


def test_the_capacity_comes_from_the_environment(driver: Path) -> None:
    assert environment(driver, REFNPU_CAPACITY="99")[2] == "3"


def test_no_device_code_includes_torch() -> None:
    for source in [*BACKEND.glob("driver/**/*.[ch]*"), *BACKEND.glob("kernels/*")]:
        for line in source.read_text().splitlines():
            assert not line.startswith(("#include <torch", "#include <ATen", "#include <c10")), f"{source}: {line}"
