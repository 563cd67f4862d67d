"""A program on CPU with a change of torch, in place of a program on a wrong device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from conformance.scenarios.model import Program


def different(program: Program, change: Callable[[], Any], within: float = 0.0) -> set[str]:
    """Return the names of the results that a change of torch changes. The two runs have different seeds.

    ``within``: the difference that equal results may have, since CPU's rounding depends on the addresses of arguments.
    """
    torch.manual_seed(20)
    right = program("cpu")
    change()
    torch.manual_seed(21)
    found = program("cpu")
    return {name for name, one in right.items() if not _are_equal(one, found[name], within)}


def untrue(program: Program) -> list[str]:
    """Return the names of the results that are not all true on CPU, for a program that returns facts."""
    return [name for name, facts in program("cpu").items() if not (isinstance(facts, torch.Tensor) and facts.all())]


def _are_equal(one: Any, other: Any, within: float) -> bool:
    assert isinstance(one, torch.Tensor)
    assert isinstance(other, torch.Tensor)
    return one.shape == other.shape and bool(torch.allclose(one, other, rtol=within, atol=within, equal_nan=True))
