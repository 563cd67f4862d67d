"""Gradients after an argument or a result is written: a tensor that was saved for them must not be used unnoticed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from conformance.contexts.backward import Backward
from conformance.contexts.model import How, Op
from conformance.contexts.trees import alike, on_host, tensors_of, with_tensors


def gradients_after(
    place: int, op: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[torch.Tensor | None] | None:
    """Return the gradients of the floating arguments, after one of the tensors has been written.

    These are the arguments and then the results: the one at ``place`` is written, none at -1. None if none is there.
    """
    leaves: list[torch.Tensor] = []

    def leaf(t: torch.Tensor) -> torch.Tensor:
        if not (t.is_floating_point() or t.is_complex()):
            return t
        leaves.append(t.detach().clone().requires_grad_())
        return leaves[-1]

    positional, named = with_tensors(args, leaf), {name: with_tensors(a, leaf) for name, a in kwargs.items()}
    found = tensors_of(op(*positional, **named))
    results = [t for t in found if t.grad_fn is not None]
    if not results or any(t is one for t in found for one in leaves):
        raise NotImplementedError("no result needs a gradient, or one is an argument itself")
    given = [torch.linspace(-0.75, 1.5, t.numel()).reshape(t.shape).to(t.dtype).to(t.device) for t in results]
    written = [*leaves, *results]
    if place >= len(written):
        return None
    if place >= 0:
        written[place].detach().mul_(2).add_(1)
    return list(torch.autograd.grad(results, leaves, given, allow_unused=True))


class Overwritten(Backward):
    """The results are the gradients of the floating arguments when no tensor is written."""

    name = "overwritten"
    helpers = (tensors_of, with_tensors, gradients_after, on_host, alike)

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the gradients. Raises NotImplementedError if no result needs one.

        The op is called again for each floating argument and each result, which is written before the gradients are
        computed. Either this raises a RuntimeError, as torch does if what was written had been saved, or the gradients
        are the same.
        """
        with torch.enable_grad(), torch.autograd.set_multithreading_enabled(False):
            right = gradients_after(-1, op, args, kwargs)
            for place in range(50):  # more than an op has floating arguments and results
                try:
                    again = gradients_after(place, op, args, kwargs)
                except RuntimeError:
                    continue
                if again is None:
                    break
                if not alike(*on_host([right, again], {})[0]):
                    raise AssertionError(f"tensor {place} of arguments and results was written, and gradients changed")
            return right
