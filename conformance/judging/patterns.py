"""The pattern of a mismatch's wrong elements: their places and their values, by the simplest rule. Pure.

A rule is stored only if it describes the wrong elements exactly: all of them, and no other element.
"""

from __future__ import annotations

from typing import Any

import torch

# A constant step between wrong elements counts as a rule from this many repetitions on; fewer are a coincidence.
REPEATS = 3
LONGEST_PERIOD = 4096  # elements

Rule = dict[str, Any]


def pattern(
    wrong: torch.Tensor, expected: torch.Tensor, actual: torch.Tensor, stale: torch.Tensor | None = None
) -> dict[str, Any]:
    """Return the pattern of the ``wrong`` elements as JSON.

    All tensors are on CPU and have one shape; ``wrong`` is bool and not all false. ``stale`` is the content of the
    result's memory before the call, None if unknown. Fields: ``wrong`` and ``of`` count elements, ``first`` and
    ``last`` are row-major flat indices, ``where`` and ``values`` are rules or None:

    - ``where``: ``all``; ``expected`` (``is``: nan, infinite, zero, negative); ``box`` (``dims``: of each dimension
      that matters, ``dim``, ``size``, and ``from``, ``to``, both included, or ``every``, ``at``); ``flat`` (``size``
      and the same, of the flat index).
    - ``values``: ``stale``, ``nan``, ``zero``, ``constant`` (``value``), ``negated``, ``shifted`` (``by`` elements of
      the flat index).
    """
    flat = wrong.reshape(-1)
    indices = torch.nonzero(flat).reshape(-1)
    found = expected.reshape(-1)[indices], actual.reshape(-1)[indices]
    return {
        "wrong": len(indices), "of": flat.numel(), "first": int(indices[0]), "last": int(indices[-1]),
        "where": _where(wrong, expected),
        "values": _values(indices, expected, *found, None if stale is None else stale.reshape(-1)[indices]),
    }  # fmt: skip


def _where(wrong: torch.Tensor, expected: torch.Tensor) -> Rule | None:
    if bool(wrong.all()):
        return {"kind": "all"}
    return _by_expected(wrong, expected) or _box(wrong) or _flat(wrong)


def _by_expected(wrong: torch.Tensor, expected: torch.Tensor) -> Rule | None:
    """Return the rule that the wrong elements are those with a special expected value, None if they are not."""
    special = {"nan": expected.isnan(), "infinite": expected.isinf(), "zero": expected == 0}
    if not expected.dtype.is_complex and expected.dtype is not torch.bool:
        special["negative"] = expected < 0
    return next(({"kind": "expected", "is": name} for name, mask in special.items() if torch.equal(mask, wrong)), None)


def _box(wrong: torch.Tensor) -> Rule | None:
    """Return the rule that the wrong elements are all combinations of some indices of each dimension, else None."""
    count = 1
    dims: list[Rule] = []
    for dim, size in enumerate(wrong.shape):
        hit = wrong.movedim(dim, 0).reshape(size, -1).any(1)
        count *= int(hit.sum())
        if not bool(hit.all()):
            run = _run(hit)
            if run is None:
                return None
            dims.append({"dim": dim, "size": size, **run})
    return {"kind": "box", "dims": dims} if count == int(wrong.sum()) else None


def _flat(wrong: torch.Tensor) -> Rule | None:
    run = _run(wrong.reshape(-1))
    return {"kind": "flat", "size": wrong.numel(), **run} if run else None


def _run(hit: torch.Tensor) -> Rule | None:
    """Return the rule for the indices that are hit: a range, or every n-th index. None if they are neither."""
    indices = torch.nonzero(hit).reshape(-1)
    first, last, count = int(indices[0]), int(indices[-1]), len(indices)
    if last - first + 1 == count:
        return {"from": first, "to": last}
    step = int(indices[1]) - first
    regular = count >= REPEATS and first < step <= LONGEST_PERIOD and last + step >= len(hit)
    if regular and bool((indices.diff() == step).all()):
        return {"every": step, "at": first}
    return None


def _values(
    indices: torch.Tensor,
    every_expected: torch.Tensor,
    expected: torch.Tensor,
    actual: torch.Tensor,
    stale: torch.Tensor | None,
) -> Rule | None:
    """Return the rule for the values of the wrong elements, None if there is none."""
    if stale is not None and stale.dtype == actual.dtype and bool(_same(actual, stale).all()):
        return {"kind": "stale"}
    if bool(actual.isnan().all()):
        return {"kind": "nan"}
    if bool((actual == 0).all()):
        return {"kind": "zero"}
    if len(indices) >= REPEATS and bool((actual == actual[0]).all()):
        return {"kind": "constant", "value": str(actual[0].item())}
    if _can_be_negative(expected) and bool((actual == -expected).all()):
        return {"kind": "negated"}
    by = next((by for by in (-1, 1) if _is_shifted(indices, every_expected.reshape(-1), actual, by)), 0)
    if by:
        return {"kind": "shifted", "by": by}
    return None


def _same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a == b) | (a.isnan() & b.isnan())


def _can_be_negative(tensor: torch.Tensor) -> bool:
    return bool(tensor.dtype.is_complex or tensor.dtype.is_floating_point or tensor.dtype.is_signed)


def _is_shifted(indices: torch.Tensor, expected: torch.Tensor, actual: torch.Tensor, by: int) -> bool:
    """Return whether each wrong element holds the expected value of the element ``by`` before it, if there is one."""
    source = indices - by
    inside = (source >= 0) & (source < len(expected))
    if int(inside.sum()) < REPEATS:
        return False
    return bool((actual[inside] == expected[source[inside]]).all())
