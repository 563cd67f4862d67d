"""The failing cells that a list names, and the entries that name none."""

from __future__ import annotations

from conformance.device_tests.matching import Listed
from conformance.device_tests.model import DeviceTestList, Entry
from tests.device_tests.test_mapping import OPS, failing


def listed(*entries: Entry, allowlist: tuple[str, ...] | None = None) -> Listed:
    return Listed(DeviceTestList(entries, allowlist), OPS)


def test_an_entry_names_the_cells_of_its_op_kinds_and_dtypes() -> None:
    found = listed(Entry("neg", ("out",), ("float32",), "known"))
    assert found.reason(failing("neg.out")) == "known"
    assert found.reason(failing("neg.out", "int8-contiguous")) == ""
    assert found.reason(failing("neg_")) == ""
    assert found.reason(failing("acos")) == ""


def test_an_entry_without_kinds_and_dtypes_names_every_cell_of_its_op_that_these_tests_try() -> None:
    found = listed(Entry("_refs.neg", reason="known"))
    assert found.reason(failing("neg_", "int8-expanded")) == "known"
    assert found.reason(failing("neg", "int8-thread")) == ""


def test_a_test_that_is_left_out_for_all_ops_names_the_cells_of_all() -> None:
    found = listed(Entry("*", ("inplace",), (), "left out"))
    assert found.reason(failing("neg_")) == "left out"
    assert found.reason(failing("acos")) == ""


def test_a_cell_whose_ops_are_not_on_the_allowlist_is_not_expected_to_pass() -> None:
    found = listed(allowlist=("acos",))
    assert found.reason(failing("div.Tensor")) == "not on the op_allowlist for PyTorch's tests"
    assert found.reason(failing("acos")) == ""


def test_entries_without_a_failing_cell_and_unknown_ops_are_told() -> None:
    used, unused = Entry("neg", reason="known"), Entry("acos")
    found = listed(used, Entry("neg", ("plain",)), unused, Entry("aco"), allowlist=("softmaxx",))
    assert found.reason(failing("neg")) == "known"
    assert found.unused() == [unused]
    assert found.unknown() == ["unknown OpInfo 'aco'; near: acos", "unknown OpInfo 'softmaxx'; near: softmax"]
