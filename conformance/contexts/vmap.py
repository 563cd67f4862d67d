"""Calls under ``torch.vmap``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from conformance import ops, torch_versions
from conformance.contexts.model import Context, How, Op
from conformance.contexts.trees import alike, tensors_of, with_tensors
from conformance.inventory import Overload
from conformance.ops.family import OpFacts
from conformance.vocabulary import Route


class Vmap(Context):
    """The device gets a batch under ``torch.vmap``. CPU gets the members of the batch one after the other."""

    name = "vmap"
    helpers = (tensors_of, with_tensors, alike)

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the results of a batch of two, and what its arguments hold then, with the batch in front.

        The second member has half the floating values of the first. The variant is the dimension of the batch, or
        "nested": a batch of two such batches, the second of which has the members in the opposite order.
        Raises NotImplementedError if torch's own batching rule fails on CPU, or gives something else there.
        """
        import warnings

        tree = [list(args), list(kwargs.values())]
        given = tensors_of(tree)
        if not given:
            raise NotImplementedError("no argument is a tensor")
        members = [[t * 0.5 if i and t.is_floating_point() else t.clone() for t in given] for i in range(2)]

        def called(*tensors: torch.Tensor) -> Any:
            rest = list(tensors)
            positional, named = with_tensors(tree, lambda t: rest.pop(0))
            return [*tensors_of(op(*positional, **dict(zip(kwargs, named)))), *tensors]

        def batched() -> list[torch.Tensor]:
            dim = 0 if how.variant == "nested" else int(how.variant)
            batch = [torch.stack(pair, dim) for pair in zip(*members)]
            mapped = torch.vmap(called, dim)
            if how.variant == "nested":
                batch, mapped = [torch.stack([t, t.flip(0)]) for t in batch], torch.vmap(torch.vmap(called))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of rules that make one call after the other
                results = mapped(*batch)
            return [t.clone(memory_format=torch.contiguous_format) for t in results]

        if device.type != "cpu" or device.index is not None:
            return batched()
        found: list[Any] = [] if how.facts else [batched]
        try:
            found = [rule() for rule in found]
        except Exception as e:
            raise NotImplementedError(f"torch cannot batch the call on CPU: {e}") from e
        expected = [
            torch.stack(pair).contiguous() for pair in zip(*(called(*[t.clone() for t in one]) for one in members))
        ]
        if how.variant == "nested":
            expected = [torch.stack([t, t.flip(0)]) for t in expected]
        if any(not alike(one, expected) for one in found):
            raise NotImplementedError("torch's batching rule gives something else on CPU than one call after the other")
        return expected

    def applies(self, overload: Overload) -> bool:
        facts = ops.facts(overload.name)
        judged = facts.random is None and not facts.unstable and not facts.equivalence and not facts.undefined
        return judged and not torch_versions.has_out(overload.schema)

    def facts_of(self, overload: str) -> str:
        """Return "own" if the backend registered the batching rule of an overload, for CPU too, else ""."""
        return "own" if torch_versions.is_registered_by_backend(overload, "FuncTorchBatched") else ""

    def route(self, route: Route) -> Route:  # the batching rule calls other overloads
        return Route.COMPOSITE

    def facts(self, facts: OpFacts, overload: str) -> OpFacts:
        return replace(facts, may_alias=True)

    def refuses(self, error: BaseException | None) -> bool:
        """Return whether torch raised because the op cannot be batched."""
        return isinstance(error, RuntimeError) and "vmap" in str(error)
