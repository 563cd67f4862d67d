"""The shipped adapters: found by name, with clear errors about missing parts. Stand-ins take the place of devices."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from conformance import adapters, backends
from conformance.adapters import model
from conformance.backends import BackendNotFound, finding

PACKAGES = ("torch_npu", "torch_openreg", "torch_xla")
TORCH_XLA = {
    "__init__.py": "calls = []\ndef sync():\n    calls.append('sync')\n",
    "core/__init__.py": "",
    "core/xla_model.py": "import torch, torch_xla\n"
    "def wait_device_ops():\n    torch_xla.calls.append('wait')\n"
    "def save(value, file):\n    torch_xla.calls.append('save')\n    torch.save(value, file)\n",
}


def package(directory: Path, name: str, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a package that this process can import for the rest of the test."""
    for path, text in files.items():
        file = directory / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(directory)
    monkeypatch.setattr(sys, "modules", sys.modules.copy())  # drops later imports after the test


def installed(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    entries = [EntryPoint(name, value, backends.GROUP) for name, value in values.items()]
    monkeypatch.setattr(finding, "entry_points", lambda group: entries)


def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make torch the only installed package, on a machine without a device."""
    spec = ModuleSpec("torch", None)
    monkeypatch.setattr(model, "find_spec", lambda name: spec if name == "torch" else None)
    for kind in ("cuda", "mps", "xpu"):
        monkeypatch.setattr(getattr(torch, kind), "device_count", lambda: 0)


@pytest.mark.parametrize("name", adapters.NAMES)
def test_each_adapter_is_named_as_its_module_and_says_how_to_install_it(name: str) -> None:
    found = adapters.class_of(name)
    assert name == found.NAME
    assert found.INSTALL


def test_an_unknown_adapter_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="model"):
        adapters.class_of("model")


def test_a_shipped_adapter_is_found_by_its_name() -> None:
    backend = backends.find("cpu")
    assert (backend.name, backend.asked, backend.device, backend.module) == ("cpu", "cpu", "cpu", "torch")


def test_an_installed_backend_comes_before_a_shipped_adapter_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "class Adapter:\n    name, device = 'installed', 'cpu'\nadapter = Adapter()\n"
    package(tmp_path, "somebodys_cpu", {"__init__.py": text}, monkeypatch)
    installed(monkeypatch, cpu="somebodys_cpu:adapter")
    assert backends.find("cpu").name == "installed"


def test_shipped_adapters_are_no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    no_packages(monkeypatch)
    installed(monkeypatch, mine="mine:adapter")
    assert backends.default() == "mine"
    installed(monkeypatch)
    with pytest.raises(BackendNotFound, match=r"no --backend given, and none is installed \(usable here: cpu\)"):
        backends.default()


def test_an_error_lists_installed_backends_then_the_adapters_that_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    no_packages(monkeypatch)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    installed(monkeypatch, mine="mine:adapter", yours="yours:adapter")
    said = "unknown backend 'torch_xl'; near: torch_xla, torch_npu; installed: mine yours, usable here: cpu cuda;"
    with pytest.raises(BackendNotFound, match=said):
        backends.find("torch_xl")


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_that_is_not_installed_is_named_with_how_to_install_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_packages(monkeypatch)
    with pytest.raises(BackendNotFound) as raised:
        backends.find(name)
    assert str(raised.value) == (
        f"backend {name!r}: the package {name} is not installed; {adapters.class_of(name).INSTALL}"
    )


@pytest.mark.parametrize("name", ["cuda", "mps", "xpu"])
def test_a_device_that_torch_does_not_find_is_named_with_what_it_needs(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_packages(monkeypatch)
    with pytest.raises(BackendNotFound) as raised:
        backends.find(name)
    install = adapters.class_of(name).INSTALL
    assert (
        str(raised.value) == f"backend {name!r}: torch {torch.__version__} finds no device of type {name!r}; {install}"
    )


def test_a_package_without_a_device_is_told_from_one_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, "torch_npu", {"__init__.py": ""}, monkeypatch)
    monkeypatch.setattr(torch, "npu", SimpleNamespace(device_count=lambda: 0), raising=False)
    with pytest.raises(
        BackendNotFound, match=r"^backend 'torch_npu': torch_npu finds no device of type 'npu'; install"
    ):
        backends.find("torch_npu")


def test_a_package_that_breaks_while_it_loads_is_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "torch_npu", {"__init__.py": "raise ImportError('libascendcl.so: no such file')"}, monkeypatch)
    said = "'torch_npu' .* cannot be loaded: ImportError: libascendcl.so: no such file"
    with pytest.raises(BackendNotFound, match=said):
        backends.find("torch_npu")


@pytest.mark.parametrize("name", ["cuda", "xpu", "mps"])
def test_with_a_stand_in_for_the_device_torchs_own_functions_are_used(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr(getattr(torch, name), "device_count", lambda: 1)
    monkeypatch.setattr(getattr(torch, name), "synchronize", lambda: calls.append("synchronize"))
    backend = backends.find(name)
    backend.synchronize()
    assert (backend.device, calls, backend.bare) == (f"{name}:0", ["synchronize"], True)
    assert backend.environments()


def test_cuda_computes_in_float32_and_in_whole_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    products = torch.backends.cuda.matmul
    settings = (
        (torch.backends.cudnn, "allow_tf32"),
        (products, "allow_fp16_reduced_precision_reduction"),
        (products, "allow_bf16_reduced_precision_reduction"),
    )
    before = [getattr(module, name) for module, name in settings]
    try:
        assert backends.find("cuda").sticky_errors
        assert not any(getattr(module, name) for module, name in settings)
    finally:
        for (module, name), value in zip(settings, before, strict=True):
            setattr(module, name, value)


def test_cuda_offers_uncached_allocations_and_blocking_launches() -> None:
    found = adapters.class_of("cuda").environments
    assert found(SimpleNamespace()) == {  # type: ignore[arg-type]  # it uses nothing of the adapter
        "no_caching": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
        "blocking": {"CUDA_LAUNCH_BLOCKING": "1"},
        "for_sanitizer": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "CUDA_LAUNCH_BLOCKING": "1"},
    }


@pytest.mark.parametrize(("name", "variables"), [
    ("cuda", {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}),
    ("xpu", {"ONEAPI_DEVICE_SELECTOR": "*:cpu", "ZE_AFFINITY_MASK": ""}),
    ("mps", {}),
])  # fmt: skip
def test_variables_that_hide_the_devices_are_set_where_a_backend_has_them(
    name: str, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getattr(torch, name), "device_count", lambda: 1)
    assert backends.find(name).hidden_by == variables


def test_torch_npu_has_no_device_in_a_process_with_an_empty_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, "torch_npu", {"__init__.py": ""}, monkeypatch)
    monkeypatch.setattr(torch, "npu", SimpleNamespace(device_count=lambda: 1), raising=False)
    assert backends.find("torch_npu").hidden_by == {"ASCEND_RT_VISIBLE_DEVICES": ""}


def test_torch_xla_ends_the_step_before_it_waits_and_saves_in_its_own_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, "torch_xla", TORCH_XLA, monkeypatch)
    monkeypatch.setattr(torch, "xla", SimpleNamespace(synchronize=None), raising=False)  # the adapter has its own
    backend = backends.find("torch_xla")
    backend.synchronize()
    file = io.BytesIO()
    backend.save(torch.tensor([3]), file)
    assert backend.mark_step()
    import torch_xla  # the stand-in

    assert torch_xla.calls == ["sync", "wait", "save", "sync"]
    assert torch.load(io.BytesIO(file.getvalue())).tolist() == [3]
    assert backend.missing == ("route_counters", "memory_stats", "verify_memory", "fill_fresh", "delay_work", "donate",
                               "build_info", "environment")  # fmt: skip


def test_a_backend_without_its_own_way_saves_as_torch_does() -> None:
    backend, file = backends.find("torch:cpu"), io.BytesIO()
    backend.save({"a": torch.tensor([3])}, file)
    assert not backend.saves
    assert torch.load(io.BytesIO(file.getvalue()))["a"].tolist() == [3]


PLANNED = """
import torch
from conformance import backends
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
backend = backends.find("cpu")
Plan(backend, Selection(), 0)
print(torch.get_num_threads(), torch.backends.mkldnn.is_available() and torch._C._get_mkldnn_enabled())
print(backend.isolation, backend.environment())
"""


@pytest.mark.parametrize(
    ("variables", "printed"),
    [
        ({}, f"1 {torch.backends.mkldnn.is_available()}\nfork threads1\n"),
        (
            {"CONFORMANCE_CPU_THREADS": "3", "CONFORMANCE_CPU_ONEDNN": "0"},
            "3 False\nspawn threads3_no_onednn\n",
        ),
    ],
)
def test_cpu_runs_with_the_threads_and_the_library_that_the_environment_names(
    variables: dict[str, str], printed: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLANNED], env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert done.stdout == printed, done.stderr


@pytest.mark.parametrize("threads", ["0", "-1", "many", ""])
def test_a_number_of_threads_that_is_none_is_refused(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_CPU_THREADS", threads)
    with pytest.raises(BackendNotFound, match=f"CONFORMANCE_CPU_THREADS={threads}: expected a number of threads"):
        backends.find("cpu")
