"""Calls as compilers make them: a graph of the simpler ops that torch decomposes an op into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from conformance import ops, torch_versions
from conformance.contexts.backward import of_derivatives
from conformance.contexts.model import Context, How, Op
from conformance.contexts.trees import alike, on_host, tensors_of, with_tensors
from conformance.inventory import Overload, call_of
from conformance.ops.family import OpFacts
from conformance.vocabulary import Route


def decompositions() -> dict[Any, Any]:
    """Return torch's own decompositions by overload. Making them takes 0.3 s, so they are kept."""
    import torch.export

    if not hasattr(decompositions, "made"):
        vars(decompositions)["made"] = dict(torch.export.default_decompositions().items())
    found: dict[Any, Any] = vars(decompositions)["made"]
    return found


class Decomposed(Context):
    """Both sides trace the op and run the graph of its decomposition. On CPU it must give the kernel's results."""

    name = "decomposed"
    helpers = (tensors_of, with_tensors, on_host, alike, decompositions)

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the decomposition of the op.

        Raises NotImplementedError if torch has none that can be traced for CPU, or one that gives something else there.
        """
        from torch.fx.experimental.proxy_tensor import make_fx

        def graph_of(tree: list[Any]) -> Callable[..., Any]:
            def called(*tensors: torch.Tensor) -> Any:
                rest = list(tensors)
                positional, named = with_tensors(tree, lambda t: rest.pop(0))
                return op(*positional, **dict(zip(kwargs, named)))

            traced = make_fx(called, decomposition_table=decompositions(), tracing_mode="fake")
            graph: Callable[..., Any] = traced(*tensors_of(tree))
            return graph

        given = [list(args), list(kwargs.values())]
        if device.type != "cpu" or device.index is not None:
            return graph_of(given)(*tensors_of(given))
        copied, named = on_host(args, kwargs)
        plain = op(*copied, **named)
        try:
            found = graph_of(given)(*tensors_of(given))
        except Exception as e:
            raise NotImplementedError(f"torch cannot decompose the call on CPU: {e}") from e
        if not alike(plain, found):
            raise NotImplementedError("torch's decomposition gives something else on CPU than the kernel")
        return found

    def load(self) -> None:
        from torch.fx.experimental import proxy_tensor

        decompositions()
        proxy_tensor.make_fx(lambda x: x + 1, tracing_mode="fake")(torch.zeros(1))

    def applies(self, overload: Overload) -> bool:
        facts = ops.facts(overload.name)
        judged = facts.random is None and not facts.unstable and not facts.undefined and "!" not in overload.schema
        return judged and torch_versions.decomposition_of(call_of(overload.name)) is not None

    def route(self, route: Route) -> Route:  # other overloads are called
        return Route.COMPOSITE

    def facts(self, facts: OpFacts, overload: str) -> OpFacts:
        return of_derivatives(facts)
