"""Sequences and the identity equal CPU in every dtype, and size their outputs as CPU does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from against_cpu import ALL, RARE, check, values

dtypes = pytest.mark.parametrize("dtype", ALL + RARE, ids=str)


def make(call: Callable[..., Any], *args: Any, rtol: float = 0.0, atol: float = 0.0, **kwargs: Any) -> None:
    """Check a factory on the device of an anchor tensor."""
    check(lambda anchor: call(*args, device=anchor.device, **kwargs), values(1), rtol=rtol, atol=atol)


@dtypes
def test_arange_linspace_logspace_and_eye_equal_cpu(dtype: torch.dtype) -> None:
    close = 1e-2 if dtype in (torch.float16, torch.bfloat16) else 1e-6
    make(torch.arange, 7, dtype=dtype)
    make(torch.arange, 1, 8, 2, dtype=dtype)
    if dtype.is_floating_point:  # a step that int64 rounds to 0 kills the CPU of torch 2.8
        make(torch.arange, 0.5, 3, 0.25, dtype=dtype, rtol=close)
    make(torch.arange, 5, 0, -2, dtype=dtype)
    for steps in (0, 1, 2, 5, 50):
        make(torch.linspace, 0, 10, steps, dtype=dtype, rtol=close, atol=close)
        make(torch.linspace, 9, 1, steps, dtype=dtype, rtol=close, atol=close)
        make(torch.linspace, 4.3, 1.2, steps, dtype=dtype, rtol=close, atol=close)
        make(torch.logspace, 0, 2, steps, base=2, dtype=dtype, rtol=close, atol=close)
    make(torch.eye, 3, dtype=dtype)
    make(torch.eye, 2, 4, dtype=dtype)
    make(torch.full, (2, 3), 1, dtype=dtype)
    make(torch.ones, (2,), dtype=dtype)


def test_wrong_arguments_of_factories_raise_as_on_cpu() -> None:
    for args in ((0, 5, 0), (0, 5, -1), (5, 0, 1), (0, float("inf"), 1), (0, float("nan")), (-(2**63), 2**63 - 1, 1)):
        make(torch.arange, *args)
    make(torch.arange, 0, 1000, dtype=torch.uint8)
    make(torch.linspace, 0, 1, -1)
    make(torch.linspace, 0, 1j, 4, rtol=1e-6)
    make(torch.linspace, 0, 1j, 4, dtype=torch.complex64, rtol=1e-6)
    make(torch.eye, -1)
    make(torch.eye, 1, -1)


def test_factories_size_and_fill_an_out_as_cpu_does() -> None:
    for out in (
        torch.empty(0),
        torch.empty(6),
        torch.empty(12)[::2],
        torch.empty(2, 3),
        torch.empty(2),
        values(3, 2).t(),
    ):
        check(torch.arange, 6, out=out)
        check(torch.range, 0, 5, 1, out=out)
        check(torch.linspace, 0, 5, 6, out=out)
        check(torch.logspace, 0, 5, 6, out=out, rtol=1e-6)
        check(torch.eye, 2, 3, out=out)
    make(torch.arange, 2**53, 2**53 + 5)


def test_a_range_of_integers_counts_from_an_integer() -> None:
    for args in ((0.1, 300, 2), (0.9, 9, 1), (300.7, 0.2, -1.9)):
        for dtype in (torch.int16, torch.int64, torch.float32):
            check(torch.range, *args, out=torch.empty(0, dtype=dtype))
