"""Lists that are read but never executed: exported files, and lists that backends write by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.device_tests import reading, writing
from conformance.device_tests.model import DeviceTestList, Entry, ListError

LIST = DeviceTestList(
    (Entry("neg", ("plain", "out"), ("float32",), "a 'quoted' reason"), Entry("acos", ("vmap",))), ("neg",),
    {"PyTorch's tests do not try 'thread'": ("ops/m.py::neg[float32-thread]",)}, "demo", "run-1", "2.13.0",
)  # fmt: skip
HAND_WRITTEN = """
import unittest
import torch
from torch.testing._internal.opinfo.core import DecorateInfo

raise SystemExit("this file must not run")
HALVES = (torch.float16, torch.bfloat16)
MORE = {"neg": [DecorateInfo(unittest.expectedFailure, "TestCommon", "test_out", dtypes=HALVES)]}


class DemoTestBase(PrivateUse1TestBase):
    op_overrides = {
        "acos": [DecorateInfo(unittest.skip("hangs")), DecorateInfo(toleranceOverride({}), "TestCommon")],
        "div.floor_rounding": [DecorateInfo((unittest.expectedFailure,), test_name="test_ours")],
        "relu": [DecorateInfo(unittest.skip(""), dtypes=floating_types()), DecorateInfo(unittest.skip("y"), "TestFoo")],
        "exp": listed_elsewhere,
        **MORE,
    }


PrivateUse1TestBase.set_test_configs(
    op_allowlist={"neg", *["acos"]} | set(("abs",)), test_exclusions={"TestCommon": ["test_errors"], "TestJit": "*"}
)


class TestMine:
    @ops(op_db)
    @skipOps([xfail("exp", "variant", dtypes=(torch.int8,)), skip("log"), skip(NAME)])
    def test_noncontiguous_samples(self, device, dtype, op):
        unittest.skip("not a mark")
"""


def read(tmp_path: Path, text: str, name: str = "listed.py") -> DeviceTestList:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return reading.read(file)


@pytest.mark.parametrize("name", ["listed.py", "listed.json"])
def test_an_exported_list_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    text = writing.as_json(LIST) if name.endswith("json") else writing.as_python(LIST, "listed")
    found = read(tmp_path, text, name)
    assert (found.entries, found.allowlist, found.backend, found.run) == (LIST.entries, ("neg",), "demo", "run-1")


def test_what_a_backend_writes_for_pytorchs_tests_is_read_without_running_it(tmp_path: Path) -> None:
    found = read(tmp_path, HAND_WRITTEN)
    assert found.entries == (
        Entry("acos", (), (), "listed for PyTorch's tests: hangs"),
        Entry("neg", ("out",), ("float16", "bfloat16"), "listed for PyTorch's tests: expected to fail"),
        Entry("*", ("errors",), (), "listed for PyTorch's tests: TestCommon.test_errors is left out"),
        Entry("exp.variant", ("noncontiguous", "backward"), ("int8",), "listed for PyTorch's tests: expected to fail"),
        Entry("log", ("noncontiguous", "backward"), (), "listed for PyTorch's tests: skipped"),
    )
    assert found.allowlist == ("neg", "acos", "abs")


def test_what_is_in_a_list_and_cannot_be_read_is_told_with_its_line(tmp_path: Path) -> None:
    assert {why: len(places) for why, places in read(tmp_path, HAND_WRITTEN).unmapped.items()} == {
        "leaves out all of TestJit, whatever the op": 1,
        "its dtypes are not written as torch.<dtype>": 1,
        "not written as a list": 1,
        "names a class and no test": 1,
        "test_ours is no test of a kind that the suite tries": 1,
        "the decorator toleranceOverride says of no failure": 1,
        "NAME is not a literal": 1,
    }
    assert read(tmp_path, HAND_WRITTEN).unmapped["NAME is not a literal"] == ("line 28: skip(NAME)",)


ADDED = """
op_overrides = {}
op_overrides["acos"] = [DecorateInfo(unittest.expectedFailure)]
DemoTestBase.op_overrides |= {"neg": [DecorateInfo(unittest.expectedFailure)]}
DemoTestBase.op_overrides.update({"abs": [DecorateInfo(unittest.expectedFailure)]})
op_allowlist = ["neg"]
op_allowlist += ["acos"]
op_allowlist.append("abs")
op_allowlist.extend(["log"])
OTHER["exp"] = [DecorateInfo(unittest.expectedFailure)]
"""


def test_what_is_added_to_a_table_is_read_too(tmp_path: Path) -> None:
    found = read(tmp_path, ADDED)
    assert {entry.op for entry in found.entries} == {"acos", "neg", "abs"}
    assert sorted(found.allowlist or ()) == ["abs", "acos", "log", "neg"]
    assert found.unmapped == {}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.py", "x = 1", "no list found; expected op_overrides, op_allowlist, test_exclusions, skipOps or KNOWN_FAIL"),
        ("a.py", "x = (", "neither JSON nor Python"),
        ("a.json", "{", "neither JSON nor Python"),
        ("a.json", "[]", "expected a list of format 1, found 'list'"),
        ("a.json", '{"format": 9}', "expected a list of format 1, found 9"),
        ("a.json", '{"format": 1, "ops": {"neg": {}}}', "ops: 'neg': expected a list of entries, got dict"),
        ("a.json", '{"format": 1, "ops": {"neg": [{"kind": "out"}]}}', "expected a dict with dtypes, kinds, reason"),
        ("a.json", '{"format": 1, "ops": {"neg": [{"kinds": "out"}]}}', "expected lists of strings and a reason"),
        ("a.json", '{"format": 1, "ops": {}, "allowlist": "neg"}', "'allowlist', a list of ops or None"),
        ("a.py", "KNOWN_FAILURES = exec('raise SystemExit')", "a.py:1: KNOWN_FAILURES is not a literal"),
    ],
)
def test_a_file_that_is_no_list_is_refused_with_its_name(tmp_path: Path, name: str, text: str, problem: str) -> None:
    with pytest.raises(ListError) as e:
        read(tmp_path, text, name)
    assert str(tmp_path / name) in str(e.value)
    assert problem in str(e.value)
