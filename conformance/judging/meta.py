"""A case called on the device ``meta``: the results that torch derives from the arguments without their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from conformance.contexts.trees import with_tensors
from conformance.judging.oracle import CallOutcome, call
from conformance.judging.twins import CPU, Sides, is_on_host
from conformance.judging.views import over
from conformance.plan.case import Case


def called(case: Case, twins: Sides, op: Callable[..., Any], *, placed: bool = False) -> CallOutcome | None:
    """Return the outcome of the case on Meta. Arguments that are on the host whatever the device stay there.

    An argument without gaps keeps its strides. ``placed``: every argument keeps its strides. None if torch's kernels
    for Meta raise.
    """
    outcome = _outcome(case, twins, op, placed=placed)
    return None if outcome.error else outcome


def refuses(case: Case, twins: Sides, op: Callable[..., Any]) -> bool:
    """Return whether torch refuses the case on Meta, by another error than that of a missing kernel."""
    error = _outcome(case, twins, op, placed=True).error
    return error is not None and not isinstance(error, NotImplementedError)


def _outcome(case: Case, twins: Sides, op: Callable[..., Any], *, placed: bool) -> CallOutcome:
    given = twins.side(case, CPU)
    tensors = {
        id(a.tensor): a.tensor if is_on_host(a.slot, case) else _without_memory(a.tensor, placed=placed)
        for a in given.arguments
    }

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        return tensors[id(tensor)]

    arguments = [replace(a, tensor=moved(a.tensor)) for a in given.arguments]
    kwargs = {name: with_tensors(arg, moved) for name, arg in given.kwargs.items()}
    return call(op, replace(given, arguments=arguments, args=with_tensors(given.args, moved), kwargs=kwargs))


def _without_memory(tensor: torch.Tensor, *, placed: bool) -> torch.Tensor:
    """Return a tensor on Meta of the same dtype and size. ``placed``: with the same strides, offset and bits, too."""
    if not placed:
        return tensor.detach().to("meta")
    return over(torch.empty(tensor.untyped_storage().nbytes(), dtype=torch.uint8, device="meta"), tensor)
