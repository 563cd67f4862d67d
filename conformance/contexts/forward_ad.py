"""Derivatives by forward-mode automatic differentiation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance import ops, torch_versions
from conformance.contexts.backward import of_derivatives
from conformance.contexts.model import Context, How, Op
from conformance.contexts.trees import tensors_of, with_tensors
from conformance.inventory import Overload
from conformance.ops.family import Equivalence, OpFacts
from conformance.vocabulary import Check, Route


class ForwardAd(Context):
    """Each result is returned with its tangent, for tangents of the floating arguments."""

    name = "forward_ad"
    helpers = (tensors_of, with_tensors)
    unchecked = frozenset({Check.VERSION})

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return each result and its tangent. Raises NotImplementedError if no result has one on CPU.

        Variants: "all" floating arguments have tangents, or "one" of them has: the first, or the "last" of several.
        """
        import torch.autograd.forward_ad

        def inexact(t: torch.Tensor) -> bool:
            return bool(t.is_floating_point() or t.is_complex())

        count = sum(map(inexact, tensors_of([*args, *kwargs.values()])))
        if how.variant == "last" and count < 2:
            raise NotImplementedError("the last argument is the first one")
        seen: list[torch.Tensor] = []

        def dual(t: torch.Tensor) -> torch.Tensor:
            if not inexact(t):
                return t
            seen.append(t)
            if len(seen) > 1 and how.variant == "one" or len(seen) < count and how.variant == "last":
                return t
            tangent = torch.linspace(-0.75, 1.5, t.numel()).reshape(t.shape).to(t.dtype).to(t.device)
            return torch.autograd.forward_ad.make_dual(t, tangent)

        with torch.autograd.forward_ad.dual_level():
            positional, named = with_tensors(args, dual), {name: with_tensors(a, dual) for name, a in kwargs.items()}
            found = [torch.autograd.forward_ad.unpack_dual(t) for t in tensors_of(op(*positional, **named))]
            if not any(pair.tangent is not None for pair in found):
                # The device is asked only where CPU's results have one.
                raise (NotImplementedError if device.type == "cpu" else AssertionError)("no result has a tangent")
            return [t for pair in found for t in (pair.primal.detach(), pair.tangent)]

    def applies(self, overload: Overload) -> bool:
        facts = ops.facts(overload.name)
        unique = all(e is Equivalence.EQUAL for _, e in facts.equivalence)
        judged = facts.random is None and not facts.unstable and unique
        return judged and not torch_versions.has_out(overload.schema) and torch_versions.has_derivative(overload.name)

    def route(self, route: Route) -> Route:  # tangents are computed by other overloads
        return Route.COMPOSITE

    def facts(self, facts: OpFacts, overload: str) -> OpFacts:
        return of_derivatives(facts)

    def refuses(self, error: BaseException | None) -> bool:
        """Return whether torch raised because it has no formula for a tangent."""
        texts = ("forward AD", "forward-mode", "jvp", "not differentiable")
        return isinstance(error, RuntimeError) and any(text in str(error) for text in texts)
