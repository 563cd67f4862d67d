"""Torch's profiler sees this device's kernels and their times, as far as the version of torch allows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch.autograd.profiler import profile as legacy_profile
from torch.profiler import ProfilerActivity, profile

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
needs_time_line = pytest.mark.skipif(VERSION < (2, 13), reason="torch 2.13 is the first to take a device's profiler")


def program() -> None:
    x = torch.ones(64, 64, device="npu")
    (x @ x).sum().item()


def test_the_legacy_profiler_times_each_op_on_the_device() -> None:
    with legacy_profile(use_device="npu", use_kineto=False) as profiled:
        program()
    times = {event.name: event.device_time_total for event in profiled.function_events}
    assert times["aten::mm"] > 0
    assert times["aten::sum"] > 0


@needs_time_line
def test_the_profiler_names_the_kernels_of_each_op() -> None:
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiled:
        program()
    launched = {(event.name, kernel.name) for event in profiled.events() for kernel in event.kernels}
    assert {
        ("aten::mm", "gemm"),
        ("aten::sum", "reduce_total"),
        ("aten::_local_scalar_dense", "memcpy"),
    } <= launched
    averages = {average.key: average for average in profiled.key_averages()}
    assert 0 < averages["aten::mm"].device_time_total <= averages["aten::mm"].cpu_time_total


@needs_time_line
def test_a_trace_shows_each_kernel_on_its_device_and_stream(tmp_path: Path) -> None:
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiled:
        torch.ones(8, device="npu:0")
        with torch.npu.stream(torch.npu.Stream("npu:1")):
            torch.zeros(8, device="npu:1")
    profiled.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    fills = [e for e in events if e["name"] == "fill" and e["ph"] == "X"]
    assert [e["pid"] for e in fills] == [0, 1]
    assert fills[0]["tid"] != fills[1]["tid"]


@needs_time_line
def test_the_profiler_records_no_kernel_after_its_end() -> None:
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]):
        pass
    program()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as profiled:
        torch.ones(1, device="npu")
    assert [e.name for e in profiled.events() if e.device_type != torch.autograd.DeviceType.CPU] == ["fill"]
