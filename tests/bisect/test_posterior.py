"""The posterior: probabilities add up, and follow the runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.bisect.posterior import CHANCE, Posterior, Rate, posterior

RUNS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=30)


@given(RUNS)
def test_weights_are_probabilities_and_information_is_at_most_the_entropy(
    runs: list[tuple[int, int]],
) -> None:
    found = posterior([f for f, _ in runs], [p for _, p in runs], 0, len(runs) - 1, Rate())
    assert sum(found.weights) == pytest.approx(1)
    assert all(0 <= bits <= found.entropy + 1e-6 for bits in found.information())


@given(RUNS, st.floats(0.5, 0.99))
def test_an_interval_holds_what_was_asked_and_no_shorter_one_does(runs: list[tuple[int, int]], mass: float) -> None:
    found = posterior([f for f, _ in runs], [p for _, p in runs], 0, len(runs) - 1, Rate())
    first, last, held = found.interval(mass)
    assert held >= mass - 1e-9
    length = last - first
    shorter = [sum(found.weights[i : i + length]) for i in range(len(runs))] if length else []
    assert all(weight < mass + 1e-9 for weight in shorter)


def test_before_the_first_run_all_points_have_the_same_probability() -> None:
    found = posterior([0] * 8, [0] * 8, 0, 7, Rate())
    assert found.weights == pytest.approx([1 / 8] * 8)
    assert found.entropy == pytest.approx(3)


def test_the_middle_tells_most_of_a_certain_failure() -> None:
    bits = posterior([0] * 8, [0] * 8, 0, 7, Rate.known(1.0)).information()
    assert max(range(8), key=bits.__getitem__) == 3
    assert bits[3] == pytest.approx(1, abs=0.02)


def test_a_pass_tells_less_of_a_rare_failure() -> None:
    after = [posterior([0] * 8, [0, 0, 0, 1, 0, 0, 0, 0], 0, 7, Rate.known(rate)) for rate in (0.1, 0.9)]
    assert sum(after[0].weights[4:]) < sum(after[1].weights[4:])


def test_a_failure_leaves_later_points_to_chance() -> None:
    found = posterior([0, 0, 0, 0, 1, 0, 0, 0], [0] * 8, 0, 7, Rate.known(1.0))
    assert sum(found.weights[5:]) < 3 * CHANCE


def test_passes_of_a_failing_point_lower_what_its_rate_can_be() -> None:
    rate = Rate()
    assert rate.fails_next(4, 0) > 0.9 > rate.fails_next(4, 1) > rate.fails_next(4, 6)


def test_the_chance_that_a_bad_point_passes_falls_with_every_pass() -> None:
    assert Rate().all_pass(3, 7, 1) > Rate().all_pass(3, 7, 5) > Rate().all_pass(3, 7, 20)


@pytest.mark.parametrize("rate", [0.0, -1.0, 1.5])
def test_a_rate_that_is_no_rate_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="more than 0 and at most 1"):
        Rate.known(rate)


def test_the_best_hypothesis_is_the_heaviest() -> None:
    assert Posterior(4, (0.1, 0.7, 0.2), ()).best == (5, 0.7)
