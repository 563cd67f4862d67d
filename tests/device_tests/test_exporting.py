"""Lists made of failing cells: common parts of cells become one entry, and no cell is dropped."""

from __future__ import annotations

from conformance.device_tests import exporting
from conformance.device_tests.model import Entry
from conformance.records import Observation
from conformance.vocabulary import Status
from tests.device_tests.test_mapping import OPS, failing
from tests.records import observed


def reason(observation: Observation) -> str:
    return f"see {observation.cell.name}"


def test_kinds_that_fail_in_the_same_dtypes_are_one_entry() -> None:
    cells = [
        failing("acos"),
        failing("acos", "float32-neg"),
        failing("neg_", "bool-step2"),
        failing("neg_", "int8-conj"),
    ]
    entries, unmapped = exporting.entries(cells, OPS, reason)
    assert entries == (
        Entry("acos", ("neg", "plain"), ("float32",), "see acos[float32-contiguous]"),
        Entry("neg", ("inplace",), ("bool", "int8"), "see neg_[bool-step2]"),
    )
    assert unmapped == {}


def test_every_cell_that_is_in_no_entry_is_listed_by_the_reason() -> None:
    cells = [failing("acos", "float32-thread"), failing("neg", "int8-thread"), failing("neg", checks=("leak",))]
    entries, unmapped = exporting.entries(cells, OPS, reason)
    assert entries == ()
    assert unmapped == {
        "PyTorch's tests do not check leak": ("ops/masking.py::neg[float32-contiguous]",),
        "PyTorch's tests do not try 'thread'": (
            "ops/masking.py::acos[float32-thread]", "ops/masking.py::neg[int8-thread]",
        ),
    }  # fmt: skip


def test_the_ops_that_a_backend_serves_are_those_that_ran() -> None:
    ran = [observed("relu"), failing("acos"), observed("div.Tensor", status=Status.UNSUPPORTED)]
    assert exporting.served(ran, OPS) == ("acos", "nn.functional.relu")
