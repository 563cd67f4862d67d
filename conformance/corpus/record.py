"""The recorder of the ATen calls of OpInfo's samples: forward, backward, in-place, out, and calls that must raise."""

from __future__ import annotations

import random
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from conformance.corpus.drafts import SEED, Drafter, dtype_name
from conformance.corpus.model import BASES, NotStorable, Sample
from conformance.corpus.pools import PoolBuilder
from conformance.inventory import call_of, overload_of
from conformance.torch_versions import TorchDispatchMode, schema_of, without_modes

MOST_CANDIDATES = 96  # of an overload and base
# Elements of all tensors of a call. Small tensors show layout errors too, and a sample runs hundreds of times.
MOST_ELEMENTS = 4_000
MOST_OF_AN_OP = 120  # samples of one OpInfo and dtype
MOST_GRADIENTS = 24  # the first of these samples, whose backward runs too
MOST_OF_A_COMPOSITE = 40  # candidates of a composite overload, over all bases
MOST_ERRORS = 4  # raising calls of an overload
LISTS = [3, 4]  # lengths of the lists of a foreach op, and sizes of their largest tensors; OpInfo's own are over 20

UNINITIALIZED = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted")

Progress = Callable[[str], None]
Signature = tuple[Any, ...]


@dataclass
class Recording:
    """The candidates so far, by overload and base. Their values are in ``pools``."""

    pools: PoolBuilder = field(default_factory=PoolBuilder)
    candidates: dict[tuple[str, str], list[Sample]] = field(default_factory=lambda: defaultdict(list))
    composites: Mapping[str, Sequence[str]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)  # OpInfo -> why it gave no sample
    _signatures: set[Signature] = field(default_factory=set)
    # By overload, the arguments that had the base's dtype in a float or complex call, and those that had another dtype.
    _following: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _keeping: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def fixed(self, overload: str) -> frozenset[str]:
        """Return the arguments that never have the op's own dtype, such as an index or a mask."""
        return frozenset(self._keeping[overload] - self._following[overload])

    def take(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dtype: str, origin: str) -> Sample | None:
        """Return a candidate for this call with its current values, None if an equal one exists."""
        schema, overload = schema_of(func), overload_of(func)
        tensors = list(_tensors((args, dict(kwargs))))
        base = _base(tensors, kwargs, dtype)
        if base is None or sum(t.numel() for t in tensors) > MOST_ELEMENTS:
            return None
        signature = (overload, base, _signature(args), _signature(kwargs), origin.endswith(".error"))
        if signature in self._signatures or len(self.candidates[overload, base]) >= MOST_CANDIDATES:
            return None
        self._signatures.add(signature)
        if base in ("float32", "complex64"):
            self._learn(overload, schema, args, kwargs, base)
        fixed = self.fixed(overload) if base in ("int64", "bool") else frozenset[str]()
        try:
            return Drafter(self.pools, base, fixed).draft(overload, schema, args, kwargs, origin)
        except NotStorable:
            return None

    def keep(self, sample: Sample, raises: bool) -> None:
        rows = self.candidates[sample.overload, sample.base]
        if raises and sum(s.raises for s in rows) >= MOST_ERRORS:
            return
        rows.append(replace(sample, raises=raises))

    def _learn(self, overload: str, schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any], base: str) -> None:
        names = [a.name for a in schema.arguments]
        for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
            for t in _tensors(value):
                seen = self._following if dtype_name(t.dtype) == base else self._keeping
                seen[overload].add(name)


