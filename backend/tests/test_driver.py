"""The driver without torch: its C++ behaviours, each in a process of its own, in every allocator mode."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from driver_program import (
    BACKEND,
    BEHAVIOURS,
    MODES,
    PROTECTED,
    RACES,
    assert_passes,
    run,
    variables,
)  # fmt: skip

ENVIRONMENT = "the_environment_is_what_was_asked"


def assert_dies(program: Path, behaviour: str, mode: str, said: str, **environment: str) -> None:
    done = run(program, behaviour, **variables(mode), **environment)
    assert done.returncode == -signal.SIGSEGV, done.stdout + done.stderr
    assert re.search(f"^refnpu: SIGSEGV at 0x[0-9a-f]+ in {said}", done.stderr), done.stderr


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_the_driver_behaves_as_its_header_says(driver: Path, behaviour: str, mode: str) -> None:
    assert_passes(driver, behaviour, mode)


def environment(driver: Path, **variables: str) -> list[str]:
    """Return [allocator mode, configuration error, npuMalloc's error, address modulo 64, fault that is awake]."""
    return run(driver, ENVIRONMENT, **variables).stdout.strip().split("|")


def test_malloc_is_the_default_allocator_mode(driver: Path) -> None:
    assert environment(driver)[:3] == ["malloc", "", "0"]


def test_the_mode_aligned_alloc_aligns_blocks_to_64_bytes(driver: Path) -> None:
    assert environment(driver, REFNPU_ALLOCATOR="aligned_alloc") == ["aligned_alloc", "", "0", "0", ""]


def test_an_unknown_allocator_mode_is_refused_with_a_near_name(driver: Path) -> None:
    _, error, code, *_ = environment(driver, REFNPU_ALLOCATOR="aligned_aloc")
    assert "unknown allocator mode 'aligned_aloc'; did you mean 'aligned_alloc'?" in error
    assert code == "11"


def test_the_environment_wakes_a_fault(driver: Path) -> None:
    assert environment(driver, REFNPU_FAULT="double_free")[4] == "double_free"


def test_a_build_without_faults_contains_no_name_of_a_fault(driver_without_faults: Path) -> None:
    faults = re.findall(r"^FAULT\((\w+)", (BACKEND / "driver/include/refnpu/faults.def").read_text(), re.MULTILINE)
    binary = driver_without_faults.read_bytes()
    assert len(faults) > 70
    assert [name for name in faults if name.encode() in binary] == []


def test_a_build_without_faults_refuses_to_wake_one(driver_without_faults: Path) -> None:
    _, error, code, _, awake = environment(driver_without_faults, REFNPU_FAULT="double_free")
    assert (
        error == "REFNPU_FAULT: fault 'double_free': this build has no faults; build with REFNPU_FAULTS=ON to wake one"
    )
    assert (code, awake) == ("11", "")


@pytest.mark.parametrize("mode", MODES)
def test_a_build_without_faults_behaves_as_its_header_says(driver_without_faults: Path, mode: str) -> None:
    for behaviour in BEHAVIOURS:
        assert_passes(driver_without_faults, behaviour, mode, REFNPU_FAULT="")


def test_the_driver_refuses_an_unknown_fault_with_a_near_name(driver: Path) -> None:
    assert "did you mean 'double_free'?" in environment(driver, REFNPU_FAULT="doublefree")[1]


def test_a_device_count_that_is_not_a_number_is_refused(driver: Path) -> None:
    assert "REFNPU_DEVICES='two': expected a whole number from 0 to 64" in environment(driver, REFNPU_DEVICES="two")[1]


def test_the_environment_sets_the_capacity_of_a_device(driver: Path) -> None:
    assert environment(driver, REFNPU_CAPACITY="99")[2] == "3"


# Guard pages, redzones, the pool ---------------------------------------------------------------------------------

TWICE = "pool_hands_out_twice"
SIZES = ["1", "40", "64", "4095", "4096", "100001"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("access", ["writes", "reads"])
def test_guard_pages_stop_an_access_one_byte_past_the_end(driver: Path, access: str, size: str) -> None:
    said = rf"kernel 'test': nearest live block .* \({size} bytes, npu:0\), pointer lies 0 bytes past its end\n"
    assert_dies(driver, f"{access}_one_past_the_end", "guard", said, SIZE=size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("access", ["writes", "reads"])
def test_left_guard_pages_stop_an_access_one_byte_before_the_start(driver: Path, access: str, size: str) -> None:
    said = rf"kernel 'test': nearest live block .* \({size} bytes, npu:0\), pointer lies 1 bytes before its start\n"
    assert_dies(driver, f"{access}_one_before_the_start", "guard_left", said, SIZE=size)


@pytest.mark.parametrize("mode", ["guard", "guard_left", PROTECTED])
def test_guard_pages_stop_a_use_after_free(driver: Path, mode: str) -> None:
    assert_dies(driver, "uses_a_freed_block", mode, r"kernel 'test': inside .* \(40 bytes, npu:0\), which is freed\n")


@pytest.mark.parametrize("behaviour", ["writes_one_past_the_end", "reads_one_before_the_start", "uses_a_freed_block"])
def test_without_guard_pages_wrong_accesses_are_not_stopped(driver: Path, behaviour: str) -> None:
    assert_passes(driver, behaviour, "aligned_alloc")


@pytest.mark.parametrize(
    ("mode", "behaviour"),
    [
        ("redzone", "redzones_name_the_block_the_side_and_the_offset"),
        ("redzone", "a_zone_looks_damaged_whatever_is_written_over_it"),
        ("guard", "the_rest_of_a_guarded_page_is_watched"),
        ("guard_left", "the_rest_of_a_guarded_page_is_watched"),
        (PROTECTED, "the_rest_of_a_guarded_page_is_watched"),
        ("guard", "a_guarded_block_ends_where_its_page_does"),
        ("guard_left", "a_guarded_block_ends_where_its_page_does"),
        ("guard", "quarantine_is_bounded"),
        ("pool", "a_pool_reuses_what_was_freed"),
        ("pool", "a_pool_splits_and_merges"),
        ("pool", "a_pool_gives_back_what_it_keeps_when_a_device_is_full"),
        ("pool", "a_pool_keeps_devices_and_sizes_apart"),
    ],
)
def test_each_allocator_mode_has_its_own_properties(driver: Path, mode: str, behaviour: str) -> None:
    assert_passes(driver, behaviour, mode)


# Fills -------------------------------------------------------------------------------------------------------------


def test_freed_memory_holds_the_fill_of_the_environment(driver: Path) -> None:
    assert_passes(driver, "freed_memory_holds_its_fill", "pool", REFNPU_FILL_FREED="0xDD")


def test_a_random_fill_is_the_same_in_each_process(driver: Path) -> None:
    def first_blocks(fill: str) -> str:
        return run(driver, "the_bytes_of_the_first_blocks", REFNPU_FILL_FRESH=fill).stdout

    assert first_blocks("random:1") == first_blocks("random:1") != first_blocks("random:2")
    assert first_blocks("0x5a") == "5a" * 39


@pytest.mark.parametrize("variable", ["REFNPU_FILL_FRESH", "REFNPU_FILL_FREED"])
def test_an_unknown_fill_is_refused_with_a_near_name(driver: Path, variable: str) -> None:
    error = environment(driver, **{variable: "nann"})[1]
    assert error == f"{variable}: unknown fill 'nann'; did you mean 'nan'?; known: none zero nan 0xAB random:1"


# Protection --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "behaviour",
    [
        "the_host_reads_device_memory",
        "the_host_writes_device_memory",
        "the_host_reads_after_a_kernel_raised",
        "the_host_reads_after_threads_of_kernels",
    ],
)
def test_protected_device_memory_stops_host_accesses(driver: Path, behaviour: str) -> None:
    said = r"the host, outside kernels: inside live block .* \(64 bytes, npu:0\)\n"
    assert_dies(driver, behaviour, PROTECTED, said)
    assert_passes(driver, behaviour, "guard")


def test_protection_is_refused_in_modes_that_share_pages(driver: Path) -> None:
    _, error, code, *_ = environment(driver, REFNPU_PROTECT="1")
    assert error.startswith("REFNPU_PROTECT=1: allocator mode 'malloc' puts several blocks on one page; choose")
    assert code == "11"
    assert "REFNPU_PROTECT='yes': expected a whole number from 0 to 1" in environment(driver, REFNPU_PROTECT="yes")[1]


# Races -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_the_driver_has_no_data_race(race_checked: Path, mode: str) -> None:
    for behaviour in BEHAVIOURS:
        done = run(race_checked, behaviour, **variables(mode), **RACES)
        assert done.returncode == 0, f"{behaviour}: {done.stdout}{done.stderr}"


def test_thread_sanitizer_reports_a_planted_race(race_checked: Path) -> None:
    done = run(race_checked, "threads_share_the_table", REFNPU_FAULT="table_unlocked", **RACES)
    assert done.returncode == 66, done.stdout + done.stderr
    assert "WARNING: ThreadSanitizer: data race" in done.stderr
    assert "Table::insert" in done.stderr


def test_an_ignored_alignment_fails_a_test_of_the_driver(driver: Path) -> None:
    done = run(driver, "alignment_is_had_on_demand", REFNPU_FAULT="alignment_ignored")
    assert "reinterpret_cast<uintptr_t>(block) % alignment == 0" in done.stdout


def test_a_pool_that_gives_out_a_block_twice_fails_a_test_of_the_driver(driver: Path) -> None:
    done = run(driver, "threads_allocate_hand_over_and_verify", REFNPU_ALLOCATOR="pool", REFNPU_FAULT=TWICE)
    assert done.returncode != 0, done.stdout


def test_no_launched_kernel_captures_by_reference() -> None:
    """A launch copies the captures of its body. The target of a captured reference would be gone when the body runs."""
    for source in [*BACKEND.glob("aten/*.cpp"), *BACKEND.glob("runtime/*.cpp"), *BACKEND.glob("examples/*/*.cpp")]:
        assert not re.search(r"\blaunch\([^;{]*\[&", source.read_text()), source


def test_no_device_code_includes_torch() -> None:
    for source in [*BACKEND.glob("driver/**/*.[ch]*"), *BACKEND.glob("kernels/*")]:
        for line in source.read_text().splitlines():
            assert not line.startswith(("#include <torch", "#include <ATen", "#include <c10")), f"{source}: {line}"
