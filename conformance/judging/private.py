"""Private results of a forward's kernel for the kernel of its backward. Each device may choose its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from conformance import ops
from conformance.ops.family import Equivalence
from conformance.torch_versions import overload_of, schema_of

Op = Callable[..., Any]
_BACKWARD, _FORWARD = "_backward", "_forward"


def with_own(op: Op) -> Op | None:
    """Return a function that calls ``op`` with private results of the forward on the arguments' own device.

    They replace the arguments of the same names. None if no argument has the name of a private result of the forward.
    The function returns the results of ``op``.
    """
    schema: Any = getattr(op, "_schema", None)
    forward = forward_of(overload_of(schema)) if schema is not None else None
    if forward is None:
        return None
    of_forward = schema_of(forward)
    facts = ops.facts(overload_of(of_forward))
    takes, gives = [a.name for a in schema.arguments], [r.name for r in of_forward.returns]
    kept = {i: name for i, name in enumerate(gives) if facts.equivalence_of(i) is Equivalence.PRIVATE and name in takes}
    needs = [takes.index(a.name) for a in of_forward.arguments if a.name in takes]

    def called(*args: Any, **kwargs: Any) -> Any:
        made = forward(*(args[i] for i in needs))
        own = list(args)
        for i, name in kept.items():
            own[takes.index(name)] = made[i]
        return op(*own, **kwargs)

    return called if kept else None


def forward_of(overload: str) -> Any:
    """Return the forward overload of an overload that is a backward by its name; None if there is none."""
    operator = overload.partition(".")[0]
    if not operator.endswith(_BACKWARD):
        return None
    return getattr(getattr(torch.ops.aten, operator.removesuffix(_BACKWARD) + _FORWARD, None), "default", None)
