"""Minimal tests of a backend: contiguous float32 samples of each OpInfo, compared with CPU by ``allclose``."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

from conformance.backends import Capabilities
from tools.kill_rate.forked import Check

SEED = 1234
RTOL, ATOL = 1e-4, 1e-5

Pair = tuple[Any, Any]  # a sample, and CPU's result


def checks(backend: Capabilities) -> dict[str, Check]:
    """Return an item for each op. CPU's results are computed once for all faults."""
    found: dict[str, Check] = {}
    for op in op_db:
        if torch.float32 in op.dtypes and (pairs := _on_cpu(op)):
            run = partial(_compare, op, backend.device, pairs)
            found[f"allclose {op.full_name}[float32]"] = Check("allclose", run)
    return found


def _on_cpu(op: Any) -> list[Pair]:
    torch.manual_seed(SEED)
    try:
        samples = [s.transform(_contiguous) for s in op.sample_inputs("cpu", torch.float32)]
        return [(s, _call(op, s, "cpu")) for s in samples]
    except Exception:  # noqa: BLE001  # this OpInfo cannot be called in this way
        return []


def _compare(op: Any, device: str, pairs: list[Pair]) -> None:
    for sample, expected in pairs:
        actual = _call(op, sample, device)
        for a, b in zip(tree_leaves(actual), tree_leaves(expected), strict=True):
            if isinstance(b, torch.Tensor):
                assert torch.allclose(a.cpu(), b, rtol=RTOL, atol=ATOL, equal_nan=True), "values differ"


def _call(op: Any, sample: Any, device: str) -> Any:
    moved = tree_map(
        lambda v: v.to(device, copy=True) if isinstance(v, torch.Tensor) else v,
        (sample.input, sample.args, sample.kwargs),
    )
    if "device" in moved[2]:
        moved[2]["device"] = device
    return op(moved[0], *moved[1], **moved[2])


def _contiguous(value: Any) -> Any:
    return value.detach().contiguous() if isinstance(value, torch.Tensor) else value
