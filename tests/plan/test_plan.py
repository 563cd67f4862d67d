"""The plan of a run: the cases of a cell that its tier and its selection take."""

from __future__ import annotations

from dataclasses import replace

from conformance import backends
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.vocabulary import CellId, Route

MANY = CellId("masking", "masked_fill_.Scalar", "float32", "contiguous")  # more samples than the smoke tier takes


def plan(**selected: object) -> Plan:
    return Plan(backends.find("torch:cpu"), Selection(**selected), seed=20)  # type: ignore[arg-type]


def test_the_full_tier_takes_all_cases_of_a_cell() -> None:
    assert plan(tier=TIERS["full"]).takes_all(MANY)


def test_the_smoke_tier_leaves_out_cases_of_a_cell_with_many_samples_alone() -> None:
    smoke, full = plan(tier=TIERS["smoke"]), plan(tier=TIERS["full"])
    cells = [c for o in ("masked_fill_.Scalar", "erfinv.out", "sum.dim_IntList", "celu") for c in smoke.cells(o)]
    whole = [len(smoke.cases(cell)) == len(full.cases(cell)) for cell in cells]
    assert {True, False} == set(whole)
    assert [smoke.takes_all(cell) for cell in cells] == whole


def test_a_case_asked_for_alone_leaves_out_the_others() -> None:
    case = plan().case_ids(MANY)[1]
    assert not plan(case=case).takes_all(MANY)


def test_generated_samples_of_a_composite_have_cells_where_the_backend_has_a_kernel_for_it() -> None:
    composite, own = plan(tier=TIERS["full"]), plan(tier=TIERS["full"])
    own.inventory["linear"] = replace(own.inventory["linear"], route=Route.NATIVE)
    generated = {"sizes", "sizes_gap", "sizes_strided", "values", "values_strided", "variants", "variants_strided"}
    assert composite.inventory["linear"].route is Route.COMPOSITE
    assert not {s.name for s in composite.samples("linear") if s.axis == "sizes"}
    assert {c.layout for c in composite.cells("linear")} & generated == {"variants", "variants_strided"}
    assert {c.layout for c in own.cells("linear")} >= generated
    few, all_ = (sum(len(p.cases(c)) for c in p.cells("linear") if c.layout in generated) for p in (composite, own))
    assert 0 < few < all_


def test_the_largest_sizes_are_tried_of_native_kernels_in_the_full_tier_alone() -> None:
    def has(found: Plan) -> bool:
        return "sizes_large" in {c.layout for c in found.cells("_softmax.out")}

    full = plan(tier=TIERS["full"])
    assert has(full)
    assert not has(plan(tier=TIERS["smoke"]))
    full.inventory = full.inventory | {"_softmax.out": replace(full.inventory["_softmax.out"], route=Route.FALLBACK)}
    assert not has(full)
