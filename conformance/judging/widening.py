"""CPU's side of a call in a dtype that CPU has no kernel for: computed in a wider dtype, and rounded.

The arguments are in the narrow dtype, as on the other side. torch's kernel for Meta gives the dtype of each result. A
call has no reference if CPU refuses it in the wider dtype, or if the dtypes of its results are unknown.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from conformance.contexts.trees import tensors_of, with_tensors
from conformance.judging.views import torch_dtype
from conformance.plan.case import Case
from conformance.plan.wider import dtype_on_cpu
from conformance.records import Mismatch
from conformance.torch_versions import storage_id, versions
from conformance.vocabulary import Fact

# The dtypes of results in place of wider ones, where the arguments are halves.
_HALVES = {torch.float32: torch.float16, torch.complex64: torch.complex32}
_WIDEST = {torch.float32: torch.float64, torch.complex64: torch.complex128}


class NotServed(NotImplementedError):
    """The error that CPU lacks an op in a dtype, and its result in a wider dtype is no reference."""


def on_cpu(op: Callable[..., Any], case: Case) -> Callable[..., Any]:
    """Return the function that makes CPU's call of ``op`` in a case."""
    wide = dtype_on_cpu(case)
    return _Widened(op, torch_dtype(case.cell.dtype), torch_dtype(wide)) if wide else op


def noted(mismatches: list[Mismatch], case: Case) -> list[Mismatch]:
    """Return the findings of a case. If CPU computed in a wider dtype, findings of elements get it as a fact."""
    wide = dtype_on_cpu(case)
    if not wide:
        return mismatches
    of_elements = Fact.ELEMENTS.value
    return [replace(m, facts={**m.facts, "cpu_dtype": wide}) if m.kind == of_elements else m for m in mismatches]


