"""Gradients through the dispatcher."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch

from conformance import ops, torch_versions
from conformance.contexts.model import Context, How, Op
from conformance.contexts.trees import tensors_of, with_tensors
from conformance.inventory import Overload
from conformance.ops.family import Accumulation, Equivalence, OpFacts, Tolerance
from conformance.vocabulary import Route

# A gradient is a sum of products of gradients, arguments and results, which may cancel.
_TOLERANCE = Tolerance(64.0, 8.0, Accumulation.CANCELS, normwise=True)


def of_derivatives(facts: OpFacts) -> OpFacts:
    """Return the facts of gradients and tangents: sums that may cancel, defined in all elements."""
    tolerance = facts.tolerance if facts.tolerance.ulps >= _TOLERANCE.ulps else _TOLERANCE
    picks = facts.picks_kernel
    return OpFacts(facts.family, tolerance=tolerance, host=facts.host, may_alias=True, picks_kernel=picks)


def with_graph(
    op: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], which: slice, equal: bool = False
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Call an op with some of its floating arguments needing gradients. Return those, and the results that need them.

    With ``equal``, the arguments that are like the first one have its values. Raises NotImplementedError if there are
    none, or if a result is an argument itself.
    """
    leaves: list[torch.Tensor] = []
    copies = 0

    def leaf(t: torch.Tensor) -> torch.Tensor:
        nonlocal copies
        if t.is_floating_point() or t.is_complex():
            like_first = equal and bool(leaves) and (t.shape, t.dtype) == (leaves[0].shape, leaves[0].dtype)
            copies += like_first
            leaves.append(t := leaves[0].clone() if like_first else t.detach())
        return t

    positional, named = with_tensors(args, leaf), {name: with_tensors(a, leaf) for name, a in kwargs.items()}
    if equal and not copies:
        raise NotImplementedError("no argument is like the first one")
    chosen = [t.requires_grad_() for t in leaves[which]]
    found = tensors_of(op(*positional, **named))
    if any(t is one for t in found for one in leaves):
        raise NotImplementedError("a result is an argument itself")
    return chosen, [t for t in found if t.grad_fn is not None]


def gradient_of(result: torch.Tensor, variant: str) -> torch.Tensor:
    """Return the gradient of a result, laid out as a variant says."""
    if variant == "expanded":
        return torch.full((), 0.75).to(result.dtype).to(result.device).expand(result.shape)
    values = torch.linspace(-0.75, 1.5, result.numel()).reshape(result.shape).to(result.dtype)
    if variant == "strided" and result.dim():
        return values.repeat_interleave(2, -1).to(result.device)[..., ::2]
    return values.to(result.device)


def gradients_of_each(
    op: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[torch.Tensor | None]:
    """Return the gradient of each of several floating arguments, where no other one needs a gradient."""
    given = tensors_of([*args, *kwargs.values()])
    count = sum(t.is_floating_point() or t.is_complex() for t in given)
    found: list[torch.Tensor | None] = []
    for i in range(count if count > 1 else 0):
        leaves, results = with_graph(op, args, kwargs, slice(i, i + 1))
        values = [gradient_of(t, "") for t in results]
        found += torch.autograd.grad(results, leaves, values, allow_unused=True) if results else [None]
    return found


class Backward(Context):
    """The results are the gradients of the floating arguments."""

    name = "backward"
    helpers: ClassVar[tuple[Callable[..., Any], ...]] = (
        tensors_of,
        with_tensors,
        with_graph,
        gradient_of,
        gradients_of_each,
    )

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the gradients. Raises NotImplementedError if no result needs one on CPU.

        Variants: a gradient that is "strided" or "expanded", those that "accumulate" twice in an existing ``.grad``,
        those by the "first" or the "last" of several results alone, those of arguments that are "equal", where many
        functions have ties or zeros, and "each": of each of several arguments, where it is the only one that needs a
        gradient.
        """
        # The device is asked only where CPU's results need a gradient.
        nothing = NotImplementedError if device.type == "cpu" else AssertionError
        least, by = {"first": (2, slice(1)), "last": (2, slice(-1, None))}.get(how.variant, (1, slice(None)))
        with torch.enable_grad(), torch.autograd.set_multithreading_enabled(False):
            if how.variant == "each":
                each = gradients_of_each(op, args, kwargs)
                if all(t is None for t in each):
                    raise nothing("no result needs a gradient, or there is no other argument")
                return each
            leaves, results = with_graph(op, args, kwargs, slice(None), how.variant == "equal")
            if len(results) < least:
                raise nothing("no result needs a gradient, or no other one")
            results = results[by]
            values = [gradient_of(t, how.variant) for t in results]
            if how.variant != "accumulate":
                return torch.autograd.grad(results, leaves, values, allow_unused=True)
            kept = [torch.full_like(t, 0.5) for t in leaves]
            for t, before in zip(leaves, kept):
                t.grad = before
            torch.autograd.backward(results, values, retain_graph=True)
            torch.autograd.backward(results, values)  # what is saved stays as it is
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
        """Return whether torch raised because it has no formula for a gradient."""
        lacking = "does not support automatic differentiation"
        texts = ("derivative for", "not differentiable", "is not implemented", "does not require grad", lacking)
        return isinstance(error, RuntimeError) and any(text in str(error) for text in texts)
