"""torch.compile with Inductor: compiled code runs in launches on the npu, and unsupported wrappers say so."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from builds import needs_faults

Python = Callable[..., subprocess.CompletedProcess[str]]

SETUP = """
import refnpu, torch
compiled = torch.compile(lambda x, i: (x[1:] * 2 + x[:-1], x.sum(0), x[i]))
x, i = torch.arange(140.0).view(20, 7), torch.tensor([3, -1])
"""
AGREES = """
given = torch.cat([torch.full((1, 7), -5.0), x]).to("npu")[1:]
print([torch.equal(a.cpu(), b) for a, b in zip(compiled(given, i.to("npu")), (x[1:] * 2 + x[:-1], x.sum(0), x[i]))])
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return variables for one cache of these tests, so that the header of all kernels is compiled once."""
    directory = tmp_path_factory.mktemp("compiled")
    return {"TORCHINDUCTOR_CACHE_DIR": str(directory), "TORCHINDUCTOR_COMPILE_THREADS": "1"}


@pytest.mark.parametrize(
    "environment",
    [{}, {"REFNPU_ALLOCATOR": "guard", "REFNPU_PROTECT": "1"}, {"REFNPU_LATE": "1", "REFNPU_DELAY_US": "200"}],
    ids=["plain", "protected", "late"],
)
def test_compiled_kernels_give_what_cpu_gives(
    python: Python, cache: dict[str, str], environment: dict[str, str], tmp_path: Path
) -> None:
    done = python(SETUP + AGREES, timeout=600, HOME=str(tmp_path), **cache, **environment)
    assert done.stdout.strip() == "[True, True, True]", done.stderr
    assert list(tmp_path.iterdir()) == []


@needs_faults
@pytest.mark.parametrize("fault", ["compiled_tail_not_written", "compiled_launch_drops_offset"])
def test_faults_of_compiled_kernels_change_results(python: Python, cache: dict[str, str], fault: str) -> None:
    done = python(SETUP + AGREES, timeout=600, REFNPU_FAULT=fault, REFNPU_FILL_FRESH="nan", **cache)
    assert "False" in done.stdout, done.stderr


TWO_SIZES = """
import refnpu, torch
compiled = torch.compile(lambda x: x.sin() + 1, dynamic=True)
for size in (8, 20):
    x = torch.arange(float(size))
    print(torch.allclose(compiled(x.to("npu")).cpu(), x.sin() + 1))
"""


@needs_faults
@pytest.mark.parametrize(("fault", "printed"), [("", "True\nTrue"), ("compiled_size_of_first_launch", "True\nFalse")])
def test_a_fault_of_kernels_for_any_size_changes_the_results_of_later_sizes(
    python: Python, cache: dict[str, str], fault: str, printed: str
) -> None:
    done = python(TWO_SIZES, timeout=600, REFNPU_FAULT=fault, REFNPU_FILL_FRESH="nan", **cache)
    assert done.stdout.strip() == printed, done.stderr


def test_the_error_of_a_compiled_kernel_names_the_kernel(python: Python, cache: dict[str, str]) -> None:
    wrong = 'compiled(x.to("npu"), torch.tensor([20]).to("npu"))'
    done = python(SETUP + wrong, timeout=600, **cache)
    assert "launch failure: kernel 'cpp_fused" in done.stderr
    assert "index out of bounds" in done.stderr


def test_the_wrappers_that_are_not_offered_say_so(python: Python, cache: dict[str, str]) -> None:
    done = python("import refnpu, torch; torch.npu.CppWrapperCodegen.create(False)", **cache)
    assert "NotImplementedError: npu: Inductor's C++ wrapper is not supported" in done.stderr


def test_importing_refnpu_loads_neither_inductor_nor_dynamo(python: Python) -> None:
    done = python("import sys, refnpu; print([m for m in ('torch._inductor', 'torch._dynamo') if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.skipif(
    not hasattr(torch, "_import_device_backends"), reason="this torch loads no backends when it is imported"
)
def test_torch_loads_refnpu_if_the_environment_asks_for_it(python: Python) -> None:
    script = "import torch; print(torch._C._get_privateuse1_backend_name())"
    assert python(script).stdout.strip() == "privateuseone"
    assert python(script, REFNPU_AUTOLOAD="1").stdout.strip() == "npu"
