"""Exported lists in PyTorch's own device-type tests: they leave out what fails, and everything else still runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from conformance.cli import commands
from conformance.device_tests import writing
from conformance.device_tests.model import DeviceTestList, Entry
from conformance.results import expectations, store
from conformance.results.expectations import Verdict
from conformance.vocabulary import Status

# Tests like those of a backend: for each op and dtype, on the device and on CPU.
TESTS = """
import json, sys, unittest
import refnpu, torch
from torch.testing._internal import common_device_type as device_type
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase

if len(sys.argv) > 1:
    import listed
    listed.apply(xfail=sys.argv[1] == "xfail")
OPS = [op for op in op_db if op.full_name in ("abs", "neg", "native_layer_norm", "nn.functional.layer_norm")]


class TestFirst(TestCase):
    @device_type.ops(OPS, allowed_dtypes=(torch.float32, torch.float64))
    def test_value(self, device, dtype, op):
        for sample, _ in zip(op.sample_inputs("cpu", dtype), range(3)):
            there = sample.transform(lambda x: x.to(device) if isinstance(x, torch.Tensor) else x)
            expected = op(sample.input, *sample.args, **sample.kwargs)
            self.assertEqual(op(there.input, *there.args, **there.kwargs), expected, exact_device=False)


class TestSecond(TestCase):
    @device_type.ops(OPS, allowed_dtypes=(torch.float32,))
    def test_out(self, device, dtype, op):
        pass

    @device_type.ops(OPS, dtypes=device_type.OpDTypes.none)
    def test_dtypes(self, device, op):
        pass


device_type.instantiate_device_type_tests(TestFirst, globals())
device_type.instantiate_device_type_tests(TestSecond, globals())
result = unittest.main(argv=["tests"], exit=False, testRunner=unittest.TextTestRunner(resultclass=None)).result
found = {"failed": result.failures + result.errors, "skipped": result.skipped, "xfailed": result.expectedFailures}
found = {how: sorted(test.id().rpartition(".")[2] for test, _ in tests) for how, tests in found.items()}
unexpected = sorted(test.id().rpartition(".")[2] for test in result.unexpectedSuccesses)
print(json.dumps({**found, "unexpected": unexpected, "run": result.testsRun}))
"""
FAULT = {"REFNPU_FAULT": "layer_norm_eps_outside_sqrt"}
BROKEN = ["native_layer_norm", "nn_functional_layer_norm"]
# Four tests per op (two dtypes of test_value, one of test_out, and test_dtypes), on CPU and on the device.
RUN = 4 * 4 * 2


def ran(where: Path, *arguments: str, **environment: str) -> dict[str, list[str]]:
    """Run the tests of a backend. Return the names of those that do not pass, by their result."""
    (where / "tests.py").write_text(TESTS, encoding="utf-8")
    variables = {**os.environ, **environment}
    command = [sys.executable, "tests.py", *arguments]
    done = subprocess.run(command, cwd=where, env=variables, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("run") == RUN
    return {how: tests for how, tests in found.items() if tests}


def write(where: Path, *entries: Entry, allowlist: tuple[str, ...] | None = None) -> None:
    (where / "listed.py").write_text(writing.as_python(DeviceTestList(entries, allowlist), "listed"), encoding="utf-8")


def test_the_tests_of_a_listed_op_are_skipped_in_its_dtypes_on_the_device_alone(tmp_path: Path) -> None:
    write(tmp_path, Entry("abs", ("plain",), ("float32",), "known"), Entry("neg", ("out", "vmap"), (), "known"))
    assert ran(tmp_path, "skip") == {
        "skipped": ["test_dtypes_abs_npu", "test_out_abs_npu_float32", "test_out_neg_npu_float32",
                    "test_value_abs_npu_float32"],
    }  # fmt: skip


def test_no_test_of_a_listed_op_escapes_whichever_is_made_first(tmp_path: Path) -> None:
    ops = ("abs", "neg", "native_layer_norm", "nn.functional.layer_norm")
    write(tmp_path, *(Entry(op, ("plain",), (), "known") for op in ops))
    assert len(ran(tmp_path, "skip")["skipped"]) == RUN // 2


def test_a_listed_test_that_passes_is_an_unexpected_success_if_it_is_expected_to_fail(tmp_path: Path) -> None:
    write(tmp_path, Entry("neg", ("out",), (), "known"))
    assert ran(tmp_path, "xfail") == {"unexpected": ["test_out_neg_npu_float32"]}


def test_ops_that_are_not_on_the_allowlist_have_no_test_that_runs_on_the_device(tmp_path: Path) -> None:
    import torch.testing._internal.common_device_type as device_type

    write(tmp_path, allowlist=("neg",))
    if not hasattr(device_type.PrivateUse1TestBase, "op_allowlist"):
        assert len(ran(tmp_path, "skip")["skipped"]) == 3 * 4
        return
    (tmp_path / "tests.py").write_text(TESTS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "tests.py", "skip"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1])["run"] == RUN - 3 * 4


def test_the_list_of_a_run_leaves_out_exactly_the_tests_that_fail_and_comes_back_as_known_failures(
    tmp_path: Path,
) -> None:
    results, rules = tmp_path / "results", tmp_path / "refnpu.toml"
    suite = [sys.executable, "-m", "pytest", "--pyargs", "conformance", "--backend", "refnpu", "-p", "no:cacheprovider"]
    few = ["-k", "layer_norm and not backward and (contiguous or aliased) and (float32 or float64)"]
    command = [*suite, *few, "--results", str(results), "-q"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, **FAULT}, capture_output=True, check=False)
    told = CliRunner().invoke(
        commands, ["expect", "export", "--results", str(results), "refnpu", f"{tmp_path}/listed.py"]
    )
    assert told.exit_code == 0, told.output
    assert "cells: PyTorch's tests do not try 'aliased'" in told.output

    failing = [f"test_value_{op}_npu_{dtype}" for op in BROKEN for dtype in ("float32", "float64")]
    assert ran(tmp_path, **FAULT) == {"failed": failing}
    assert ran(tmp_path, "skip", **FAULT)["skipped"] == sorted(
        [*failing, *(f"test_{name}" for op in BROKEN for name in (f"out_{op}_npu_float32", f"dtypes_{op}_npu"))]
    )

    rules.write_text("", encoding="utf-8")
    back = ["expect", "import", "--results", str(results), "--expected", str(rules), f"{tmp_path}/listed.py", "refnpu"]
    told = CliRunner().invoke(commands, back)
    assert told.exit_code == 0, told.output
    read = store.read(store.find(results, "refnpu"))
    known = expectations.load(rules)
    verdicts = {o.cell: expectations.judge(o, known, read.manifest.lane).verdict for o in read.observations}
    expected = {cell for cell, verdict in verdicts.items() if verdict is Verdict.EXPECTED_FAILURE}
    failed = {o.cell for o in read.observations if o.status is Status.FAIL}
    assert expected == {cell for cell in failed if cell.layout == "contiguous"}
    assert Verdict.UNEXPECTED_PASS not in verdicts.values()
