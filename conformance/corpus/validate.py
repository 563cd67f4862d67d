"""Validation of samples: the dtypes in which CPU runs them. Samples run in forked children, which may crash."""

from __future__ import annotations

import faulthandler
import os
import signal
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from conformance.corpus.calls import HasValues, plain_call
from conformance.corpus.drafts import SEED
from conformance.corpus.model import Arg, DtypeArg, Sample
from conformance.inventory import call_of
from conformance.support.descriptors import ready
from conformance.support.forking import fork
from conformance.support.signals import signal_name
from conformance.torch_versions import has_no_memory

# The dtypes to try for each base. Those that this torch lacks are skipped.
DTYPES = {
    "float32": (
        "float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
        "float8_e5m2fnuz", "float8_e8m0fnu",
    ),
    "int64": ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"),
    "bool": ("bool",),
    "complex64": ("complex64", "complex128", "complex32"),
}  # fmt: skip
PATIENCE_S = 60

_STARTED, _RAN, _RAISED, _UNUSABLE = b"?", b"+", b"-", b"!"


@dataclass(frozen=True)
class Died:
    """A sample whose process crashed or hung."""

    sample: Sample
    dtype: str
    how: str


def validate(samples: Sequence[Sample], values: HasValues) -> tuple[list[Sample], list[Died]]:
    """Return the samples that run in some dtype, with their ``dtypes``, and the samples that crashed or hung.

    A sample that must raise keeps the dtypes in which it raises.
    """
    jobs = [(i, dtype) for i, s in enumerate(samples) for dtype in candidates(s)]
    outcomes, died = _outcomes(samples, jobs, values)
    ran: dict[int, list[str]] = {}
    for (i, dtype), outcome in zip(jobs, outcomes, strict=False):
        if outcome == (_RAISED if samples[i].raises else _RAN):
            ran.setdefault(i, []).append(dtype)
    return [replace(samples[i], dtypes=tuple(dtypes)) for i, dtypes in sorted(ran.items())], died


def candidates(sample: Sample) -> tuple[str, ...]:
    """Return the dtypes to try: only the base if the sample raises, or if nothing in it follows the cell's dtype."""
    if sample.dtypes:
        return sample.dtypes
    follows = any(s.dtype is None for s in sample.tensors) or any(
        _follows(a) for a in (*sample.args, *[a for _, a in sample.kwargs])
    )
    if sample.raises or not follows:
        return (sample.base,)
    return tuple(d for d in DTYPES[sample.base] if hasattr(torch, d))


def _follows(arg: Arg) -> bool:
    return isinstance(arg, DtypeArg) and arg.name is None


def _outcomes(
    samples: Sequence[Sample], jobs: Sequence[tuple[int, str]], values: HasValues
) -> tuple[list[bytes], list[Died]]:
    outcomes: list[bytes] = []
    died: list[Died] = []
    while len(outcomes) < len(jobs):
        done, how = _run_child(samples, jobs[len(outcomes) :], values)
        outcomes += done
        if len(outcomes) < len(jobs):
            i, dtype = jobs[len(outcomes)]
            died.append(Died(samples[i], dtype, how))
            outcomes.append(_STARTED)
    return outcomes, died


def _run_child(
    samples: Sequence[Sample], jobs: Sequence[tuple[int, str]], values: HasValues
) -> tuple[list[bytes], str]:
    """Return the outcomes up to the job that ended the child, and how the child ended."""
    read, write = os.pipe()
    pid = fork()
    if pid == 0:
        os.close(read)
        _child(samples, jobs, values, write)
    os.close(write)
    received, patient = _receive(read)
    if not patient:
        os.kill(pid, signal.SIGKILL)
    os.close(read)
    status = os.waitpid(pid, 0)[1]
    outcomes = [bytes([b]) for b in received if b != _STARTED[0]]
    if not patient:
        return outcomes, f"no answer in {PATIENCE_S} s"
    return outcomes, signal_name(os.waitstatus_to_exitcode(status))


def _receive(read: int) -> tuple[bytes, bool]:
    received = b""
    while ready([read], PATIENCE_S):
        chunk = os.read(read, 65536)
        if not chunk:
            return received, True
        received += chunk
    return received, False


def _child(samples: Sequence[Sample], jobs: Sequence[tuple[int, str]], values: HasValues, write: int) -> None:
    warnings.simplefilter("ignore")
    faulthandler.disable()  # the parent reports deaths
    torch.set_num_threads(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        for i, dtype in jobs:
            os.write(write, _STARTED)
            os.write(write, _attempt(samples[i], dtype, values))
        os._exit(0)
    finally:
        os._exit(1)


def _attempt(sample: Sample, dtype: str, values: HasValues) -> bytes:
    try:
        args, kwargs = plain_call(sample, dtype, values)
    except Exception:  # noqa: BLE001 - a value this dtype cannot hold
        return _UNUSABLE
    torch.manual_seed(SEED)
    try:
        with torch.no_grad():
            result = call_of(sample.overload)(*args, **kwargs)
    except Exception:  # noqa: BLE001 - the error is the outcome
        return _RAISED
    return _RAN if readable(result) else _UNUSABLE


def readable(result: Any) -> bool:
    """Return whether every tensor of a result can be compared: it is strided and can be copied."""
    if isinstance(result, (list, tuple)):
        return all(readable(r) for r in result)
    if not isinstance(result, torch.Tensor):
        return True
    if result.layout is not torch.strided or result.is_quantized or result.is_nested:
        return False
    if has_no_memory(result):
        return True  # a zero tensor has no values to copy
    try:
        result.clone().resolve_conj().resolve_neg()
    except Exception:  # noqa: BLE001 - a view that this dtype cannot resolve, such as a negative one of float8
        return False
    return True
