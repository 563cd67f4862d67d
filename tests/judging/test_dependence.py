"""Draws that depend on each other: honest samplers pass, wrong ones do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformance.judging import dependence, distribution
from conformance.judging.draws import Draws
from conformance.vocabulary import Check

Draw = Callable[[torch.Generator], torch.Tensor]
WEIGHTS = torch.tensor([[0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.0, 0.0]])


def draws(draw: Draw, first_seed: int, calls: int = 24) -> Draws:
    return Draws(draw(torch.Generator().manual_seed(first_seed + i)) for i in range(calls))


def uniform(g: torch.Generator) -> torch.Tensor:
    return torch.rand(65, generator=g)


def half(g: torch.Generator) -> torch.Tensor:
    return torch.rand(65, generator=g).bfloat16()


def coin(g: torch.Generator) -> torch.Tensor:
    return torch.rand(300, generator=g) < 0.5


def rare(g: torch.Generator) -> torch.Tensor:
    return torch.rand(300, generator=g) < 0.02


def dropout(g: torch.Generator) -> torch.Tensor:
    return torch.arange(300) * coin(g)


def half_constant(g: torch.Generator) -> torch.Tensor:
    return torch.cat([torch.ones(200), torch.rand(200, generator=g)])


def many(g: torch.Generator) -> torch.Tensor:
    return torch.randn(20_000, generator=g)


def without_replacement(g: torch.Generator) -> torch.Tensor:
    return torch.ones(2, 20).multinomial(10, generator=g)


def coins(g: torch.Generator) -> torch.Tensor:
    return torch.rand(131_074, generator=g) < 0.5


def coins_again(g: torch.Generator) -> torch.Tensor:
    first = torch.rand(65_536, generator=g) < 0.5
    return torch.cat((first, first, first[:2]))


HONEST: list[Draw] = [
    uniform,
    half,
    coin,
    rare,
    dropout,
    half_constant,
    without_replacement,
    lambda g: torch.randint(3, (10, 6), generator=g).t(),
    lambda g: torch.randint(3, (50,), generator=g),
    lambda g: torch.poisson(torch.tensor([0.01, 1.0, 300.0]).repeat(20), generator=g),
    lambda g: torch.randperm(4, generator=g),
    lambda g: torch.randperm(40, generator=g),
    lambda g: WEIGHTS.multinomial(2, generator=g),
    lambda g: torch.bernoulli(torch.tensor([0.0, 1.0, 0.5]).repeat(40), generator=g),
]


@pytest.mark.parametrize("draw", HONEST)
@pytest.mark.parametrize("calls", [10, 24, 40])
def test_two_correct_samplers_agree(draw: Draw, calls: int) -> None:
    for seed in range(5):
        expected, actual = draws(draw, 1000 * seed, calls), draws(draw, 7_000_000 + 1000 * seed, calls)
        assert dependence.compare(expected, actual, "self") is None


@pytest.mark.parametrize("calls", [1, 2])
def test_many_draws_that_begin_again_at_a_power_of_two_are_reported(calls: int) -> None:
    for seed in range(8):
        expected = draws(coins, 10 * seed, calls)
        assert dependence.compare(expected, draws(coins, 5_000 + 10 * seed, calls), "self") is None
        mismatch = dependence.compare(expected, draws(coins_again, 5_000 + 10 * seed, calls), "self")
        assert mismatch is not None
        assert (mismatch.facts["kind"], mismatch.facts["second"] - mismatch.facts["first"]) == (
            "repeated_block",
            65_536,
        )


def test_rows_whose_draws_are_settled_at_some_places_are_no_repeated_blocks() -> None:
    means = torch.zeros(65_537)
    means[80:144] = torch.arange(1e9, 2e9, 1e9 / 64)  # so large that rounding hides the deviation

    def in_rows(g: torch.Generator) -> torch.Tensor:
        return torch.rand(2, 65_537, generator=g) + means

    for seed in range(4):
        expected, actual = draws(in_rows, 10 * seed, 1), draws(in_rows, 5_000 + 10 * seed, 1)
        assert dependence.compare(expected, actual, "result") is None


def test_a_number_that_is_drawn_twice_is_reported() -> None:
    wrong = draws(lambda g: torch.ones(2, 20).multinomial(10, True, generator=g), 1000, 20)
    mismatch = dependence.compare(draws(without_replacement, 1, 20), wrong, "result")
    assert mismatch is not None
    assert (mismatch.facts["kind"], mismatch.facts["of"]) == ("repeated_draws", 40)


def test_that_few_numbers_do_not_repeat_may_be_chance() -> None:
    few = Draws([torch.tensor([0, 1]), torch.tensor([1, 0])])
    assert dependence.compare(few, Draws([torch.tensor([0, 1]), torch.tensor([1, 1])]), "result") is None


def stuck(g: torch.Generator) -> torch.Tensor:
    found = uniform(g)
    found[-1] = 0.5
    return found


def test_a_position_that_always_holds_the_same_is_reported_where_cpu_never_repeats_a_value() -> None:
    found = dependence.compare(draws(uniform, 1), draws(stuck, 1000), "self")
    assert found is not None
    assert found.check is Check.DISTRIBUTION
    assert found.facts == {
        "kind": "stuck_draws",
        "position": 64,
        "value": 0.5,
        "draws": 24,
        "others": 24,
        "positions": 1,
    }
    assert dependence.compare(draws(stuck, 1), draws(stuck, 1000), "self") is None


def test_a_stuck_position_needs_more_calls_than_chance_could_explain() -> None:
    assert dependence.compare(draws(uniform, 1, calls=10), draws(stuck, 1000, calls=10), "self") is None
    assert dependence.compare(draws(coin, 1), draws(lambda g: coin(g) | (torch.arange(300) == 7), 9), "self") is None


def one_is_never_tails(g: torch.Generator) -> torch.Tensor:
    return coin(g) | (torch.arange(300) == 7)


@pytest.mark.parametrize(("calls", "found"), [(24, False), (96, True)])
def test_a_stuck_position_of_few_values_is_reported_after_enough_calls(calls: int, found: bool) -> None:
    expected, actual = draws(coin, 1, calls=calls), draws(one_is_never_tails, 1000, calls=calls)
    assert (dependence.compare(expected, actual, "self") is not None) is found
    assert dependence.may_be_stuck(expected, actual) is not found


def test_no_position_of_honest_coins_is_called_stuck() -> None:
    for seed in range(0, 40_000, 400):
        for calls in (8, 24, 96):
            expected, actual = draws(coin, seed, calls=calls), draws(coin, seed + 200, calls=calls)
            assert dependence.compare(expected, actual, "self") is None


def test_roundings_of_one_number_are_not_other_draws() -> None:
    expected = [torch.full((1000,), 0.81640625, dtype=torch.bfloat16) for _ in range(24)]
    actual = [torch.full((1000,), 0.8125, dtype=torch.bfloat16) for _ in range(24)]
    for made in (expected, actual):
        made[0][5] = 0  # so that the calls are not all equal
    assert dependence.compare(Draws(expected), Draws(actual), "self") is None


def test_hundreds_of_calls_can_be_compared() -> None:
    expected, actual = draws(rare, 1, calls=800), draws(rare, 1000, calls=800)
    assert dependence.compare(expected, actual, "self") is None


def last_is_fifth(g: torch.Generator) -> torch.Tensor:
    return uniform(g)[[*range(64), 5]]


def test_two_positions_that_always_hold_equal_draws_are_reported() -> None:
    found = dependence.compare(draws(uniform, 1), draws(last_is_fifth, 1000), "self")
    assert found is not None
    facts = {"first": 5, "second": 64, "length": 1, "calls": 24, "unequal": 24}
    assert found.facts == {"kind": "tied_draws", **facts}


def test_rows_that_share_their_draws_are_reported() -> None:
    expected = draws(lambda g: torch.ones(3, 2).multinomial(6, True, generator=g), 1)
    shared = draws(lambda g: torch.ones(1, 2).multinomial(6, True, generator=g).expand(3, 6), 1000)
    found = dependence.compare(expected, shared, "result")
    assert found is not None
    assert (found.facts["kind"], found.facts["length"]) == ("tied_draws", 6)
    assert found.facts["second"] - found.facts["first"] == 6


def two_coins(g: torch.Generator) -> torch.Tensor:
    return torch.bernoulli(torch.full((2,), 0.9), generator=g)


def test_equal_draws_may_be_chance_if_cpu_has_them_too_or_calls_are_few() -> None:
    assert dependence.compare(draws(last_is_fifth, 1), draws(last_is_fifth, 1000), "self") is None
    assert dependence.compare(draws(uniform, 1, 10), draws(last_is_fifth, 9, 10), "self") is None
    for seed in range(200):
        assert dependence.compare(draws(two_coins, seed), draws(two_coins, 5000 + seed), "self") is None


def blocks_of_64(g: torch.Generator) -> torch.Tensor:
    return torch.rand(64, generator=g).repeat(40)


def test_a_block_that_is_drawn_again_in_a_call_is_reported() -> None:
    expected = draws(lambda g: torch.rand(2560, generator=g), 1, calls=2)
    found = dependence.compare(expected, draws(blocks_of_64, 1000, calls=2), "self")
    assert found is not None
    assert found.facts == {"kind": "repeated_block", "first": 0, "second": 64, "calls_apart": 0, "length": 8}


def test_a_block_is_found_in_a_single_call_and_not_in_calls_that_repeat_the_first() -> None:
    expected, wrong = (draws(draw, 1, calls=1) for draw in (many, lambda g: many(g)[:64].repeat(40)))
    assert dependence.compare(expected, wrong, "self") is not None
    expected, actual = (Draws(draws(many, seed, calls=1).results * 24) for seed in (1, 7))
    assert dependence.compare(expected, actual, "self") is None


def test_coins_that_are_drawn_again_are_reported() -> None:
    repeated = draws(lambda g: (torch.rand(1000, generator=g) < 0.5).repeat(3), 1000, calls=2)
    expected = draws(lambda g: torch.rand(3000, generator=g) < 0.5, 1, calls=2)
    found = dependence.compare(expected, repeated, "self")
    assert found is not None
    assert (found.facts["first"], found.facts["second"]) == (0, 1000)


def test_a_seed_whose_draws_are_those_of_the_seed_before_moved_on_is_reported() -> None:
    stream = torch.rand(500, generator=torch.Generator().manual_seed(5))
    shifted = Draws(stream[i : i + 65] for i in range(24))
    found = dependence.compare(draws(uniform, 1), shifted, "self")
    assert found is not None
    assert (found.facts["first"], found.facts["second"], found.facts["calls_apart"]) == (1, 0, 1)


def test_large_draws_are_called_for_once_and_small_ones_often_enough_for_each_position() -> None:
    counts = {n: distribution.calls_for(n, distribution.CALLS) for n in (1, 65, 1025, 4097, 65_537)}
    assert counts == {1: 40, 65: 24, 1025: 24, 4097: 1, 65_537: 1}
