"""Elements that one call writes several times. It is undefined which of the values stays. Pure, on CPU tensors.

torch's documentation leaves this undefined for index_copy_, index_put_ and put_ without ``accumulate``, and for
scatter_ without ``reduce``. CPU writes in order, a device in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from conformance.judging.oracle import CallOutcome
from conformance.judging.views import host_copy

# The names of the argument with the values in ops that write by index.
_SOURCES = ("source", "src", "values")


def explain(
    op: Callable[..., Any], expected: CallOutcome, actual: CallOutcome, wrong: Sequence[torch.Tensor] | None
) -> bool:
    """Return whether each ``wrong`` element is written several times, and holds another one of the values than CPU's.

    ``wrong`` has a mask for each result, then one for each argument.
    """
    arguments = _arguments(op, expected)
    written = _several(arguments) if wrong else None
    source = next((arguments[name] for name in _SOURCES if name in arguments), None)
    if wrong is None or written is None or not isinstance(source, torch.Tensor):
        return False
    pairs = zip(wrong, _tensors(actual), strict=True)
    return all(_holds_another(mask, tensor, written, source) for mask, tensor in pairs if bool(mask.any()))


def _holds_another(wrong: torch.Tensor, tensor: Any, written: torch.Tensor, source: torch.Tensor) -> bool:
    if not isinstance(tensor, torch.Tensor) or not wrong.shape == written.shape == tensor.shape:
        return False
    values = _bytes(source.to(tensor.dtype))
    return not bool((wrong & ~written).any()) and _bytes(host_copy(tensor)[wrong]) <= values


def _bytes(tensor: torch.Tensor) -> set[bytes]:
    """Return the set of the bytes of each element."""
    raw = tensor.resolve_conj().resolve_neg().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes()
    size = tensor.element_size()
    return {raw[i : i + size] for i in range(0, len(raw), size)}


def _tensors(outcome: CallOutcome) -> list[Any]:
    return [*(leaf for _, leaf in outcome.leaves), *(a.tensor for a in outcome.side.arguments)]


def _arguments(op: Callable[..., Any], outcome: CallOutcome) -> dict[str, Any]:
    """Return the arguments of a call by their names in the schema; none without a schema."""
    schema = getattr(op, "_schema", None)
    names = [a.name for a in schema.arguments] if schema else []
    return dict(zip(names, outcome.side.args, strict=False)) | outcome.side.kwargs


def _several(arguments: dict[str, Any]) -> torch.Tensor | None:
    """Return, in the shape of ``self``, whether each element is written several times. None if its value is defined."""
    if arguments.get("accumulate") or arguments.get("reduce") is not None or "self" not in arguments:
        return None
    counts = torch.zeros(arguments["self"].shape, dtype=torch.int64)
    one, index = torch.ones((), dtype=torch.int64), arguments.get("index", torch.empty(0))
    try:
        if "indices" in arguments:
            counts.index_put_(arguments["indices"], one, accumulate=True)
        elif "dim" not in arguments:
            counts.put_(index, one.expand(index.shape), accumulate=True)
        elif "src" in arguments:
            counts.scatter_add_(arguments["dim"], index, one.expand(index.shape))
        else:
            shape = list(counts.shape)
            shape[arguments["dim"]] = index.numel()
            counts.index_add_(arguments["dim"], index, one.expand(shape))
    except (IndexError, RuntimeError):
        return None  # the arguments need a dimension that self lacks
    return counts > 1
