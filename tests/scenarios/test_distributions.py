"""Distributions: a wrong density, a wrong mean, draws that repeat or leave their range are found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from conformance.scenarios import distributions
from conformance.scenarios.model import Program
from tests.scenarios import altered

pytestmark = pytest.mark.forked  # they run `backward`

different = partial(altered.different, within=1e-5)

OF_GAMMA = {"chi2", "fisher_snedecor", "gamma", "negative_binomial", "student_t"}  # drawn from draws of gamma


@pytest.mark.parametrize("program", [distributions.densities, distributions.draws_of_distributions])
def test_a_program_gives_the_same_results_again_whatever_is_drawn(program: Program) -> None:
    assert different(program, lambda: None) == set()


def test_all_facts_of_draws_hold_on_cpu() -> None:
    assert altered.untrue(distributions.draws_of_distributions) == []


def test_a_wrong_function_under_a_density_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    lgamma = torch.lgamma
    found = different(
        distributions.densities, lambda: monkeypatch.setattr(torch, "lgamma", lambda x: lgamma(x) + (x > 2))
    )
    assert {"gamma.density", "gamma.entropy", "binomial.density", "weibull.mean"} <= found
    assert not {"normal.density", "gamma.mean"} & found


@pytest.mark.parametrize(
    "draw",
    [
        lambda drawn: drawn * 1.1,  # wrong mean
        lambda drawn: -drawn,  # outside the support
        lambda drawn: torch.full_like(drawn, 0.5),  # a constant
    ],
)
def test_wrong_draws_are_found_in_all_that_is_made_of_them(
    draw: Callable[[torch.Tensor], torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    gamma = torch._standard_gamma  # noqa: SLF001

    def wrong(concentration: torch.Tensor, *given: Any) -> torch.Tensor:
        return draw(gamma(concentration, *given))

    found = different(
        distributions.draws_of_distributions, lambda: monkeypatch.setattr(torch, "_standard_gamma", wrong)
    )
    assert found <= OF_GAMMA
    assert "gamma" in found


def test_draws_that_no_seed_decides_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "manual_seed", lambda _: None)
    results = distributions.draws_of_distributions("cpu")
    repeats = {name for name, facts in results.items() if isinstance(facts, torch.Tensor) and facts[2]}
    assert repeats == set()
