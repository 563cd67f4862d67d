"""The simplest rule for invented masks of wrong elements, and no rule for irregular masks."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from conformance.explain import pattern_text
from conformance.judging.patterns import pattern


def masked(shape: tuple[int, ...], *wrong: Any) -> torch.Tensor:
    """Return a mask that is true at these indices."""
    mask = torch.zeros(shape, dtype=torch.bool)
    for index in wrong:
        mask[index] = True
    return mask


def where(mask: torch.Tensor, expected: torch.Tensor | None = None) -> str:
    """Return the rule in words, for random wrong elements, which have no pattern in their values."""
    torch.manual_seed(20)
    right = torch.rand(mask.shape) + 1 if expected is None else expected
    return pattern_text.text(pattern(mask, right, torch.rand(mask.shape) + 5))


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        (masked((4,), slice(None)), "all elements"),
        (masked((3000,), slice(1024, None)), "all with index >= 1024 in dim 0"),
        (masked((3, 67), (slice(None), slice(64, None))), "the last 3 of 67 in dim 1"),
        (masked((3, 5), (slice(None), 0)), "index 0 of dim 1"),
        (masked((2, 5, 3), (slice(None), slice(2, 4))), "indices 2-3 of dim 1"),
        (masked((4, 6), (slice(1, 3), slice(4, None))), "the last 2 of 6 in dim 1 of indices 1-2 of dim 0"),
        (masked((10,), slice(0, None, 2)), "every second index from 0 of dim 0"),
        (masked((2, 12), (slice(None), slice(3, None, 4))), "every 4th index from 3 of dim 1"),
        (masked((4, 5), 2, 3, (1, slice(3, None))), "all with flat index >= 8"),
        (masked((4, 5), 0, (1, slice(0, 2))), "all with flat index <= 6"),
        (masked((3, 7), *((i // 7, i % 7) for i in range(1, 21, 2))), "every second index from 1 of the flat index"),
    ],
)
def test_the_pattern_describes_exactly_the_wrong_elements(mask: torch.Tensor, said: str) -> None:
    assert where(mask) == said


@pytest.mark.parametrize(
    "mask",
    [
        masked((4, 5), (0, 0), (1, 3), (3, 2)),
        masked((10,), 0, 2, 4, 7),
        masked((12,), 1, 5),  # two are too few for a rule
        masked((12,), 4, 6, 8),  # the first period has no wrong element
        masked((3, 5), (slice(None), 0), (1, 1)),
    ],
)
def test_irregular_wrong_elements_have_no_pattern(mask: torch.Tensor) -> None:
    assert where(mask) == ""


@pytest.mark.parametrize(
    ("special", "said"),
    [(math.nan, "is NaN"), (math.inf, "is infinite"), (0.0, "is zero"), (-3.0, "is negative")],
)
def test_wrong_elements_may_be_described_by_their_expected_value(special: float, said: str) -> None:
    expected = torch.rand(3, 4) + 1
    expected[1, 2] = expected[2, 0] = special
    assert where(masked((3, 4), (1, 2), (2, 0)), expected).endswith(said)
    assert where(masked((3, 4), (1, 2)), expected) != where(masked((3, 4), (1, 2), (2, 0)), expected)


class TestValues:
    EXPECTED = torch.arange(1.0, 13.0).reshape(3, 4)

    def values(self, actual: torch.Tensor, stale: torch.Tensor | None = None) -> Any:
        return pattern(actual != self.EXPECTED, self.EXPECTED, actual, stale)["values"]

    def with_wrong(self, value: torch.Tensor | float) -> torch.Tensor:
        actual = self.EXPECTED.clone()
        actual[1:] = value
        return actual

    @pytest.mark.parametrize(
        ("value", "rule"),
        [
            (math.nan, {"kind": "nan"}),
            (0.0, {"kind": "zero"}),
            (99.0, {"kind": "constant", "value": "99.0"}),
            (-EXPECTED[1:], {"kind": "negated"}),
            (EXPECTED.reshape(-1)[3:-1].reshape(2, 4), {"kind": "shifted", "by": 1}),
            (EXPECTED[1:] * 1.5, None),
        ],
    )
    def test_a_rule_describes_the_values_of_the_wrong_elements(self, value: torch.Tensor | float, rule: Any) -> None:
        assert self.values(self.with_wrong(value)) == rule

    def test_values_that_the_memory_held_before_are_reported_as_stale(self) -> None:
        before = torch.rand(3, 4)
        assert self.values(self.with_wrong(before[1:]), before) == {"kind": "stale"}
        assert self.values(self.with_wrong(before[1:] + 1), before) is None

    def test_one_exception_leaves_the_wrong_values_without_a_rule(self) -> None:
        actual = self.with_wrong(0.0)
        actual[2, 2] = 5.0
        assert self.values(actual) is None


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.uint8, torch.complex64, torch.bfloat16])
def test_wrong_elements_of_every_dtype_have_a_pattern(dtype: torch.dtype) -> None:
    expected = torch.tensor([1, 0, 1, 1]).to(dtype)
    actual = torch.tensor([1, 0, 0, 0]).to(dtype)
    found = pattern(expected != actual, expected, actual)
    assert (found["wrong"], found["of"], found["first"], found["last"]) == (2, 4, 2, 3)
    assert pattern_text.text(found) == "all with index >= 2 in dim 0; all zero"


def test_a_single_wrong_element_has_no_pattern() -> None:
    assert where(masked((4, 5), (2, 3))) == ""


def test_a_zero_dim_result_has_a_pattern() -> None:
    found = pattern(torch.tensor(True), torch.tensor(2.0), torch.tensor(math.nan))
    assert pattern_text.text(found) == "all elements; NaN"
