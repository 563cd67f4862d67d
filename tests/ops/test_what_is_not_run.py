"""What ops/ leaves to no kernel, because even the CPU's does harm or has no right answer there: those cells alone."""

from __future__ import annotations

import pytest

from conformance import backends, ops
from conformance.suite import Selection, Suite


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite(backends.find("torch:cpu"), Selection(), seed=20)


@pytest.mark.parametrize(
    ("overload", "layouts"),
    [
        ("_cummax_helper", {"zero_size", "zero_dim", "neg", "mixed"}),
        ("_weight_norm_interface", {"expanded"}),
        ("_embedding_bag_forward_only.out", {"expanded", "overlapping", "mixed"}),
    ],
)
def test_layouts_in_which_the_cpu_s_own_kernel_passes_the_end_are_left_out(
    suite: Suite, overload: str, layouts: set[str]
) -> None:
    assert set(ops.facts(overload).overruns) == layouts
    left = {cell.layout for cell in suite.cells(overload)}
    assert not left & layouts
    assert {"contiguous", "transposed"} <= left


def test_other_overloads_keep_these_layouts(suite: Suite) -> None:
    assert {"zero_size", "zero_dim", "neg", "expanded", "mixed"} <= {c.layout for c in suite.cells("add.Tensor")}


def test_dtypes_that_a_sample_s_numbers_do_not_fit_are_left_out(suite: Suite) -> None:
    limited = [o for o in suite.overloads() if ops.facts(o).undefined_in]
    assert limited
    for overload in limited:
        dtypes = {cell.dtype for cell in suite.cells(overload)}
        assert dtypes
        assert not dtypes & set(ops.facts(overload).undefined_in)
