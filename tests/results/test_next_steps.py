"""The steps that let most cells pass."""

from __future__ import annotations

from dataclasses import replace

from conformance.records import Observation
from conformance.results.next_steps import Action, Step, steps, waiting
from conformance.vocabulary import Status
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
        (Action.IMPLEMENT, "conv2d", 3), (Action.PRIMITIVE, "conjugate", 2), (Action.IMPLEMENT, "relu", 2),
        (Action.MEND, "masked_fill_", 1),
    ]  # fmt: skip
    assert found[1].note == "it dies"


def test_composites_that_wait_for_a_kernel_are_counted_apart() -> None:
    assert waiting(RAN) == 1
    assert "dropout" not in {step.what for step in steps(RAN)}


def test_a_run_without_failures_needs_no_step() -> None:
    assert steps([observed("mm")]) == []