class _Widened:
    """An op whose calls are made in a wider dtype, unless they have no tensor of the narrow dtype on CPU."""

    def __init__(self, op: Callable[..., Any], narrow: torch.dtype, wide: torch.dtype) -> None:
        self._op = op
        self._schema = getattr(op, "_schema", None)  # which an op has
        self._narrow = narrow
        self._wide = wide
        self._narrower = {wide: narrow} if narrow is torch.bfloat16 else _HALVES

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the rounded results of a call, and write its rounded values to the arguments. Raises NotServed."""
        given = [t for t in tensors_of([*args, *kwargs.values()]) if t.dtype is self._narrow and t.is_cpu]
        if not given:
            return self._op(*args, **kwargs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that complex32 is experimental
            wide, results = self._called_in(self._wide, args, kwargs)
            dtypes = self._dtypes_of(results, args, kwargs)
            self._check_numbers([*args, *kwargs.values()], all(map(_is_inexact, dtypes)))
            back = _Copies(self._narrower)
            for tensor in given:
                _write_back(tensor, wide.of(tensor))
                back.add(wide.of(tensor), tensor)
            in_turn = iter(dtypes)
            return with_tensors(results, lambda result: self._rounded(result, back, next(in_turn)))

    def _called_in(self, dtype: torch.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Copies, Any]:
        """Return copies of the arguments in another dtype, and the results of a call with them."""
        copies = _Copies({self._narrow: dtype})

        def changed(arg: Any) -> Any:
            return dtype if arg is self._narrow else with_tensors(arg, copies.of)

        try:
            return copies, self._op(*map(changed, args), **{name: changed(a) for name, a in kwargs.items()})
        except Exception as e:
            raise NotServed(f"CPU raises in {dtype}: {e}") from e

    def _dtypes_of(self, results: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.dtype]:
        """Return the dtype of each result of a call in the narrow dtype.

        torch's kernel for Meta gives it. Without such a kernel, a result follows the dtype of the arguments if it is
        float64 for arguments of float64.
        """
        try:
            return [t.dtype for t in tensors_of(_on_meta(self._op, args, kwargs))]
        except Exception as e:
            if not (isinstance(e, NotImplementedError) and "Meta" in str(e)):  # the kernel refuses the dtype
                raise NotServed(f"the dtypes of the results are not known: {e}") from e
        _, widest = self._called_in(_WIDEST[self._wide], args, kwargs)
        followed = [(r.dtype, w.dtype) for r, w in zip(tensors_of(results), tensors_of(widest), strict=True)]
        if any(_WIDEST.get(dtype, dtype) is not in_widest for dtype, in_widest in followed):
            raise NotServed("a result does not follow the dtype of the arguments")
        return [self._narrower.get(dtype, dtype) for dtype, _ in followed]

    def _rounded(self, result: torch.Tensor, back: _Copies, dtype: torch.dtype) -> torch.Tensor:
        """Return a result in its ``dtype``. An argument, or a result in its storage, has its place there again."""
        if result.layout != torch.strided:
            raise NotServed("a result is not strided")
        if result.dtype == dtype and not back.has(result):
            return result
        if self._narrower.get(result.dtype) != dtype:
            raise NotServed(f"a result is {result.dtype}, which is no wider {dtype}")
        return back.of(result)

    def _check_numbers(self, args: list[Any], is_rounded: bool) -> None:
        """Raise NotServed if the result may change when the numbers among the arguments are first rounded to the dtype.

        ``is_rounded``: whether all results are floating. They then change by rounding alone, unless a number is too
        large.
        """
        most = torch.finfo(self._narrow).max
        for number in (x for arg in args for x in (arg if isinstance(arg, (list, tuple)) else [arg])):
            if isinstance(number, (int, float, complex)) and most < abs(number) < math.inf:
                raise NotServed(f"{number} is too large for the dtype")
            if isinstance(number, float) and not is_rounded and not self._has(number):
                raise NotServed(f"the dtype does not have {number}")

    def _has(self, number: float) -> bool:
        """Return whether the narrow dtype has a number."""
        return number != number or bool(torch.tensor(number, dtype=self._narrow).item() == number)


class _Copies:
    """Copies of tensors in other dtypes. A storage is copied once, and its tensors have the same places in the copy."""

    def __init__(self, dtypes: Mapping[torch.dtype, torch.dtype]) -> None:
        self._dtypes = dtypes
        self._storages: dict[int, torch.Tensor] = {}  # the bytes of each copy, by the id of the copied storage
        self._tensors: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # by the id of the first of the two

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the copy of a tensor; the tensor itself if its dtype stays."""
        dtype = self._dtypes.get(tensor.dtype)
        if dtype is None or not tensor.is_cpu:
            return tensor
        if id(tensor) not in self._tensors:
            bytes_ = self._storages.get(storage_id(tensor))
            if bytes_ is None:
                bytes_ = _bytes(tensor).view(tensor.dtype).to(dtype).view(torch.uint8)
                self._storages[storage_id(tensor)] = bytes_
            copy = bytes_.view(dtype).as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
            self._tensors[id(tensor)] = tensor, copy
        return self._tensors[id(tensor)][1]

    def add(self, tensor: torch.Tensor, copy: torch.Tensor) -> None:
        """Register ``copy`` as the copy of a tensor, and its storage as the copy of the tensor's storage."""
        self._storages[storage_id(tensor)] = _bytes(copy)
        self._tensors[id(tensor)] = tensor, copy

    def has(self, tensor: torch.Tensor) -> bool:
        """Return whether there is a copy of the storage that a tensor lies in."""
        return storage_id(tensor) in self._storages


def _on_meta(op: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the results of a call with tensors that have no memory."""
    made: dict[int, torch.Tensor] = {}

    def moved(t: torch.Tensor) -> torch.Tensor:
        if id(t) not in made:
            made[id(t)] = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
        return made[id(t)]

    return op(*(with_tensors(a, moved) for a in args), **{name: with_tensors(a, moved) for name, a in kwargs.items()})


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return the storage of a tensor as bytes, up to its last whole element."""
    storage = tensor.untyped_storage()
    whole = torch.empty(0, dtype=torch.uint8).set_(storage)
    return whole[: storage.nbytes() // tensor.itemsize * tensor.itemsize]


def _write_back(tensor: torch.Tensor, wide: torch.Tensor) -> None:
    """Write to an argument the values that the call wrote to its copy, with the size and strides of the copy."""
    if versions([wide]) == [0]:
        return
    if wide.shape != tensor.shape:
        tensor.resize_(wide.shape)
    if wide.stride() != tensor.stride():
        tensor.as_strided_(wide.size(), wide.stride())
    tensor.copy_(wide)


def _is_inexact(dtype: torch.dtype) -> bool:
    return bool(dtype.is_floating_point or dtype.is_complex)
