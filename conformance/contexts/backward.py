"""Gradients through the dispatcher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance import ops, torch_versions
from conformance.contexts.model import Context, How, Op
from conformance.inventory import Overload
from conformance.ops.family import Accumulation, Equivalence, OpFacts, Tolerance
from conformance.vocabulary import Route

# A gradient is a sum of products of gradients, arguments and results, which may cancel.
_TOLERANCE = Tolerance(64.0, 8.0, Accumulation.CANCELS)


def of_derivatives(facts: OpFacts) -> OpFacts:
    """Return the facts of gradients and tangents: sums that may cancel, defined in all elements."""
    tolerance = facts.tolerance if facts.tolerance.ulps >= _TOLERANCE.ulps else _TOLERANCE
    return OpFacts(facts.family, tolerance=tolerance, host=facts.host, may_alias=True)


class Backward(Context):
    """The results are the gradients of the floating arguments."""

    name = "backward"

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the gradients. Raises NotImplementedError if no result needs one.

        Variants: a gradient that is "strided" or "expanded", gradients that "accumulate" in an existing ``.grad``, and
        those by the "first" or the "last" of several results alone.
        """

        def leaf(value: Any, leaves: list[torch.Tensor]) -> Any:  # no closure over tensors: it refers to itself
            if isinstance(value, (list, tuple)):
                return [leaf(v, leaves) for v in value]
            if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
                return value
            leaves.append(value.detach().requires_grad_())
            return leaves[-1]

        def flat(value: Any) -> list[Any]:
            return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else [value]

        def gradient(result: torch.Tensor) -> torch.Tensor:
            if how.variant == "expanded":
                return torch.full((), 0.75).to(result.dtype).to(result.device).expand(result.shape)
            values = torch.linspace(-0.75, 1.5, result.numel()).reshape(result.shape).to(result.dtype)
            if how.variant == "strided" and result.dim():
                return values.repeat_interleave(2, -1).to(result.device)[..., ::2]
            return values.to(result.device)

        least, by = {"first": (2, slice(1)), "last": (2, slice(-1, None))}.get(how.variant, (1, slice(None)))
        with torch.enable_grad(), torch.autograd.set_multithreading_enabled(False):
            leaves: list[torch.Tensor] = []
            positional, named = [leaf(a, leaves) for a in args], {name: leaf(a, leaves) for name, a in kwargs.items()}
            found = flat(op(*positional, **named))
            results = [t for t in found if isinstance(t, torch.Tensor) and t.grad_fn is not None]
            if len(results) < least or any(t is one for t in found for one in leaves):
                raise NotImplementedError("no result needs a gradient, or no other one, or one is an argument itself")
            results = results[by]
            if how.variant != "accumulate":
                return torch.autograd.grad(results, leaves, [gradient(t) for t in results], allow_unused=True)
            kept = [torch.full_like(t, 0.5) for t in leaves]
            for t, before in zip(leaves, kept):
                t.grad = before
            torch.autograd.backward(results, [gradient(t) for t in results])
            if any(t.grad is not before for t, before in zip(leaves, kept)):
                raise AssertionError("a gradient was not accumulated in the .grad that was there")
            return kept

    def applies(self, overload: Overload) -> bool:
        facts = ops.facts(overload.name)
        unique = all(e is Equivalence.EQUAL for _, e in facts.equivalence)
        judged = facts.random is None and not facts.unstable and unique
        return judged and "!" not in overload.schema and torch_versions.has_derivative(overload.name)

    def route(self, route: Route) -> Route:  # gradients are computed by other overloads
        return Route.COMPOSITE

    def facts(self, facts: OpFacts, overload: str) -> OpFacts:
        return of_derivatives(facts)

    def refuses(self, error: BaseException | None) -> bool:
        """Whether torch raised because it has no formula for a gradient."""
        texts = ("derivative for", "not differentiable", "is not implemented", "does not require grad")
        return isinstance(error, RuntimeError) and any(text in str(error) for text in texts)
