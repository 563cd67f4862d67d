"""The environment variables for sanitizers: preloaded libraries, options, and errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conformance.lanes import sanitizers

LEAKY = """
import ctypes
process = ctypes.CDLL(None)
process.malloc.restype = ctypes.c_void_p
{action}
"""


def run(action: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a Python that executes ``action`` with the C library, under AddressSanitizer."""
    variables = sanitizers.variables(("address",), None, environ)
    command = [sys.executable, "-c", LEAKY.format(action=action)]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def test_a_build_without_sanitizers_needs_nothing() -> None:
    assert sanitizers.variables((), None, {"ASAN_OPTIONS": "x=1"}) == {}


def test_asan_and_libstdcxx_are_preloaded_before_the_user_s_libraries() -> None:
    found = sanitizers.variables(("address", "undefined"), None, {"LD_PRELOAD": "/own.so"})["LD_PRELOAD"].split()
    assert [Path(name).name.partition(".")[0] for name in found] == ["libasan", "libstdc++", "own"]
    assert all(Path(name).is_file() for name in found[:2])


def test_the_user_s_sanitizer_options_come_last_and_take_precedence() -> None:
    found = sanitizers.variables(("address",), Path("/leaks.supp"), {"ASAN_OPTIONS": "detect_leaks=0"}, Path("/log"))
    assert found["ASAN_OPTIONS"].startswith("abort_on_error=1:")
    assert found["ASAN_OPTIONS"].endswith(":log_path=/log:detect_leaks=0")
    assert "suppressions=/leaks.supp" in found["LSAN_OPTIONS"]


def test_a_compiler_without_asan_is_an_error_that_names_the_missing_file(tmp_path: Path) -> None:
    compiler = tmp_path / "c++"
    compiler.write_text('#!/bin/sh\necho "${1#*=}"\n')
    compiler.chmod(0o755)
    with pytest.raises(sanitizers.NoRuntime, match=r"has no libasan\.so"):
        sanitizers.variables(("address",), None, {"CXX": str(compiler)})


def test_a_process_started_without_the_runtime_says_which_is_missing() -> None:
    assert sanitizers.missing(("undefined", "address")) == "address"
    assert sanitizers.missing(("undefined",)) == ""


def test_with_the_variables_python_runs_and_has_the_runtime() -> None:
    found = run(f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
                "from conformance.lanes import sanitizers; print(repr(sanitizers.missing(['address'])))")  # fmt: skip
    assert (found.returncode, found.stdout) == (0, "''\n"), found.stderr


def test_a_death_is_a_signal_and_its_report_names_the_modules() -> None:
    found = run("block = process.malloc(8); ctypes.memset(block, 0, 9)")
    assert found.returncode == -6
    assert "heap-buffer-overflow" in found.stderr
    assert "@/" in found.stderr


def test_programs_that_end_are_not_searched_for_leaks() -> None:
    found = run("process.malloc(8)")
    assert (found.returncode, found.stderr) == (0, "")


def test_a_huge_allocation_is_refused_as_it_is_without_a_sanitizer() -> None:
    assert run("print(process.malloc(ctypes.c_size_t(1 << 60)))").stdout == "None\n"
