"""Calls with tensors in which an earlier call read other values, so that a backend's caches of them are out of date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.contexts.model import Context, How, Op
from conformance.contexts.trees import tensors_of, with_tensors
from conformance.inventory import Overload, call_of
from conformance.torch_versions import schema_of
from conformance.vocabulary import Check


def other_values(values: torch.Tensor) -> torch.Tensor:
    """Return floating values in the reverse order, and a single one halved: the op takes them, too. Others stay."""
    if not (values.is_floating_point() or values.is_complex()) or values.numel() == 0:
        return values
    return values * 0.5 if values.numel() == 1 else values.flatten().flip(0).view(values.shape)


class Reused(Context):
    """Before the call, the op is called with the same tensors, which then have other values.

    A backend that caches a packed weight, or the number in a tensor, by the tensor or its address, uses an outdated
    value. In the earlier call, the op writes to copies.
    """

    name = "reused"
    op_alone = True
    helpers = (tensors_of, with_tensors, other_values)
    unchecked = frozenset({Check.VERSION})  # the tensors have been written

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op twice. ``how.facts`` names the arguments that it writes: indices and keywords, with commas."""
        import contextlib

        if device == torch.device("cpu"):
            return op(*args, **kwargs)
        written = how.facts.split(",")

        def apart(name: object, value: Any) -> Any:
            return with_tensors(value, torch.clone) if str(name) in written else value

        before = [apart(i, value) for i, value in enumerate(args)]
        named = {name: apart(name, value) for name, value in kwargs.items()}
        given = {id(t) for t in tensors_of([*args, *kwargs.values()])}
        read = [t for t in tensors_of([*before, *named.values()]) if id(t) in given]
        kept = [t.cpu().clone() for t in read]
        for t, values in zip(read, kept):
            t.copy_(other_values(values))
        with contextlib.suppress(Exception):
            op(*before, **named)
        for t, values in zip(read, kept):
            t.copy_(values)
        return op(*args, **kwargs)

    def facts_of(self, overload: str) -> str:
        formals = enumerate(schema_of(call_of(overload)).arguments)
        written = [(i, a.name) for i, a in formals if a.alias_info is not None and a.alias_info.is_write]
        return ",".join(f"{i},{name}" for i, name in written)  # samples give some of them by name, and some by place

    def applies(self, overload: Overload) -> bool:
        return "nondeterministic_seeded" not in overload.tags