class Recorder(TorchDispatchMode):
    """A dispatch mode that records every ATen call with its values before the call, and whether it raises."""

    def __init__(self, recording: Recording, dtype: str, origin: str) -> None:
        super().__init__()
        self._recording, self._dtype, self._origin = recording, dtype, origin

    def __torch_dispatch__(
        self, func: Any, types: Iterable[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        with self._kept(func, args, kwargs), _resized_outputs_defined(_tensors((args, dict(kwargs)))):
            return _defined(func, func(*args, **kwargs))

    @contextmanager
    def _kept(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[None]:
        """Record a call with its values before it runs, and afterwards whether it raised."""
        recording = self._recording
        sample = recording.take(func, args, kwargs, self._dtype, self._origin) if func.namespace == "aten" else None
        try:
            yield
        except Exception:
            if sample is not None:
                recording.keep(sample, raises=True)
            raise
        if sample is not None:
            recording.keep(sample, raises=False)


@contextmanager
def _resized_outputs_defined(tensors: Iterable[torch.Tensor]) -> Iterator[None]:
    """Zero the tensors that a raising call resized, since it may not have written them. The next call may read them."""
    shapes = [(t, t.shape) for t in tensors]
    try:
        yield
    except Exception:
        for t, shape in shapes:
            if t.shape != shape:
                t.zero_()
        raise


class Defining(TorchDispatchMode):
    """A dispatch mode that replaces uninitialized memory in samples by zeros."""

    def __torch_dispatch__(
        self, func: Any, types: Iterable[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return _defined(func, func(*args, **(kwargs or {})))


def _defined(func: Any, result: Any) -> Any:
    """Return the result of a call, zeroed if it is uninitialized memory, so that builds are reproducible."""
    if func.__name__.partition(".")[0] in UNINITIALIZED:
        result.zero_()
    return result


class FunctionRecorder(TorchFunctionMode):
    """A function mode that records composite overloads, which are decomposed before a dispatch mode sees them.

    A call of a Python function is matched with the overloads of the same name that accept its arguments.
    """

    def __init__(self, recording: Recording, composites: Mapping[str, Sequence[str]], dtype: str, origin: str) -> None:
        super().__init__()
        self._recording, self._composites = recording, composites
        self._dtype, self._origin = dtype, origin

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        for overload in self._composites.get(getattr(func, "__name__", ""), ()):
            self._offer(overload, args, kwargs)
        return func(*args, **kwargs)

    def _offer(self, overload: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if sum(len(self._recording.candidates[overload, b]) for b in BASES) >= MOST_OF_A_COMPOSITE:
            return
        call = call_of(overload)
        if not takes(schema_of(call), args, kwargs):
            return
        with without_modes():  # do not record the calls that read the values
            sample = self._recording.take(call, args, kwargs, self._dtype, self._origin)
        if sample is not None:
            self._recording.keep(sample, raises=False)


def takes(schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether the schema accepts these arguments."""
    names = [a.name for a in schema.arguments]
    positional = [a.name for a in schema.arguments if not a.kwarg_only]
    given = {*positional[: len(args)], *kwargs}
    needed = {a.name for a in schema.arguments if not a.has_default_value()}
    return len(args) <= len(positional) and needed <= given <= set(names)


def record(progress: Progress, composites: Mapping[str, Sequence[str]]) -> Recording:
    """Record the calls of all OpInfos on CPU. Needs expecttest and numpy, which torch.testing._internal imports.

    ``composites``: operator -> its CompositeImplicit overloads.
    """
    recording = Recording(composites=composites)
    ops = list(_opinfos())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for base in ("float32", "complex64", "int64", "bool"):
            for i, op in enumerate(ops):
                if i % 200 == 0:
                    progress(f"recording {base}: {i} of {len(ops)} operators")
                _record_op(recording, op, base)
    return recording


def _opinfos() -> Iterator[Any]:
    from torch.testing._internal import common_methods_invocations as cmi

    yield from cmi.op_db
    for group in ("unary", "binary", "pointwise", "reduce", "other"):
        yield from getattr(cmi, f"foreach_{group}_op_db", [])


def _record_op(recording: Recording, op: Any, base: str) -> None:
    dtype = getattr(torch, base)
    origin = f"opinfo.{op.name}" + (f".{op.variant_test_name}" if op.variant_test_name else "")
    if dtype in op.supported_dtypes("cpu"):
        _record_samples(recording, op, dtype, origin)
    if base == "float32" and op.error_inputs_func is not None:
        _record_errors(recording, op, origin)


def _record_samples(recording: Recording, op: Any, dtype: torch.dtype, origin: str) -> None:
    differentiable = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    with _seeded():
        try:
            with Defining():
                samples = _first(op.sample_inputs("cpu", dtype, differentiable, **_sized(op)), MOST_OF_AN_OP)
        except Exception as e:  # noqa: BLE001 - skip an OpInfo that cannot make its own samples
            recording.failures[f"{origin}[{dtype}]"] = repr(e)
            return
        for i, sample in enumerate(samples):
            for variant, run in _variants(op, sample, differentiable and i < MOST_GRADIENTS):
                _try(recording, dtype, origin + variant, run)


def _sized(op: Any) -> dict[str, Any]:
    return {"num_input_tensors": LISTS} if op.name.startswith("_foreach_") else {}


def _variants(op: Any, sample: Any, backward: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    args, kwargs = (sample.input, *sample.args), sample.kwargs
    yield "", lambda: op.op(*args, **kwargs)
    if op.inplace_variant is not None:
        yield ".inplace", lambda: op.inplace_variant(*_detached(args), **kwargs)
    if op.supports_out:
        yield ".out", lambda: _run_out(op, _detached(args), kwargs)
    if backward:
        yield ".backward", lambda: _run_backward(op, args, kwargs)


def _run_out(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    with torch.no_grad():
        result = op.op(*args, **kwargs)
        out = tuple(torch.empty_like(r) for r in result) if isinstance(result, tuple) else torch.empty_like(result)
        op.op(*args, **kwargs, out=out)


def _run_backward(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Compute first and second derivatives with respect to every differentiable input."""
    leaves = [t for t in _tensors((args, dict(kwargs))) if t.requires_grad]
    results = [t for t in _tensors(op.op(*args, **kwargs)) if t.requires_grad]
    if not (leaves and results):
        return
    seeds = [torch.randn_like(r).requires_grad_(op.supports_gradgrad) for r in results]
    first = torch.autograd.grad(results, leaves, seeds, create_graph=op.supports_gradgrad, allow_unused=True)
    again = [g for g in first if g is not None and g.requires_grad]
    if again and op.supports_gradgrad:
        torch.autograd.grad(again, [*leaves, *seeds], [torch.randn_like(g) for g in again], allow_unused=True)


def _record_errors(recording: Recording, op: Any, origin: str) -> None:
    with _seeded():
        try:
            with Defining():
                errors = list(op.error_inputs("cpu"))
        except Exception as e:  # noqa: BLE001 - skip an OpInfo that cannot make its own errors
            recording.failures[f"{origin}[errors]"] = repr(e)
            return
        for error in errors:
            sample = error.sample_input
            dtype = next((t.dtype for t in _tensors(sample.input)), torch.float32)
            args, kwargs = (sample.input, *sample.args), sample.kwargs
            _try(recording, dtype, f"{origin}.error", partial(op.op, *args, **kwargs))


def _try(recording: Recording, dtype: torch.dtype, origin: str, run: Callable[[], Any]) -> None:
    """Run a function under the recorder. A call that raises after it reached ATen is recorded as raising."""
    try:
        with (
            Recorder(recording, dtype_name(dtype), origin),
            FunctionRecorder(recording, recording.composites, dtype_name(dtype), origin),
        ):
            run()
    except Exception:  # noqa: BLE001 - the recorder has seen the error
        return


@contextmanager
def _seeded() -> Iterator[None]:
    torch.manual_seed(SEED)
    random.seed(SEED)
    np.random.seed(SEED)
    yield


def _first(samples: Iterable[Any], most: int) -> list[Any]:
    return [s for s, _ in zip(samples, range(most), strict=False)]


def _detached(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (list, tuple)):
        return type(value)(_detached(v) for v in value) if type(value) in (list, tuple) else value
    return value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _tensors(v)


def _base(tensors: Sequence[torch.Tensor], kwargs: Mapping[str, Any], dtype: str) -> str | None:
    """Return the base of a call: the sample's dtype if a tensor has it, else the first tensor's; None if not a base."""
    if not tensors:
        asked = kwargs.get("dtype")
        dtype = dtype_name(asked) if isinstance(asked, torch.dtype) else "float32"
    elif all(dtype_name(t.dtype) != dtype for t in tensors):
        dtype = dtype_name(tensors[0].dtype)
    return dtype if dtype in BASES else None


def _signature(value: Any) -> Any:
    """Return a key for a call: structure, shapes, dtypes and plain values."""
    if isinstance(value, torch.Tensor):
        return ("t", tuple(value.shape), value.dtype)
    if isinstance(value, (list, tuple)):
        return tuple(_signature(v) for v in value)
    if isinstance(value, Mapping):
        return tuple((k, _signature(v)) for k, v in value.items())
    return (type(value).__name__, str(value))
