"""Gradients on the device, compared with differences of the device's own results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from conformance import ops, torch_versions
from conformance.contexts.backward import Backward
from conformance.contexts.model import How, Op
from conformance.contexts.trees import tensors_of, with_tensors
from conformance.inventory import Overload
from conformance.ops.family import Equivalence


def direction(t: torch.Tensor) -> torch.Tensor:
    """Return the direction in which an argument is moved, on CPU."""
    return torch.linspace(0.3, 2.9, t.numel(), dtype=torch.float64).cos().reshape(t.shape)


def terms(tensors: list[torch.Tensor], factors: list[torch.Tensor]) -> torch.Tensor:
    """Return the terms of the inner product of tensors and factors."""
    pairs = [(t.detach().cpu().resolve_conj(), f) for t, f in zip(tensors, factors)]
    return torch.cat([(t * f.conj()).real.flatten().double() for t, f in pairs])


def derivative(called: Callable[[float], Any], step: float) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Return the terms of a weighted sum of the results, those of its slope by autograd, and its slope by difference.

    ``called``: calls the op with arguments at a distance along the direction, and returns them and the results. Raises
    NotImplementedError if there is no derivative, or if the same call gives other results.
    """
    leaves, found = called(0.0)
    kept = [i for i, t in enumerate(found) if t.grad_fn is not None]
    if not kept or any(t is one for t in found for one in leaves):
        raise NotImplementedError("no result needs a gradient, or one is an argument itself")
    results = [found[i] for i in kept]
    weights = [torch.linspace(-0.75, 1.5, t.numel()).reshape(t.shape).to(t.dtype) for t in results]
    here, again = (terms([r[i] for i in kept], weights) for r in (found, called(0.0)[1]))
    seeds = [w.to(t.device) for t, w in zip(results, weights)]
    gradients = torch.autograd.grad(results, leaves, seeds, allow_unused=True)
    pairs = [(g, direction(t)) for t, g in zip(leaves, gradients) if g is not None]
    slopes = terms([g for g, _ in pairs], [d for _, d in pairs])
    ahead, behind = (terms([called(s)[1][i] for i in kept], weights) for s in (step, -step))
    if not torch.equal(here, again):
        raise NotImplementedError("the same seed does not give the same results again")
    return here, slopes, float((ahead - behind).sum()) / (2 * step)


class Gradcheck(Backward):
    """The derivative by autograd along one direction equals that of a central difference, in double precision.

    Each side is compared with itself, and every call begins with the same seed. So random ops are judged too,
    although their gradients cannot be compared with CPU's. CPU decides whether there is a derivative at all.
    """

    name = "gradcheck"
    helpers = (tensors_of, with_tensors, direction, terms, derivative)

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return nothing. Raises AssertionError if the gradients on the device are not those of its results.

        Raises NotImplementedError if no result needs a gradient, if the same seed does not repeat the results, or if
        the gradients on CPU are not those of its results either, for example at the edge of a step.
        """
        import warnings

        on_cpu = device.type == "cpu" and device.index is None
        generators = [g for g in (*args, *kwargs.values()) if isinstance(g, torch.Generator)]

        def called(distance: float) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
            leaves: list[torch.Tensor] = []

            def leaf(t: torch.Tensor) -> torch.Tensor:
                if t.dtype == torch.float64:
                    t = (t.detach().cpu() + distance * direction(t)).to(t.device).requires_grad_()
                    leaves.append(t)
                return t

            positional, named = with_tensors(args, leaf), {name: with_tensors(a, leaf) for name, a in kwargs.items()}
            torch.manual_seed(20)
            for generator in generators:
                generator.manual_seed(20)
            return leaves, tensors_of(op(*positional, **named))

        with torch.enable_grad(), torch.autograd.set_multithreading_enabled(False), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of devices without a generator
            here, slopes, by_difference = derivative(called, 1e-6)
        by_autograd = float(slopes.sum())
        # A difference of two results has their rounding, which the step magnifies.
        scale = float(slopes.abs().sum()) + float(here.abs().sum()) * 1e-3
        far = abs(by_autograd - by_difference) / scale if scale else 0.0
        if on_cpu and not far <= 1e-6:
            raise NotImplementedError("the gradients on CPU are not those of its results")
        if not far <= 1e-3:
            raise AssertionError(f"the gradients give a slope of {by_autograd}, and the results {by_difference}")
        return None

    def applies(self, overload: Overload) -> bool:
        facts = ops.facts(overload.name)
        unique = all(e is Equivalence.EQUAL for _, e in facts.equivalence)
        judged = not facts.unstable and not facts.undefined and unique
        return judged and "!" not in overload.schema and torch_versions.has_derivative(overload.name)
