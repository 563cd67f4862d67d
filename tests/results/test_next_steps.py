"""The steps that let most cells pass and most calls of models run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from conformance.layouts import Placement
from conformance.models.model import Recording
from conformance.records import Observation
from conformance.results.next_steps import Action, Models, Order, Step, steps, waiting
from conformance.vocabulary import Status
from tests.models.calls import call, recording, slot
from tests.records import observed


def without_kernel(overload: str, cell: str, route: str = "unsupported") -> Observation:
    return replace(observed(overload, cell, Status.UNSUPPORTED, reason="no kernel"), route=route)


RAN = (
    observed("mm"),
    observed("masked_fill_.Scalar", "bool-expanded", Status.FAIL),
    without_kernel("conv2d.out", "float32-contiguous"),
    without_kernel("conv2d.out", "float32-expanded"),
    without_kernel("conv2d", "float32-contiguous"),
    without_kernel("relu_", "float32-contiguous"),
    without_kernel("relu", "float32-contiguous"),
    without_kernel("dropout", "float32-contiguous", route="composite"),
)


def test_operators_without_a_kernel_are_ranked_by_their_cells_with_all_their_forms() -> None:
    found = [step for step in steps(RAN) if step.action is Action.IMPLEMENT]
    assert found == [
        Step(Action.IMPLEMENT, "conv2d", 3, ("conv2d.out", "conv2d")),
        Step(Action.IMPLEMENT, "relu", 2, ("relu", "relu_")),
    ]


def test_a_broken_kernel_and_a_broken_primitive_are_steps_too() -> None:
    limits = [{"primitive": "conjugate", "headline": "it dies", "cells": 2}]
    found = steps(RAN, limits)
    assert [(s.action, s.what, s.cells) for s in found] == [
        (Action.PRIMITIVE, "conjugate", 2), (Action.IMPLEMENT, "conv2d", 3), (Action.IMPLEMENT, "relu", 2),
        (Action.FIX, "masked_fill_", 1),
    ]  # fmt: skip
    assert found[0].note == "it dies"


def test_composites_that_wait_for_a_kernel_are_counted_apart() -> None:
    assert waiting(RAN) == 1
    assert "dropout" not in {step.what for step in steps(RAN)}


def test_a_run_without_failures_needs_no_step() -> None:
    assert steps([observed("mm")]) == []


BELOW = {"add.Tensor": ("add.out",)}
ROUTES = {
    "mm": "native", "add.Tensor": "composite", "add.out": "unsupported", "silu": "fallback", "neg": "native",
    "masked_fill_.Scalar": "native",
}  # fmt: skip
RECORDED = recording(
    call("mm", count=10), call("add.Tensor", count=20), call("silu", count=30, made=24),
    call("masked_fill_.Scalar", slot(dtype="bool"), count=40), name="tiny",
)  # fmt: skip


def ranked(
    observations: Sequence[Observation] = (), order: Order = Order.MODELS, *recordings: Recording
) -> list[tuple[str, str, int]]:
    models = Models(recordings or (RECORDED,), ROUTES, BELOW)
    return [(s.action.value, s.what, s.calls) for s in steps(observations, (), models, order)]


def test_without_a_run_the_routes_tell_what_models_lack_and_what_falls_back() -> None:
    assert ranked() == [("implement", "add", 20), ("native", "silu", 30)]


def test_a_failing_kernel_has_the_calls_of_its_failing_cells() -> None:
    assert ranked([observed("mm", status=Status.FAIL)]) == [
        ("implement", "add", 20), ("fix", "mm", 10), ("native", "silu", 30),
    ]  # fmt: skip


def test_a_kernel_that_passes_has_no_step() -> None:
    assert "mm" not in [what for _, what, _ in ranked([observed("mm")])]


@pytest.mark.parametrize(
    ("cell", "calls"),
    [("bool-contiguous", 40), ("bool-values", 40), ("bool-expanded", 0), ("bool-vmap", 0), ("bool-zero_size", 0)],
)
def test_a_contiguous_call_is_broken_by_contiguous_cells_alone(cell: str, calls: int) -> None:
    (found,) = [s for s in ranked([observed("masked_fill_.Scalar", cell, Status.FAIL)]) if s[0] == "fix"]
    assert found == ("fix", "masked_fill_", calls)


def test_a_strided_call_is_broken_by_strided_cells_too() -> None:
    strided = recording(call("mm", placed=(Placement("recorded", (2, 3), (1, 2), 0, 6),), count=3))
    assert ("fix", "mm", 3) in ranked([observed("mm", "float32-step2", Status.FAIL)], Order.MODELS, strided)


def test_a_cell_in_another_dtype_counts_only_if_that_of_the_call_was_not_tried() -> None:
    other = observed("mm", "float64-contiguous", Status.FAIL)
    assert ("fix", "mm", 10) in ranked([other])
    assert ("fix", "mm", 0) in ranked([other, observed("mm", "float32-contiguous")])


def test_a_composite_is_broken_by_the_cells_of_the_kernel_below_it() -> None:
    models = Models((RECORDED,), ROUTES | {"add.out": "native"}, BELOW)
    (found,) = [s for s in steps([observed("add.out", status=Status.FAIL)], (), models) if s.action is Action.FIX]
    assert found.calls == 20


@pytest.mark.parametrize(
    ("order", "first"), [(Order.CELLS, "masked_fill_"), (Order.CALLS, "silu"), (Order.BYTES, "silu")]
)
def test_the_order_can_be_chosen(order: Order, first: str) -> None:
    failing = [observed("masked_fill_.Scalar", "bool-expanded", Status.FAIL)]
    assert ranked(failing, order)[0][1] == first


def test_a_fallback_copies_the_arguments_down_and_the_result_up_in_each_call() -> None:
    (found,) = [s for s in steps((), (), Models((RECORDED,), ROUTES, BELOW)) if s.action is Action.NATIVE]
    assert (found.copied, dict(found.models)) == (30 * (24 + 24), {"tiny": 30})


def test_a_step_is_a_record_for_json() -> None:
    made = steps((), (), Models((RECORDED,), ROUTES, BELOW))[1].to_json()
    assert json.loads(json.dumps(made)) == made
    assert (made["action"], made["what"], made["calls"], made["bytes"]) == ("native", "silu", 30, 1440)
