"""What the kernel of a forward keeps for the one of its backward, which each device may choose for itself."""

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
    """Return ``op`` with what the forward on the arguments' own device keeps in place of the arguments of that name.

    None if no argument is named as a private result of the forward. The results are those of ``op``.
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
    """Return the overload whose backward an overload is by its name; None if there is none."""
    operator = overload.partition(".")[0]
    if not operator.endswith(_BACKWARD):
        return None
    return getattr(getattr(torch.ops.aten, operator.removesuffix(_BACKWARD) + _FORWARD, None), "default", None)
