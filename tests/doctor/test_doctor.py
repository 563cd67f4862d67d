"""The doctor: each registration is probed in a process of its own, and the lines suit the torch version."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from packaging.version import Version

from conformance import backends
from conformance.backends import Capabilities
from conformance.bare_device import BareDevice
from conformance.doctor import examination, probes
from conformance.doctor.registrations import REGISTRATIONS, Need, Registration
from conformance.vocabulary import Route

OLD, NEW = Version("2.6.0"), Version("2.13.0")


def _raises(_: Capabilities) -> str:
    raise RuntimeError("Please register a generator\nwith two lines")


def _dies(_: Capabilities) -> str:
    return str(ctypes.string_at(0))


def registration(probe: object, *lines: tuple[str, str]) -> Registration:
    return Registration("it", probe, Need.ADVISED, "torch.{kind}", lines or (("2.0", "add {kind} of {module}"),))  # type: ignore[arg-type]  # a probe


@pytest.fixture(scope="module")
def backend() -> Capabilities:
    return backends.find("refnpu:npu")


@pytest.mark.parametrize(
    ("probe", "missing"),
    [
        (lambda _: "", ""),
        (lambda _: "there is no such function", "there is no such function"),
        (_raises, "RuntimeError: Please register a generator"),
        (_dies, "the process died: SIGSEGV"),
    ],
)
def test_a_finding_says_what_is_missing_also_if_its_process_dies(
    backend: Capabilities, probe: object, missing: str
) -> None:
    (found,) = examination.examine(backend, NEW, [registration(probe)])
    assert found.missing == missing


def test_the_lines_are_those_of_the_torch_version(backend: Capabilities) -> None:
    one = registration(lambda _: "no", ("2.0", "old {kind}"), ("2.7", "new {module}"))
    assert one.lines_for(OLD, "npu", "mine") == "old npu"
    assert one.lines_for(NEW, "npu", "mine") == "new mine"
    text = examination.text(list(examination.examine(backend, NEW, [one])), backend, NEW)
    assert "MISSING (advised) it: no\n  for: torch.npu\n  add:\n    new refnpu" in text


def test_a_registration_that_the_version_does_not_have_is_not_asked_for(backend: Capabilities) -> None:
    assert list(examination.examine(backend, OLD, [registration(lambda _: "no", ("2.9", "x"))])) == []


@pytest.mark.parametrize("one", REGISTRATIONS, ids=lambda one: one.name)
def test_the_table_has_lines_for_every_version_from_the_first(one: Registration) -> None:
    versions = [Version(since) for since, _ in one.lines]
    assert versions == sorted(set(versions))
    assert all(one.lines_for(version, "npu", "mine").strip() for version in versions)
    assert one.purpose


@pytest.mark.parametrize(
    ("entry", "missing"),
    [("mine = mine.start:load", False), ("mine = mine_autoload:load", False), ("", True)],
)
def test_a_backend_may_be_loaded_by_another_module_of_its_distribution(
    entry: str, missing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "top_level.txt").write_text("mine\nmine_autoload\n")
    (info / "entry_points.txt").write_text(f"[torch.backends]\n{entry}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert bool(probes.autoload(Capabilities(BareDevice("mine", "cpu"), "mine", "mine"))) is missing


HIDDEN = [
    ("seeding", "manual_seed_all"), ("AMP", "get_amp_supported_dtype"), ("module functions", "set_device"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function"), HIDDEN)
def test_a_function_that_is_taken_away_is_found_missing(
    backend: Capabilities, monkeypatch: pytest.MonkeyPatch, name: str, function: str
) -> None:
    (one,) = (r for r in REGISTRATIONS if r.name == name)
    (there,) = examination.examine(backend, NEW, [one])
    assert there.missing == ""
    monkeypatch.delattr(torch.npu, function)
    (gone,) = examination.examine(backend, NEW, [one])
    assert gone.missing == f"there is no torch.npu.{function}"


@pytest.mark.parametrize(("name", "function"), [h for h in HIDDEN if h[0] != "AMP"])
def test_of_several_functions_only_lines_for_those_that_are_missing_are_shown(
    backend: Capabilities, monkeypatch: pytest.MonkeyPatch, name: str, function: str
) -> None:
    (one,) = (r for r in REGISTRATIONS if r.name == name)
    monkeypatch.delattr(torch.npu, function)
    text = examination.text(list(examination.examine(backend, NEW, [one])), backend, NEW)
    assert re.findall(r"def (\w+)", text) == [function]
    assert re.findall(r"def (\w+)", one.lines_for(NEW, "npu", "mine")) == list(one.each)


def test_only_the_kernels_that_are_missing_are_shown(backend: Capabilities, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = (r for r in REGISTRATIONS if r.name == "minimal ops")
    monkeypatch.setattr(probes, "route_of", lambda name, _: "" if name == "set_.source_Storage" else Route.NATIVE)
    text = examination.text(list(examination.examine(backend, NEW, [one])), backend, NEW)
    assert "no kernel for set_.source_Storage\n" in text
    assert re.findall(r"m\.impl.*", text) == ['m.impl("set_.source_Storage", &set__source_Storage);']


@pytest.mark.parametrize("falls_through", [True, False])
def test_a_gradient_of_an_op_that_falls_through_autograd_is_found(falls_through: bool) -> None:
    library = torch.library.Library("doctor_of_gradients", "DEF")
    for name in ("twice", "twice_backward"):
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, lambda x: x * 2, "CPU")
        library.impl(name, lambda x: x * 2, "AutogradCPU") if name == "twice" or not falls_through else None
    if falls_through:
        library.impl("twice_backward", torch.library.fallthrough_kernel, "AutogradCPU")
    try:
        said = probes.second_derivatives(Capabilities(BareDevice("torch", "cpu"), "torch:cpu", "torch"))
        assert said.endswith("doctor_of_gradients::twice_backward") is falls_through
    finally:
        library._destroy()  # noqa: SLF001  # it has no public name


NAMED = """
import torch
from packaging.version import Version
from conformance.backends import Capabilities
from conformance.bare_device import BareDevice
from conformance.doctor import examination
from conformance.doctor.registrations import REGISTRATIONS
version, device = Version("2.13.0"), Capabilities(BareDevice("torch", "mydev"), "torch:mydev", "torch")
for name in ("device name", "names for methods"):
    (one,) = (r for r in REGISTRATIONS if r.name == name)
    exec(one.lines_for(version, "mydev", "torch"))
    (found,) = examination.examine(device, version, [one])
    assert found.missing == "", found.missing
"""


def test_the_lines_for_names_are_all_that_their_probes_ask_for() -> None:
    subprocess.run(
        [sys.executable, "-c", NAMED], check=True, timeout=300, env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    )
