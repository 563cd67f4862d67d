"""Calls with arguments that need gradients, in both modes of autograd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance import torch_versions
from conformance.contexts.model import Context, How, Op
from conformance.contexts.trees import tensors_of, with_tensors
from conformance.inventory import Overload

# Overloads that return their argument. It then refers to itself through the graph that it is in.
_SELF_REFERRING = frozenset({"lift_fresh", "_foobar"})


class NoGrad(Context):
    """Floating arguments need gradients. The results are the same under ``torch.no_grad()`` and in grad mode."""

    name = "no_grad"
    helpers = (tensors_of, with_tensors)

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op under no_grad, or in grad mode if the variant is "grad". Return the results without a graph."""
        given = tensors_of([*args, *kwargs.values()])
        leaves = [t for t in given if t.is_floating_point() or t.is_complex()]
        for t in leaves:
            t.requires_grad_()
        try:
            with torch.set_grad_enabled(how.variant == "grad"):
                result = op(*args, **kwargs)
            new = [t for t in tensors_of(result) if not any(t is one for one in given)]
            if how.variant != "grad" and any(t.requires_grad for t in new):
                raise AssertionError("a result needs a gradient, although the call was under torch.no_grad()")
        finally:
            for t in leaves:
                t.requires_grad_(False)
        return with_tensors(result, lambda t: t.detach() if any(t is one for one in new) else t)

    def applies(self, overload: Overload) -> bool:
        resized = torch_versions.has_out(overload.schema)  # an argument that is resized may not need a gradient
        return not resized and overload.base not in _SELF_REFERRING
