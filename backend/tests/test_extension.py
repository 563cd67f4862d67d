"""An extension of its own builds against the installed headers and library, and runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from refnpu import cpp_extension

EXAMPLE = Path(__file__).parent.parent / "examples" / "extension"
Python = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the example's library as its CMakeLists.txt says, and return its path."""
    beside_python = str(Path(sys.executable).parent)
    cmake = shutil.which("cmake", path=beside_python) or shutil.which("cmake")
    if cmake is None:
        pytest.skip("no CMake: it is needed to build an extension")
    build = tmp_path_factory.mktemp("extension")
    where = [f"-DCMAKE_PREFIX_PATH={cpp_extension.cmake_prefix_path()}", f"-DPython_EXECUTABLE={sys.executable}"]
    for step in ([cmake, "-S", EXAMPLE, "-B", build, *where], [cmake, "--build", build]):
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return build / "librefnpu_extension.so"


def test_an_extension_launches_on_the_device_of_its_tensor(extension: Path, python: Python) -> None:
    done = python(f"""
import refnpu, torch
torch.ops.load_library({str(extension)!r})
x = torch.arange(5.0, device="npu:1")
print(torch.ops.sample.running_sum(x).tolist(), torch.npu.current_device(), torch.npu.memory_stats(0)["allocations"])
""")
    assert done.stdout.strip() == "[0.0, 1.0, 3.0, 6.0, 10.0] 0 0", done.stderr


def test_an_extension_gets_the_current_stream(extension: Path, python: Python) -> None:
    done = python(f"""
import refnpu, torch
torch.ops.load_library({str(extension)!r})
id_of = torch.ops.sample.current_stream_id
stream = torch.npu.Stream("npu:1")
with torch.npu.stream(stream):
    print(id_of(0) == 0, id_of(1) == id_of(-1) == stream.stream_id != 0)
""")
    assert done.stdout.strip() == "True True", done.stderr


def test_public_headers_do_not_depend_on_the_torch_version() -> None:
    """A header whose meaning depends on a macro of the backend's own build would break extensions silently."""
    for header in Path(cpp_extension.include_paths()[0]).glob("refnpu/*.h"):
        assert "REFNPU_TORCH" not in header.read_text()
        assert "REFNPU_HAS" not in header.read_text()
