"""Whether CPU computes a function accurately enough."""

from __future__ import annotations

import pytest
import torch

from conformance.corpus.vary.exactness import is_far

NUMBERS = torch.linspace(1, 2, 800, dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("wrong", "far"), [(0, False), (90, False), (110, True)])
def test_many_elements_off_make_a_function_inexact(dtype: torch.dtype, wrong: int, far: bool) -> None:
    ours = NUMBERS.clone()
    ours[:wrong] *= 1.05
    assert is_far(ours.to(dtype), NUMBERS) == far


def test_numbers_that_the_dtype_does_not_hold_and_nan_are_not_off() -> None:
    true = torch.full((100,), 1e300, dtype=torch.float64)
    true[:50] = torch.nan
    assert not is_far(true.float(), true)
