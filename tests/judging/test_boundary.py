"""The search for the sizes at which a case fails, with invented faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.judging.boundary import search
from conformance.records import Boundary


@pytest.mark.parametrize("first", [2, 33, 1025, 4097])
def test_the_search_finds_the_first_failing_size_exactly(first: int) -> None:
    assert search(lambda n: n >= first, 4097) == Boundary(first, first - 1, 4097)


@pytest.mark.parametrize(
    ("fails", "expected"),
    [
        (lambda n: n % 32 != 0, Boundary(1, 0, 65537, modulus=32)),
        (lambda n: n % 2 == 1, Boundary(1, 0, 65537, modulus=2)),
        (lambda n: n > 256 and n % 8 != 0, Boundary(257, 256, 65537, modulus=8)),
    ],
)
def test_the_search_finds_the_modulus_of_the_failing_sizes(fails: Callable[[int], bool], expected: Boundary) -> None:
    assert search(fails, 65537) == expected


def test_the_search_finds_that_multiples_of_a_number_fail() -> None:
    assert search(lambda n: n % 16 == 0, 4096) == Boundary(16, 15, 4096, modulus=16, multiples=True)


def test_the_search_finds_that_every_size_fails() -> None:
    assert search(lambda _: True, 1025) == Boundary(1, 0, 1025)


def test_the_search_reports_larger_sizes_that_pass() -> None:
    found = search(lambda n: n in (1024, 4097), 4097)
    assert found
    assert (found.smallest, found.modulus, found.passing) == (1024, 0, (1025, 1026, 1027))


def test_the_search_below_65537_tries_fewer_than_120_sizes() -> None:
    calls: list[int] = []

    def fails(n: int) -> bool:
        calls.append(n)
        return n > 40_000

    search(fails, 65537)
    assert len(calls) == len(set(calls)) < 120


@pytest.mark.parametrize("calls", [3, 20, 60])
def test_the_search_ends_in_time_without_a_rule(calls: int) -> None:
    tried: list[int] = []

    def fails(n: int) -> bool:
        tried.append(n)
        return n > 256 and n % 8 != 0

    found = search(fails, 65537, lambda: len(tried) < calls)
    assert len(tried) == calls
    assert found is None if calls == 3 else found and (found.smallest, found.modulus) == (257, 0)
