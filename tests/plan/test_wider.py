"""Cells in dtypes in which CPU lacks an overload."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance import backends
from conformance.layouts import CONTEXTS
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.plan.wider import TRIED, dtype_on_cpu
from conformance.vocabulary import Route

LACKED = "special_erfcx"  # CPU computes it only in float32 and float64


def plan(**selected: object) -> Plan:
    return Plan(backends.find("torch:cpu"), Selection(**selected), seed=20)  # type: ignore[arg-type]


def halves(of: Plan, overload: str) -> set[tuple[str, str]]:
    cells = [c for c in of.cells(overload) if c.layout not in CONTEXTS]
    return {(c.dtype, c.layout) for c in cells if c.dtype in ("float16", "bfloat16", "complex32")}


def test_a_kernel_of_the_backend_is_tried_in_dtypes_that_cpu_lacks() -> None:
    full = plan(tier=TIERS["full"])
    assert halves(full, LACKED) == {(dtype, layout) for dtype in ("float16", "bfloat16") for layout in TRIED}
    cells = [c for c in full.cells(LACKED) if c.dtype == "float16"]
    in_wider = [[dtype_on_cpu(case) for case in full.cases(cell)] for cell in cells]
    assert [*map(set, in_wider)] == [{"float32"}] * len(TRIED)
    assert all(full.knows(full.case_ids(cell)[0]) for cell in cells)


def test_the_cells_of_a_dtype_that_cpu_lacks_can_be_asked_for() -> None:
    of_dtype = plan(tier=TIERS["full"], dtypes=frozenset({"bfloat16"}), layouts=frozenset({"contiguous", "transposed"}))
    assert [(c.dtype, c.layout) for c in of_dtype.cells(LACKED)] == [("bfloat16", "contiguous")]


def test_a_kernel_that_is_not_the_backends_is_not_tried_there() -> None:
    full = plan(tier=TIERS["full"])
    full.inventory[LACKED] = replace(full.inventory[LACKED], route=Route.FALLBACK)
    assert not halves(full, LACKED)


def test_the_smoke_tier_leaves_them_out() -> None:
    assert not halves(plan(tier=TIERS["smoke"]), LACKED)


@pytest.mark.parametrize("overload", ["_standard_gamma", "scatter_add_", "repeat_interleave.Tensor"])
def test_what_a_wider_dtype_says_nothing_about_is_not_tried(overload: str) -> None:
    """The overloads draw, round each partial sum, or take integers."""
    found = plan(tier=TIERS["full"])
    assert not [(c.dtype, c.layout) for c in found.cells(overload) if any(map(dtype_on_cpu, found.cases(c)))]


def test_a_case_in_a_dtype_that_cpu_has_is_computed_there() -> None:
    full = plan(tier=TIERS["full"])
    cells = [c for overload in (LACKED, "exp") for c in full.cells(overload) if c.dtype in ("float32", "bfloat16")]
    computed = {(c.overload, c.dtype): {dtype_on_cpu(case) for case in full.cases(c)} for c in cells}
    assert computed == {
        (LACKED, "float32"): {""},
        (LACKED, "bfloat16"): {"float32"},
        ("exp", "float32"): {""},
        ("exp", "bfloat16"): {""},
    }
