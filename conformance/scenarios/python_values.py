"""Conversions between Python and a device: tensors as text, tensors of lists and arrays, indices, Python functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from conformance.scenarios.asking import held
from conformance.scenarios.model import NotOffered, Results, needs, offered, on, scenario

_DEVICE = re.compile(r",\s+device='[^']*'")


def _floats() -> torch.Tensor:
    return torch.arange(12.0).view(3, 4)


#: The tensors that are printed.
PRINTED: dict[str, torch.Tensor] = {
    "floats": _floats() / 3,
    "scientific": torch.tensor([1e-10, 1.0, -1e10]),
    "special": torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1.5]),
    "doubles": torch.tensor([0.1, 123456.789], dtype=torch.float64),
    "halves": torch.tensor([0.1, 1000.0], dtype=torch.float16),
    "bfloat16": torch.tensor([0.1, 1000.0], dtype=torch.bfloat16),
    "integers": torch.tensor([[1, -2], [300, 4]]),
    "bytes": torch.arange(5, dtype=torch.uint8),
    "bools": torch.tensor([[True], [False]]),
    "complex": torch.tensor([1 + 2j, -0.5 - 1e-5j]),
    "number": torch.tensor(3.5),
    "empty": torch.zeros(0, 3),
    "long": torch.arange(3000.0),
    "wide": torch.arange(60.0).view(3, 20),
    "turned": _floats()[:, ::2].t(),
    "expanded": torch.tensor([1.0, 2.0]).expand(3, 2),
    "conjugated": torch.tensor([1 + 2j]).conj(),
    "needs_gradient": torch.ones(2, requires_grad=True),
}


@scenario(exact=True)
def text(device: str) -> Results:
    """Return the text of tensors of several dtypes, without the name of the device."""

    def printed(tensor: torch.Tensor) -> torch.Tensor:
        there = on(device, tensor.detach()).requires_grad_(tensor.requires_grad)
        if there.is_conj():
            needs(device, "conjugate")
        words = _DEVICE.sub("", repr(there))
        return torch.tensor(list(" ".join(words.split()).encode()))

    return {name: offered(partial(printed, tensor)) for name, tensor in PRINTED.items()}


def _numpy() -> Any:
    """Return the module ``numpy``. Raises NotOffered without NumPy."""
    try:
        import numpy as np
    except ImportError as e:
        raise NotOffered("NumPy") from e
    return np


def _array() -> Any:
    """Return a NumPy array with strides. Raises NotOffered without NumPy."""
    return _numpy().arange(24.0).reshape(4, 6)[:, ::2]


@scenario(exact=True)
def lists_and_arrays(device: str) -> Results:
    """Return tensors made of Python's lists, of arrays and of each other, and arrays made of tensors.

    They are dense: on CPU, a tensor of an array shares its memory.
    """
    made: dict[str, Callable[[], torch.Tensor]] = {
        "tensor": lambda: torch.tensor([[1.5, 2], [3, 4]], device=device),
        "tensor_of_integers": lambda: torch.tensor([2**53 + 1, -1], device=device),
        "tensor_of_bools": lambda: torch.tensor([True, False], device=device),
        "tensor_of_complex": lambda: torch.tensor([1 + 2j, 3], device=device),
        "tensor_in_dtype": lambda: torch.tensor([1.7, -2.5], dtype=torch.int32, device=device),
        "tensor_of_tensors": lambda: torch.tensor([on(device, torch.tensor(n)) for n in (1.0, 2.0)], device=device),
        "tensor_of_nothing": lambda: torch.tensor([], device=device),
        "as_tensor": lambda: torch.as_tensor([1, 2, 3], device=device),
        "as_tensor_of_array": lambda: torch.as_tensor(_array(), device=device),
        "as_tensor_of_tensor": lambda: torch.as_tensor(on(device, _floats()), dtype=torch.float64),
        "asarray": lambda: torch.asarray(_array(), dtype=torch.float32, device=device),
        "asarray_of_tensor": lambda: torch.asarray(_floats().t(), device=device),
        "from_array": lambda: on(device, torch.from_numpy(_array())),
        "to_array": lambda: torch.from_numpy(on(device, _floats()).t().cpu().numpy().copy()),
        "times_number_of_array": lambda: on(device, _floats()) * _array()[1, 1],
        "number_of_array_plus": lambda: _array()[1, 1] + on(device, _floats()),
        "new_tensor": lambda: on(device, torch.zeros(1, dtype=torch.float64)).new_tensor([1, 2]),
        "new_full": lambda: on(device, torch.zeros(1, dtype=torch.int64)).new_full((2, 2), 7),
        "scalar_tensor": lambda: torch.scalar_tensor(2.5, device=device),
        "cat_of_lists": lambda: torch.cat([torch.tensor([n], device=device) for n in (1.0, 2.0, 3.0)]),
    }
    return {name: offered(partial(_dense, make)) for name, make in made.items()}


@scenario(exact=True, area="memory", accelerators=True)
def arrays_of_the_device(device: str) -> Results:
    """``numpy()`` of a tensor on the device raises an error, as does ``numpy.asarray``: a copy has to be asked for."""

    def refuses(convert: Callable[[torch.Tensor], object]) -> bool:
        _numpy()
        try:
            convert(on(device, _floats()))
        except (TypeError, RuntimeError):
            return True
        return False

    properties: dict[str, Callable[[torch.Tensor], object]] = {
        "numpy": lambda x: x.numpy(),
        "not_forced": lambda x: x.numpy(force=False),
        "asarray": lambda x: _numpy().asarray(x),
    }
    return held(device, {name: partial(refuses, convert) for name, convert in properties.items()})


def _dense(make: Callable[[], torch.Tensor]) -> torch.Tensor:
    return make().clone(memory_format=torch.contiguous_format)


def _indices(device: str) -> dict[str, Any]:
    """Return indices of a table of three rows and four columns. Some have tensors on the device."""
    number, rows = torch.tensor(1, device=device), torch.tensor([2, 0], device=device)
    return {
        "int": 1, "negative": -1, "slice": slice(1, 3), "step": slice(None, None, 2), "ellipsis": (..., 1),
        "none": (None, 1, None), "list": [2, 0], "lists": ([0, 1], [1, 3]), "true": True, "false": False,
        "bools": [True, False, True], "number": number, "slice_to_number": slice(0, number), "rows": rows,
        "rows_and_columns": (rows, torch.tensor([1, 3], device=device)), "columns": (slice(None), rows),
        "columns_of_rows": (rows[:, None], torch.tensor([1, 3], device=device)), "nothing": [],
        "host_rows": torch.tensor([2, 0]), "host_mask": torch.tensor([True, False, True]),
        "mask": torch.tensor([True, False, True], device=device), "row_of_mask": (torch.tensor(2, device=device), ...),
    }  # fmt: skip


@scenario(exact=True)
def indexed(device: str) -> Results:
    """Return what each form of an index reads from a tensor, and the tensor after writes by it."""
    source = on(device, _floats())
    results: Results = {}
    for name, index in _indices(device).items():
        results[name] = offered(partial(_read, source, index))
        for how, value in (("number", 7.0), ("own_values", None)):
            results[f"{name}_written_{how}"] = offered(partial(_written, source, index, value))
        results[f"{name}_added"] = offered(partial(_added, source, index))
    return results


def _read(source: torch.Tensor, index: Any) -> torch.Tensor:
    return source[index].clone()


def _written(source: torch.Tensor, index: Any, value: float | None) -> torch.Tensor:
    target = source.clone()
    target[index] = source[index] * 2 if value is None else value
    return target


def _added(source: torch.Tensor, index: Any) -> torch.Tensor:
    target = source.clone()
    target[index] += 1
    return target


@scenario(exact=True)
def functions_of_python(device: str) -> Results:
    """Return what Python's own functions and operators make of tensors."""
    x = on(device, _floats())
    made: dict[str, Callable[[], torch.Tensor]] = {
        "iterated": lambda: torch.stack(list(x)),
        "unpacked": lambda: torch.stack([*x, *x[1:]]),
        "reversed": lambda: torch.stack(list(reversed(x))),
        "sum": lambda: torch.as_tensor(sum(x)),
        "max": lambda: max(x[1]),
        "sorted": lambda: torch.stack(sorted(x[1], reverse=True)),
        "length_and_truth": lambda: torch.tensor([len(x), bool(x.any()), 3.0 in x, -1.0 in x, bool(x[0, 0])]),
        "operators": lambda: 1 / (2 ** (-x[:, :1] + 3) // 2 % 5 + 1),
        "comparisons": lambda: torch.stack([x < 3, x >= x.t().t(), x == 3, x != 3, ~(x > 1) | (x > 3) & (x < 9)]),
        "in_place": lambda: _in_place(x.clone()),
        "matrix_product": lambda: x @ x.T,
        "zip": lambda: torch.stack([a * b for a, b in zip(x, x.flip(0), strict=True)]),
    }
    return {name: offered(make) for name, make in made.items()}


def _in_place(x: torch.Tensor) -> torch.Tensor:
    x += 1
    x *= 2
    x -= x[0].clone()
    x /= 4
    x **= 2
    x //= 3
    x %= 4
    return x
