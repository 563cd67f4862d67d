"""Draws of numbers that CPU never draws. A number that is rare on both sides is no finding."""

from __future__ import annotations

import pytest
import torch

from conformance.judging import support
from conformance.judging.draws import Draws
from conformance.vocabulary import Check, Fact


def drawn(weights: list[list[float]], calls: int, seed: int, count: int = 2, *, replacement: bool = False) -> Draws:
    generator = torch.Generator().manual_seed(seed)
    table = torch.tensor(weights)
    return Draws(torch.multinomial(table, count, replacement, generator=generator) for _ in range(calls))


ZEROS = [[0.0, 1, 0, 1, 0, 1, 1, 0]]
LIFTED = [[0.3, 1, 0.3, 1, 0.3, 1, 1, 0.3]]


def test_numbers_that_cpu_never_draws_are_found() -> None:
    found = support.compare(drawn(ZEROS, 96, 1), drawn(LIFTED, 96, 2), "result")
    assert found is not None
    assert (found.check, found.subject, found.facts["kind"]) == (Check.DISTRIBUTION, "result", Fact.FOREIGN_DRAWS.value)
    assert (found.facts["cpu_calls"], found.facts["cpu_of"], found.facts["of"]) == (0, 48, 96)
    assert found.facts["calls"] > 40


def test_a_row_has_numbers_of_its_own() -> None:
    rows = [[1.0, 1, 0, 0], [0.0, 0, 1, 1]]
    assert support.compare(drawn(rows, 96, 1), drawn(rows[::-1], 96, 2), "") is not None
    assert support.compare(drawn(rows, 96, 1), drawn(rows, 96, 2), "") is None


def test_few_calls_leave_it_open_and_more_tell() -> None:
    few = drawn(ZEROS, 24, 1), drawn(LIFTED, 24, 2)
    assert support.compare(*few, "") is None
    assert support.may_differ(*few)
    many = drawn(ZEROS, 96, 1), drawn(LIFTED, 96, 2)
    assert not support.may_differ(*many)  # the difference is certain


@pytest.mark.parametrize("weights", [ZEROS, [[1e-3, 1, 1, 1]], [[1.0] * 200], [[5.0, 1, 0.1, 0.01, 0]]])
def test_honest_draws_pass_under_many_seeds(weights: list[list[float]]) -> None:
    pairs = [(drawn(weights, 40, 2 * seed), drawn(weights, 40, 2 * seed + 1)) for seed in range(100)]
    assert not any(support.compare(*pair, "") for pair in pairs)
    assert sum(support.may_differ(*pair) for pair in pairs) < 20  # about one in ten needs more calls


def test_fractions_are_no_numbers_to_know() -> None:
    theirs, ours = (
        Draws(torch.rand(4, generator=torch.Generator().manual_seed(s)) for s in range(a, a + 50)) for a in (0, 50)
    )
    assert support.compare(theirs, ours, "") is None


def test_whole_numbers_that_rounding_makes_are_not_compared() -> None:
    theirs, ours = (Draws(torch.full((4,), 2.0**24 + 2 * (k % 2) + a) for k in range(50)) for a in (0, 8))
    assert support.compare(theirs, ours, "") is None


def test_draws_that_are_the_same_in_each_call_are_not_compared() -> None:
    assert support.compare(Draws([torch.tensor([1])] * 50), Draws([torch.tensor([2])] * 50), "") is None


def test_a_result_of_many_numbers_is_left_out() -> None:
    theirs, ours = (Draws(torch.full((support.MOST + 1,), float(k % 2 + a)) for k in range(50)) for a in (0, 5))
    assert support.compare(theirs, ours, "") is None


def test_fractions_where_cpu_draws_whole_numbers_are_found() -> None:
    rates = torch.full((8,), 90.0)
    generator = torch.Generator().manual_seed(20)
    whole, again = (Draws(torch.poisson(rates, generator=generator) for _ in range(40)) for _ in range(2))
    normal = Draws(torch.normal(rates, rates.sqrt(), generator=generator) for _ in range(40))
    assert support.compare(whole, again, "") is None
    assert support.compare(whole, normal, "") is not None
    assert support.compare(normal, whole, "") is None  # CPU draws no whole numbers


def test_what_is_nearly_whole_is_whole() -> None:
    generator = torch.Generator().manual_seed(20)
    kept = [torch.rand(8, generator=generator) > 0.5 for _ in range(80)]
    exact, scaled = Draws(x * 3.0 for x in kept[:40]), Draws(x * (1 / 0.1 * 0.3000001) for x in kept[40:])
    assert support.compare(exact, scaled, "") is None
