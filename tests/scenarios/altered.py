"""A program on CPU with a change of torch, which stands in for a device that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from conformance.scenarios.model import Program


def different(program: Program, change: Callable[[], Any], within: float = 0.0) -> set[str]:
    """Return the names of the results that a change of torch changes. The two runs draw other numbers.

    ``within``: how far apart equal results may be, since CPU rounds by where its arguments lie.
    """
    torch.manual_seed(20)
    right = program("cpu")
    change()
    torch.manual_seed(21)
    found = program("cpu")
    return {name for name, one in right.items() if not _are_equal(one, found[name], within)}


def untrue(program: Program) -> list[str]:
    """Return the names of the results of a program of facts that do not all hold on CPU."""
    return [name for name, facts in program("cpu").items() if not (isinstance(facts, torch.Tensor) and facts.all())]


def _are_equal(one: Any, other: Any, within: float) -> bool:
    assert isinstance(one, torch.Tensor)
    assert isinstance(other, torch.Tensor)
    return one.shape == other.shape and bool(torch.allclose(one, other, rtol=within, atol=within, equal_nan=True))
