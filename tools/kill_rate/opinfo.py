"""The checks of PyTorch's device-generic tests for an OpInfo. An item is one check of one op in one dtype.

Both sides of each comparison are on the device, except in ``compare_cpu``. Samples, dtypes and tolerances are those of
``torch.testing._internal``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase, noncontiguous_like

from conformance.backends import Capabilities
from conformance.inventory import inventory
from tools.kill_rate.forked import Check

SEED = 1234
REAL, LONG, COMPLEX = torch.float32, torch.int64, torch.complex64


class _Asserts(TestCase):
    def runTest(self) -> None:  # noqa: N802  # unittest's name
        """No test: only ``assertEqual`` is used."""


equal = _Asserts().assertEqual


def ops_of(backend: Capabilities) -> list[Any]:
    """Return the OpInfos of ops that have an overload with a native kernel."""
    native = {o.name.partition(".")[0].rstrip("_") for o in inventory(backend.device) if str(o.route) == "native"}
    return [op for op in op_db if {op.aten_name, op.aten_name.rstrip("_"), f"_{op.aten_name}"} & native]


def checks(backend: Capabilities) -> dict[str, Check]:
    """Return every check of every op of :func:`ops_of`, sorted by check."""
    found: dict[str, Check] = {}
    for name, (check, dtypes) in CHECKS.items():
        for op in ops_of(backend):
            for dtype in dtypes(op):
                word = str(dtype).removeprefix("torch.")
                run = partial(_seeded, check, op, backend.device, dtype)
                found[f"{name} {op.full_name}[{word}]"] = Check(name, run)
    return found


def _seeded(check: Callable[..., None], op: Any, device: str, dtype: torch.dtype) -> None:
    torch.manual_seed(SEED)
    random.seed(SEED)
    np.random.seed(SEED)  # the generator that OpInfo's samples draw from
    check(op, device, dtype)


def compare_cpu(op: Any, device: str, dtype: torch.dtype) -> None:
    """Compare the device's result with CPU's for the same sample."""
    for sample in op.sample_inputs(device, dtype):
        there = sample.transform(lambda t: t.detach().to("cpu") if isinstance(t, torch.Tensor) else t)
        if "device" in sample.kwargs:
            there.kwargs["device"] = "cpu"
        equal(_call(op, sample), _call(op, there), exact_device=False, atol=1e-3, rtol=1e-3)


def noncontiguous(op: Any, device: str, dtype: torch.dtype) -> None:
    """Compare results and gradients of a sample with those of the same sample with gaps in its storages."""
    grad = op.supports_autograd and dtype in (REAL, COMPLEX)
    for sample in op.sample_inputs(device, dtype, requires_grad=grad):
        gapped = sample.noncontiguous()
        expected, actual = _call(op, sample), _call(op, gapped)
        equal(actual, expected)
        if grad:
            _compare_gradients(sample, expected, gapped, actual)


def variants(op: Any, device: str, dtype: torch.dtype) -> None:
    """Compare the method, the operator and the in-place forms with the function."""
    forms = [v for v in (op.method_variant, op.operator_variant, *op.aliases) if v]
    in_place = [v for v in (op.inplace_variant, op.inplace_operator_variant) if v]
    for sample in op.sample_inputs(device, dtype):
        expected = op(_cloned(sample.input), *sample.args, **sample.kwargs)
        for form in forms:
            equal(form(_cloned(sample.input), *sample.args, **sample.kwargs), expected)
        for form in in_place if _may_be_written(sample, expected) else ():
            equal(form(_cloned(sample.input), *sample.args, **sample.kwargs), expected)


def out(op: Any, device: str, dtype: torch.dtype) -> None:
    """Call with ``out=``: filled with NaN, strided, empty, and of an unsafe dtype."""
    if not op.supports_out:
        return
    for sample in op.sample_inputs(device, dtype):
        expected = _call(op, sample)
        for make in (_filled, _strided, _empty):
            given = _map(make, expected)
            before = _addresses(given)
            _call(op, sample, out=given)
            equal(given, expected)
            if make is not _empty:
                assert _addresses(given) == before, f"out= that is {make.__name__[1:]} has another storage or strides"
        _refuses(op, sample, expected)


def odd_bools(op: Any, device: str, dtype: torch.dtype) -> None:
    """Check that bytes other than 0 and 1 count as true."""
    for sample in op.sample_inputs(device, dtype):
        odd = sample.transform(lambda t: _odd(t) if isinstance(t, torch.Tensor) and t.dtype is torch.bool else t)
        equal(_call(op, odd), _call(op, sample))


def math_view(op: Any, device: str, dtype: torch.dtype) -> None:
    """Compare a conjugated or negated view with the same values without the bit."""
    for sample in op.sample_inputs(device, dtype):
        if not isinstance(sample.input, torch.Tensor):
            continue
        x = sample.input
        if dtype.is_complex:
            lazy, plain = torch.conj(x.conj_physical()), x
        else:
            lazy, plain = torch._neg_view(-x), x  # noqa: SLF001  # there is no public name
        expected = op(plain.clone(), *sample.args, **sample.kwargs)
        equal(op(lazy, *sample.args, **sample.kwargs), expected, exact_dtype=False)


def errors(op: Any, device: str, _: torch.dtype) -> None:
    """Check that invalid inputs raise the listed error."""
    if op.error_inputs_func is None:
        return
    for each in op.error_inputs(device):
        sample = each.sample_input
        try:
            _call(op, sample)
        except each.error_type:
            continue
        raise AssertionError(f"did not raise {each.error_type}")


def _of(*wanted: torch.dtype) -> Callable[[Any], list[torch.dtype]]:
    """Return a function that returns the ``wanted`` dtypes that an op supports."""
    return lambda op: [d for d in wanted if d in op.dtypes]


def _any_one(op: Any) -> list[torch.dtype]:
    """Return the first of these dtypes that the op supports, as a list, which may be empty."""
    return _of(REAL, LONG, COMPLEX, torch.bool)(op)[:1]


CHECKS: dict[str, tuple[Callable[..., None], Callable[[Any], list[torch.dtype]]]] = {
    "compare_cpu": (compare_cpu, _any_one),
    "noncontiguous": (noncontiguous, _of(REAL, LONG, COMPLEX)),
    "variants": (variants, _of(REAL, COMPLEX)),
    "out": (out, _any_one),
    "odd_bools": (odd_bools, _of(torch.bool)),
    "math_view": (math_view, _of(COMPLEX, torch.float64)),
    "errors": (errors, _any_one),
}


def _call(op: Any, sample: Any, **more: Any) -> Any:
    return op(sample.input, *sample.args, **sample.kwargs, **more)


def _map(make: Callable[[torch.Tensor], torch.Tensor], result: Any) -> Any:
    return make(result) if isinstance(result, torch.Tensor) else type(result)(map(make, result))


def _each(result: Any) -> Iterable[torch.Tensor]:
    """Return the tensors of a result."""
    flat = [result] if isinstance(result, torch.Tensor) else result
    return [t for t in flat if isinstance(t, torch.Tensor)] if isinstance(flat, (list, tuple)) else []


def _cloned(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _filled(t: torch.Tensor) -> torch.Tensor:
    """Return a tensor like this one with values that no op may read."""
    return torch.full_like(t, float("nan") if t.is_floating_point() or t.is_complex() else 1)


def _strided(t: torch.Tensor) -> torch.Tensor:
    gapped: torch.Tensor = noncontiguous_like(_filled(t))
    return gapped


def _empty(t: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=t.dtype, device=t.device)


def _odd(t: torch.Tensor) -> torch.Tensor:
    """Return the same bools, with true stored as random bytes other than 0."""
    raw = torch.randint(1, 256, t.shape, dtype=torch.uint8, device=t.device)
    return (raw * t.to(torch.uint8)).view(torch.bool)


def _addresses(given: Any) -> list[tuple[int, tuple[int, ...]]]:
    return [(t.data_ptr(), t.stride()) for t in _each(given)]


def _refuses(op: Any, sample: Any, expected: Any) -> None:
    """Check that an integer ``out=`` of a floating result raises."""
    if isinstance(expected, torch.Tensor) and (expected.is_floating_point() or expected.is_complex()):
        try:
            _call(op, sample, out=torch.empty_like(expected, dtype=torch.int64))
        except RuntimeError:
            return
        raise AssertionError("took an out= of an unsafe dtype")


def _may_be_written(sample: Any, expected: Any) -> bool:
    if sample.broadcasts_input or not isinstance(sample.input, torch.Tensor) or not isinstance(expected, torch.Tensor):
        return False
    return bool(expected.dtype == sample.input.dtype and expected.shape == sample.input.shape)


def _leaves(sample: Any) -> Iterator[torch.Tensor]:
    for value in (sample.input, *sample.args, *sample.kwargs.values()):
        for one in _each(value):
            if one.requires_grad:
                yield one


def _compare_gradients(sample: Any, expected: Any, gapped: Any, actual: Any) -> None:
    wanted = [t for t in _each(expected) if t.requires_grad]
    got = [t for t in _each(actual) if t.requires_grad]
    inputs, others = list(_leaves(sample)), list(_leaves(gapped))
    if not wanted or not inputs:
        return
    grads = [torch.randn_like(t) for t in wanted]
    plain = torch.autograd.grad(wanted, inputs, grads, allow_unused=True)
    equal(torch.autograd.grad(got, others, [noncontiguous_like(g) for g in grads], allow_unused=True), plain)
