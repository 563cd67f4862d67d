"""Second derivatives through the dispatcher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.contexts.backward import Backward
from conformance.contexts.model import How, Op
from conformance.contexts.trees import tensors_of, with_tensors


class Gradgrad(Backward):
    """The results are the gradients of the first gradients: by the arguments, and by the gradients of the results."""

    name = "gradgrad"
    helpers = (tensors_of, with_tensors)

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the second gradients. Raises NotImplementedError if no first gradient needs one."""
        leaves: list[torch.Tensor] = []

        def leaf(t: torch.Tensor) -> torch.Tensor:
            if not (t.is_floating_point() or t.is_complex()):
                return t
            leaves.append(t.detach().requires_grad_())
            return leaves[-1]

        def gradient(t: torch.Tensor, first: float, last: float) -> torch.Tensor:
            return torch.linspace(first, last, t.numel()).reshape(t.shape).to(t.dtype).to(t.device)

        with torch.enable_grad(), torch.autograd.set_multithreading_enabled(False):
            positional, named = with_tensors(args, leaf), {name: with_tensors(a, leaf) for name, a in kwargs.items()}
            found = tensors_of(op(*positional, **named))
            results = [t for t in found if t.grad_fn is not None]
            if not results or any(t is one for t in found for one in leaves):
                raise NotImplementedError("no result needs a gradient, or one is an argument itself")
            given = [gradient(t, -0.75, 1.5).requires_grad_() for t in results]
            firsts = torch.autograd.grad(results, leaves, given, allow_unused=True, create_graph=True)
            again = [t for t in firsts if t is not None and t.grad_fn is not None]
            if not again:
                raise NotImplementedError("no first gradient needs a gradient")
            seeds = [gradient(t, 1.25, -0.5) for t in again]
            return torch.autograd.grad(again, [*leaves, *given], seeds, allow_unused=True)
