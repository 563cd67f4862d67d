"""Numbers that an op returns to Python: equal in all bits, or rounded like the dtype of the arguments."""

from __future__ import annotations

import pytest
import torch

from conformance.ops.family import EXACT, OpFacts
from conformance.records import Mismatch
from conformance.vocabulary import Check
from tests.two_sides import Op, case_of, judge, third

NAN = float("nan")


def of_number(right: Op, wrong: Op, facts: OpFacts, dtype: str = "float64") -> list[Mismatch]:
    return judge(right, wrong, case_of(dtype=dtype), facts).mismatches


def last_third(x: torch.Tensor) -> float:
    number: float = third(x).flatten()[-2].item()
    return number


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: torch.tensor(last_third(x), dtype=torch.float32).item(),
        lambda x: last_third(x) * (1 + torch.finfo(torch.float64).eps),
        lambda x: float("nan"),
    ],
)
def test_a_number_that_is_read_is_that_of_cpu_in_all_its_bits(wrong: Op) -> None:
    exact = OpFacts("misc", tolerance=EXACT)
    assert of_number(last_third, last_third, exact) == []
    (found,) = of_number(last_third, wrong, exact)
    assert (found.check, found.facts["kind"]) == (Check.VALUE, "plain")


@pytest.mark.parametrize(
    ("one", "other", "right"),
    [
        (0.0, -0.0, False), (-0.0, -0.0, True), (complex(0.0, -0.0), complex(0.0, 0.0), False),
        (complex(NAN, 1), complex(NAN, 1), True), (complex(NAN, 1), complex(NAN, 2), False), (NAN, -NAN, True),
        (7, 7, True), (7, 8, False), (True, False, False),
    ],
)  # fmt: skip
def test_numbers_that_are_read_differ_in_the_sign_of_zero_and_beside_nan(
    one: complex, other: complex, right: bool
) -> None:
    found = of_number(lambda _: one, lambda _: other, OpFacts("misc", tolerance=EXACT))
    assert [m.check for m in found] == ([] if right else [Check.VALUE])


def test_the_sign_of_a_number_that_is_zero_may_be_undefined() -> None:
    assert of_number(lambda _: 0.0, lambda _: -0.0, OpFacts("misc", tolerance=EXACT, either_zero=True)) == []
    assert of_number(lambda _: 0.0, lambda _: -0.0, OpFacts("misc")) == []  # rounded to zero


@pytest.mark.parametrize(
    ("dtype", "off", "right"),
    [
        ("float64", 2**-51, True), ("float64", 2**-40, False), ("float64", 2**-24, False),
        ("float32", 2**-22, True), ("float32", 2**-19, False), ("bfloat16", 2**-22, True), ("bfloat16", 2**-10, False),
    ],
)  # fmt: skip
def test_a_number_that_is_computed_is_rounded_as_its_arguments_are(dtype: str, off: float, right: bool) -> None:
    found = of_number(last_third, lambda x: last_third(x) * (1 + off), OpFacts("misc"), dtype)
    assert [m.check for m in found] == ([] if right else [Check.VALUE])
    of_complex = of_number(
        lambda x: 1j * last_third(x), lambda x: 1j * last_third(x) * (1 + off), OpFacts("misc"), dtype
    )
    assert [m.check for m in of_complex] == ([] if right else [Check.VALUE])
