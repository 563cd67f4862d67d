"""The cells that ops/ excludes, because even CPU's kernel does harm or has no right answer there, and no others."""

from __future__ import annotations

import pytest

from conformance import backends, ops
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan(backends.find("torch:cpu"), Selection(), seed=20)


@pytest.mark.parametrize(
    ("overload", "layouts"),
    [
        ("_cummax_helper", {"zero_size", "zero_dim", "neg", "mixed"}),
        ("_weight_norm_interface", {"expanded", "overlapping", "mixed"}),
        ("_embedding_bag_forward_only.out", {"expanded", "overlapping", "mixed"}),
    ],
)
def test_layouts_in_which_the_cpu_s_own_kernel_passes_the_end_are_left_out(
    plan: Plan, overload: str, layouts: set[str]
) -> None:
    assert set(ops.facts(overload).overruns) == layouts
    left = {cell.layout for cell in plan.cells(overload)}
    assert not left & layouts
    assert {"contiguous", "transposed"} <= left


def test_other_overloads_keep_these_layouts(plan: Plan) -> None:
    assert {"zero_size", "zero_dim", "neg", "expanded", "mixed"} <= {c.layout for c in plan.cells("add.Tensor")}


def test_dtypes_that_a_sample_s_numbers_do_not_fit_are_left_out(plan: Plan) -> None:
    limited = [o for o in plan.overloads() if ops.facts(o).undefined_in]
    assert limited
    for overload in limited:
        dtypes = {cell.dtype for cell in plan.cells(overload)}
        assert dtypes
        assert not dtypes & set(ops.facts(overload).undefined_in)
