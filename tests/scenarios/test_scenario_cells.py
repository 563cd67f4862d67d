"""Scenarios as cells: the scenarios of a selection."""

from __future__ import annotations

import pytest

from conformance.scenarios import catalogue
from conformance.scenarios.model import SCENARIOS
from tests.scenarios.observed import planned


def test_the_smoke_tier_has_the_quick_scenarios_alone() -> None:
    quick = {cell.overload for cell in planned("torch:cpu", "smoke").scenarios()}
    assert quick == {name for name, scenario in SCENARIOS.items() if not scenario.slow}
    assert len(planned("torch:cpu").scenarios()) > len(quick) > 15


def test_a_selection_by_dtype_layout_or_route_has_no_scenarios() -> None:
    for axis in ("dtypes", "layouts", "routes"):
        assert planned("torch:cpu", "full", **{axis: frozenset({"float32"})}).scenarios() == []


def test_a_case_selects_its_scenario_alone() -> None:
    case = "scenarios/threads.py::clipped_gradients#run"
    plan = planned("torch:cpu", "smoke", case=case)
    assert plan.knows(case)
    assert [str(cell) for cell in plan.scenarios()] == ["scenarios/threads.py::clipped_gradients"]


def test_an_unknown_scenario_is_answered_with_near_ones() -> None:
    with pytest.raises(LookupError, match="near: masks:masked_fill"):
        catalogue.find("masks:masked_fil")
    assert "scenarios/masks.py::masked_fill#run" in planned("torch:cpu").unknown_case(
        "scenarios/masks.py::masked_fil#run"
    )
