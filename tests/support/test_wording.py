"""Small parts of sentences."""

from __future__ import annotations

import pytest

from conformance.support import wording


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 s"), (2.5, "2.5 s"), (9.9996e-4, "1 ms"), (1.234e-5, "12.3 us"), (5e-9, "5 ns"), (3e-12, "0.003 ns")],
)
def test_seconds_have_three_digits_and_a_unit(number: float, said: str) -> None:
    assert wording.seconds(number) == said


@pytest.mark.parametrize(("number", "said"), [(None, "-"), (999.9, "1 kB"), (8.19e9, "8.19 GB"), (12, "12 B")])
def test_amounts_have_three_digits_and_a_prefix(number: float | None, said: str) -> None:
    assert wording.amount(number, "B") == said


def test_a_noun_is_singular_for_one_alone() -> None:
    assert [wording.counted(n, "cell") for n in (0, 1, 2)] == ["0 cells", "1 cell", "2 cells"]


def test_of_many_names_the_first_are_listed() -> None:
    assert wording.some([]) == ""
    assert wording.some(["abs", "neg"], 2) == "abs, neg"
    assert wording.some(["abs", "neg", "mm"], 2) == "abs, neg and 1 more"
