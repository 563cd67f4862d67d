"""Calls under ``torch.func.functionalize``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from conformance import ops, torch_versions
from conformance.contexts.model import Context, How, Op
from conformance.contexts.trees import alike, on_host, tensors_of, with_tensors
from conformance.inventory import Overload
from conformance.ops.family import OpFacts
from conformance.vocabulary import Check, Route

# The results of `_efficientzerotensor` have no memory. `detach_` asks whether autograd knows its argument as a view.
_LEFT_OUT = frozenset({"_efficientzerotensor", "detach_"})


class Functionalize(Context):
    """The device's call is functionalized: values are computed apart, then copied to arguments. CPU's call is plain."""

    name = "functionalize"
    helpers = (tensors_of, with_tensors, on_host, alike)
    unchecked = frozenset({Check.VERSION})

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op, on the device without mutations.

        Raises NotImplementedError if that fails on CPU with torch's own rules, or gives something else there.
        """

        def functional(tree: list[Any]) -> Any:
            def called(*tensors: torch.Tensor) -> Any:
                rest = list(tensors)
                positional, named = with_tensors(tree, lambda t: rest.pop(0))
                return op(*positional, **dict(zip(kwargs, named)))

            return torch.func.functionalize(called)(*tensors_of(tree))

        def ended(tree: list[Any], call: Callable[[list[Any]], Any]) -> tuple[list[Any], str]:
            try:
                return [call(tree), tree], ""
            except Exception as e:  # noqa: BLE001 - compared
                return [], f"{type(e).__name__}: {e}"

        if device.type != "cpu" or device.index is not None:
            return functional([list(args), list(kwargs.values())])
        mine, theirs = ([copied[0], list(copied[1].values())] for copied in (on_host(args, kwargs) for _ in range(2)))
        plain, raised = ended(mine, lambda tree: op(*tree[0], **dict(zip(kwargs, tree[1]))))
        found, refused = ended(theirs, functional)
        if not how.facts and refused and not raised:
            raise NotImplementedError(f"torch cannot functionalize the call on CPU: {refused}")
        if not how.facts and (bool(raised) != bool(refused) or not alike(plain, found)):
            raise NotImplementedError("torch gives something else for the functionalized call on CPU")
        return op(*args, **kwargs)

    def applies(self, overload: Overload) -> bool:
        return overload.base not in _LEFT_OUT and ops.facts(overload.name).random is None

    def facts_of(self, overload: str) -> str:
        """Return "own" if the backend registered the rule that functionalizes an overload, for CPU too, else ""."""
        return "own" if torch_versions.is_registered_by_backend(overload, "Functionalize") else ""

    def route(self, route: Route) -> Route:  # other overloads are called
        return Route.COMPOSITE

    def facts(self, facts: OpFacts, overload: str) -> OpFacts:
        return replace(facts, may_alias=True)
