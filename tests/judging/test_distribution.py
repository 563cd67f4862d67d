"""Draws: honest samplers pass, wrong ones do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformance.judging import distribution
from conformance.judging.draws import Draws
from conformance.vocabulary import Check

Draw = Callable[[torch.Generator], torch.Tensor]


def draws(draw: Draw, first_seed: int, calls: int = 20) -> Draws:
    return Draws(draw(torch.Generator().manual_seed(first_seed + i)) for i in range(calls))


def uniform(g: torch.Generator) -> torch.Tensor:
    return torch.rand(50, generator=g)


def normal(g: torch.Generator) -> torch.Tensor:
    return torch.randn(50, generator=g)


def coin(g: torch.Generator) -> torch.Tensor:
    return torch.rand(50, generator=g) < 0.5


@pytest.mark.parametrize("draw", [uniform, normal, coin])
def test_two_correct_samplers_agree(draw: Draw) -> None:
    assert distribution.compare(draws(draw, 1), draws(draw, 1000), "self") is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda g: uniform(g) * 0.8,
        lambda g: uniform(g) + 0.2,
        lambda g: torch.rand(50, generator=g) < 0.8,
        lambda g: torch.zeros(50),
    ],
)
def test_a_wrong_range_or_probability_is_reported(wrong: Draw) -> None:
    expected = draws(coin if wrong(torch.Generator()).dtype == torch.bool else uniform, 1)
    mismatch = distribution.compare(expected, draws(wrong, 1000), "self")
    assert mismatch is not None
    assert mismatch.check is Check.DISTRIBUTION


def test_a_sampler_that_ignores_its_seed_is_reported() -> None:
    same = draws(lambda _: uniform(torch.Generator().manual_seed(3)), 1)
    mismatch = distribution.compare(draws(uniform, 1), same, "self")
    assert mismatch is not None
    assert mismatch.facts == {"kind": "same_draws", "seeds": 20}


@pytest.mark.parametrize(("others", "reported"), [(1, False), (12, False), (21, True), (39, True)])
def test_draws_that_are_mostly_the_same_on_cpu_may_all_be_the_same(others: int, reported: bool) -> None:
    expected = Draws([torch.tensor(1.0)] * others + [torch.tensor(0.0)] * (40 - others))
    mismatch = distribution.compare(expected, Draws([torch.tensor(0.0)] * 40), "self")
    assert (mismatch is not None) is reported


def test_draws_that_every_call_repeats_count_once() -> None:
    expected, actual = uniform(torch.Generator().manual_seed(1)), uniform(torch.Generator().manual_seed(2))
    assert distribution.compare(Draws([expected] * 20), Draws([actual] * 20), "self") is None
    mismatch = distribution.compare(Draws([expected] * 20), Draws([actual + 2] * 20), "self")
    assert mismatch is not None
    assert mismatch.facts["draws"] == 50


@pytest.mark.parametrize("count", [distribution.MOST + 1, 400_000])
def test_of_many_draws_some_are_compared_and_all_of_the_last(count: int) -> None:
    g = torch.Generator().manual_seed(count)
    expected, actual = torch.rand(count, generator=g), torch.rand(count, generator=g)
    assert distribution.compare(Draws([expected]), Draws([actual]), "self") is None
    actual[-2000:] = 0.5
    mismatch = distribution.compare(Draws([expected]), Draws([actual]), "self")
    assert mismatch is not None
    assert distribution.MOST / 2 < mismatch.facts["draws"] <= distribution.MOST
    actual[-2000:] = torch.rand(2000, generator=g)
    actual[count // 3] = float("nan")
    mismatch = distribution.compare(Draws([expected]), Draws([actual]), "self")
    assert mismatch is not None
    assert mismatch.facts == {"kind": "nan_draws"}


def test_nan_among_the_draws_is_reported() -> None:
    def spoilt_once(g: torch.Generator) -> torch.Tensor:
        draws_of_call = uniform(g)
        if g.initial_seed() == 1003:
            draws_of_call[7] = float("nan")
        return draws_of_call

    spoilt = draws(spoilt_once, 1000)
    assert distribution.compare(draws(uniform, 1), spoilt, "self") is not None


def without_replacement(g: torch.Generator) -> torch.Tensor:
    return torch.ones(2, 20).multinomial(10, generator=g)


def permutation(g: torch.Generator) -> torch.Tensor:
    return torch.randperm(40, generator=g)


def chances(g: torch.Generator) -> torch.Tensor:
    return torch.rand(12, generator=g) < torch.linspace(0, 1, 12)


@pytest.mark.parametrize("draw", [without_replacement, permutation, chances])
def test_two_correct_samplers_agree_in_rows_and_positions(draw: Draw) -> None:
    assert distribution.compare(draws(draw, 1, 40), draws(draw, 1000, 40), "result") is None


@pytest.mark.parametrize(
    ("honest", "wrong", "position"),
    [
        (permutation, lambda g: torch.cat([torch.randperm(39, generator=g), torch.tensor([39])]), 39),
        (chances, lambda g: chances(g).flip(0), 0),
    ],
)
def test_a_position_with_another_distribution_is_reported(honest: Draw, wrong: Draw, position: int) -> None:
    mismatch = distribution.compare(draws(honest, 1, 40), draws(wrong, 1000, 40), "result")
    assert mismatch is not None
    assert (mismatch.facts["kind"], mismatch.facts["position"]) == ("draws_at", position)


def dropped(g: torch.Generator, scale: float) -> torch.Tensor:
    return (torch.linspace(-2, 2, 40) * (torch.rand(40, generator=g) < 0.9) * scale).bfloat16()


def test_draws_of_an_argument_may_be_rounded_otherwise_and_not_scaled_otherwise() -> None:
    rounded = float(torch.tensor(1 / 0.9).bfloat16())
    expected = draws(lambda g: dropped(g, rounded), 1, 40)
    assert distribution.compare(expected, draws(lambda g: dropped(g, 1 / 0.9), 1000, 40), "result") is None
    mismatch = distribution.compare(expected, draws(lambda g: dropped(g, 1 / 0.8), 1000, 40), "result")
    assert mismatch is not None
    assert mismatch.facts["kind"] == "draws_at"


def test_infinite_draws_are_those_of_no_other_number() -> None:
    def overflowing(g: torch.Generator) -> torch.Tensor:
        return (1e30 * torch.randn(50, generator=g)).exp()

    assert distribution.compare(draws(overflowing, 1), draws(overflowing, 1000), "self") is None
    assert distribution.compare(draws(overflowing, 1), draws(lambda g: overflowing(g).clamp(max=0), 1000), "self")


def test_the_statistic_is_the_largest_gap_between_the_two_distributions() -> None:
    a, b = torch.tensor([0.0, 0.0, 1.0, 1.0]), torch.tensor([0.0, 1.0, 1.0, 1.0])
    assert float(distribution.distances(a, b, torch.int64)) == pytest.approx(0.25)
