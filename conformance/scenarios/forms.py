"""Several forms of one op in turn: what a backend caches by an op's name must not affect another form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from conformance.scenarios.model import NotOffered, Results, first_line, on, scenario

#: Ops of ``torch`` with an ``out=`` form, and their arguments after the first, which is a matrix.
OPS: Mapping[str, tuple[Any, ...]] = {
    "abs": (), "cummax": (0,), "cumprod": (0,), "cumsum": (0,), "diag": (), "digamma": (), "erf": (), "erfinv": (),
    "exp": (), "expm1": (), "floor": (), "frexp": (), "histc": (5,), "i0": (), "kthvalue": (2,), "lgamma": (),
    "log1p": (), "logcumsumexp": (0,), "logit": (0.1,), "mode": (), "mvlgamma": (2,), "nan_to_num": (), "neg": (),
    "nonzero": (), "pow": (2.0,), "prod": (0,), "renorm": (2.0, 0, 1.0), "round": (), "sgn": (), "sigmoid": (),
    "sinc": (), "sort": (), "sqrt": (), "sum": (0,), "tan": (), "topk": (2,), "tril": (), "triu": (), "trunc": (),
    "var": (0,),
}  # fmt: skip


def _values() -> torch.Tensor:
    return torch.arange(12, dtype=torch.float32).view(3, 4) * 0.37 + 0.6


@scenario()
def results_after_results(device: str) -> Results:
    """Return the results of ops that are called for a new tensor and then with ``out=``, or the other way round.

    An op of which the first form raises is not offered: it is for the cells of the op to say whether that is right.
    """
    results: Results = {}
    for turn, (name, args) in enumerate(OPS.items()):
        outs = [r.clone().zero_() for r in _tuple(getattr(torch, name)(_values(), *args))]
        first, second = ("out", "new") if turn % 2 else ("new", "out")
        try:
            results |= _called(name, first, args, outs, device)
        except RuntimeError as e:
            results[name] = NotOffered(first_line(e))
            continue
        try:
            results |= _called(name, second, args, outs, device)
        except NotImplementedError as e:
            results[name] = NotOffered(first_line(e))
    return results


def _called(
    name: str, form: str, args: tuple[Any, ...], outs: list[torch.Tensor], device: str
) -> dict[str, torch.Tensor]:
    """Call one form of an op on a device, into copies of ``outs`` if it takes them. Return the results by name."""
    call, given, there = getattr(torch, name), on(device, _values()), [on(device, out) for out in outs]
    if form == "new":
        there = _tuple(call(given, *args))
    else:
        call(given, *args, out=there[0] if len(there) == 1 else tuple(there))
    return {f"{name}_{form}_{i}": result.clone() for i, result in enumerate(there)}


def _tuple(result: Any) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)
