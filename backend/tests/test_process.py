"""What a process may do with the device: importing, forking, being built for another torch."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import torch

from conformance.lanes import matrix

Python = Callable[..., subprocess.CompletedProcess[str]]


def test_torch_is_unchanged_before_refnpu_is_imported(python: Python) -> None:
    done = python("import torch; print(hasattr(torch, 'npu'), torch._C._get_privateuse1_backend_name())")
    assert done.stdout.split() == ["False", "privateuseone"], done.stderr


def test_importing_refnpu_does_not_initialize_a_device(python: Python) -> None:
    done = python("import refnpu.conformance, torch; torch.manual_seed(0); print(torch.npu.is_initialized())")
    assert done.stdout.split() == ["False"], done.stderr


def test_importing_refnpu_prints_nothing(python: Python) -> None:
    done = python("import refnpu")  # torch warns here, once, of an overload that is registered twice
    assert (done.stdout, done.stderr) == ("", "")


def test_a_process_may_end_right_after_backward(python: Python) -> None:
    program = """
import refnpu, torch
x = torch.ones(4, 4, device="npu", requires_grad=True)
(x @ x).sum().backward()
"""
    for _ in range(6):  # with torch 2.13, about 4 of 10 aborted when threads were not waited for
        done = python(program)
        assert done.returncode == 0, done.stderr


def test_a_process_forked_before_the_first_use_can_use_the_device(python: Python) -> None:
    done = python("""
import os, refnpu, torch
if os.fork() == 0:
    print(torch.ones(2, device="npu").tolist(), flush=True)
    os._exit(0)
os.wait()
print(torch.npu.is_initialized())
""")
    assert done.stdout.split("\n")[:2] == ["[1.0, 1.0]", "False"], done.stderr


def test_a_process_forked_after_the_first_use_raises_with_the_reason(python: Python) -> None:
    done = python("""
import os, refnpu, torch
x = torch.ones(2, device="npu")
if os.fork() == 0:
    assert torch.npu._is_in_bad_fork()
    for use in (lambda: torch.ones(2, device="npu"), lambda: x + 1, x.cpu, torch.npu.synchronize):
        try:
            use()
        except RuntimeError as error:
            print("fork before the first use" in str(error), flush=True)
    torch.manual_seed(0)
    del x
    os._exit(0)
print(os.wait()[1], x.tolist())
""")
    assert done.stdout.split("\n")[:5] == ["True"] * 4 + ["0 [1.0, 1.0]"], done.stdout + done.stderr


def test_forked_data_loader_workers_give_pinned_batches(python: Python) -> None:
    done = python("""
import refnpu, torch
x = torch.ones(2, device="npu")
options = {"num_workers": 1, "pin_memory": True, "pin_memory_device": "npu"}
loader = torch.utils.data.DataLoader(torch.arange(4.0), **options)
print([(batch.npu().item(), batch.is_pinned()) for batch in loader])
""")
    assert done.stdout.strip() == "[(0.0, True), (1.0, True), (2.0, True), (3.0, True)]", done.stderr


def test_a_build_for_another_torch_version_is_refused_before_loading(python: Python) -> None:
    done = python("""
import sys, torch
torch.__version__ = "1.2.3"
try:
    import refnpu
except ImportError as error:
    print(error)
print("refnpu._C" in sys.modules)
""")
    assert f"refnpu was built for torch {torch.__version__}, but torch 1.2.3 is running" in done.stdout
    assert done.stdout.strip().endswith("False")


def test_a_wrong_environment_variable_is_an_error_at_import(python: Python) -> None:
    done = python("import refnpu", REFNPU_FAULT="copy_ignores_everything")
    assert "fault 'copy_ignores_everything'" in done.stderr
    done = python("import refnpu", REFNPU_ALLOCATOR="guards")
    assert "unknown allocator mode 'guards'" in done.stderr


def test_a_driver_error_names_the_source_line_of_the_call(python: Python) -> None:
    script = "import refnpu, torch; torch.npu.set_device(7)"
    done = python(script, TORCH_SHOW_CPP_STACKTRACES="1", TORCH_SYMBOLIZE_MODE="fast")
    assert re.search(r"npuSetDevice: device 7 of 3[\s\S]* at bindings/module\.cpp:\d+ ", done.stderr), done.stderr
    done = python("import refnpu, torch; torch.ones(2**40, device='npu')", TORCH_SHOW_CPP_STACKTRACES="1")
    assert re.search(r"OutOfMemoryError: [\s\S]* at runtime/allocator\.cpp:\d+ ", done.stderr), done.stderr


def test_tensors_can_be_made_in_malloc_and_aligned_alloc(python: Python) -> None:
    for mode in ("malloc", "aligned_alloc"):
        script = "import refnpu.conformance as c, torch; torch.ones(9, device='npu'); print(c.adapter.environment())"
        assert python(script, REFNPU_ALLOCATOR=mode).stdout.strip() == mode


def test_the_adapter_has_the_environments_of_the_matrix() -> None:
    (entry,) = entry_points(group="conformance.backends", name="refnpu")
    wanted = matrix.load(Path(__file__).parents[2] / "matrices" / "refnpu.toml").environments
    assert entry.load().environments() == {e.name: dict(e.variables) for e in wanted}


def test_the_entry_point_gives_an_adapter_with_its_methods() -> None:
    (entry,) = entry_points(group="conformance.backends", name="refnpu")
    adapter = entry.load()
    assert (adapter.name, adapter.device, adapter.environment()) == (
        "refnpu", "npu:0", os.environ.get("REFNPU_ALLOCATOR", "malloc")
    )  # fmt: skip
    assert adapter.build_info()["torch"] == torch.__version__
    assert {"live_bytes", "live_blocks"} <= adapter.memory_stats().keys()
    assert adapter.verify_memory() == []
    native, fallback = adapter.route_counters()
    assert native >= 0 <= fallback
    adapter.synchronize()
