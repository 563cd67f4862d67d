"""Helpers of the tests of pointwise ops: values of every dtype, the layouts, and the comparison of npu with CPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.empty(0, dtype=torch.complex32)  # warns once that complex32 is experimental

Op = Callable[..., torch.Tensor]

REAL = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32]
REAL.append(torch.float64)
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex32, torch.complex64, torch.complex128]
FLOAT8 = [torch.float8_e5m2, torch.float8_e4m3fn, torch.float8_e5m2fnuz, torch.float8_e4m3fnuz]
if hasattr(torch, "float8_e8m0fnu"):
    FLOAT8.append(torch.float8_e8m0fnu)
EVERY = [torch.bool, *REAL, *UNSIGNED, *COMPLEX, *FLOAT8]

SPECIAL = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 100, -100, float("inf"), -float("inf"), float("nan"), 2.5, -2.5]


def name_of(dtype: torch.dtype) -> str:
    """Return the name of a dtype in test ids, ``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def values(dtype: torch.dtype, count: int = 96, seed: int = 0) -> torch.Tensor:
    """Return ``count`` values on CPU. In real floating dtypes, some are special values."""
    generator = torch.Generator().manual_seed(seed)
    if not (dtype.is_floating_point or dtype.is_complex):
        signed = dtype not in (torch.bool, torch.uint8, *UNSIGNED)
        return torch.randint(-20 if signed else 0, 20, (count,), generator=generator).to(dtype)
    plain = 3 * torch.randn(count, generator=generator, dtype=torch.float64)
    if dtype.is_complex:
        return torch.complex(plain, plain.roll(5)).to(dtype)
    for index, value in enumerate(SPECIAL):
        plain[(7 * index + seed) % count] = value
    return plain.to(dtype)


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dense": lambda flat: flat[:24].reshape(4, 6),
    "transposed": lambda flat: flat[:24].reshape(6, 4).t(),
    "stepped": lambda flat: flat[:96].reshape(8, 12)[::2, ::2],
    "offset": lambda flat: flat[5:29].reshape(4, 6),
    "expanded": lambda flat: flat[:4].reshape(4, 1).expand(4, 6),
    "overlapping": lambda flat: flat.as_strided((4, 6), (2, 1)),
    "zero_dim": lambda flat: flat[7],
    "empty": lambda flat: flat[:0].reshape(0, 6),
}


def twin(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same view of a copy of the whole storage, on the device."""
    storage = torch.empty(0, dtype=tensor.dtype)
    storage.set_(tensor.untyped_storage(), 0, (tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,))
    return storage.to("npu").as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def outcome(op: Op, arguments: tuple[torch.Tensor, ...]) -> torch.Tensor | type[Exception]:
    """Return the result of the call, or the type of its exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch gives most warnings once, to the first caller
        try:
            return op(*arguments)
        except Exception as error:  # noqa: BLE001 - what it raises is what is compared
            return type(error)


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values as float64 (components side by side) or int64, on CPU and without pending bits."""
    host = tensor.cpu().resolve_conj().resolve_neg()
    if host.dtype.is_complex:
        return torch.view_as_real(host.to(torch.complex128))
    return host.to(torch.float64 if host.dtype.is_floating_point else torch.int64)


def assert_same(op: Op, *arguments: torch.Tensor, slack: float = 16) -> None:
    """Assert that CPU and npu agree in error type, dtype, shape, stride and values.

    Values may differ by ``slack`` units of the dtype's precision.
    """
    expected, actual = outcome(op, arguments), outcome(op, tuple(map(twin, arguments)))
    if not isinstance(expected, torch.Tensor) or not isinstance(actual, torch.Tensor):
        assert expected == actual
        return
    facts = [(tensor.dtype, tensor.shape, tensor.stride()) for tensor in (expected, actual)]
    assert facts[0] == facts[1]
    exact = not expected.dtype.is_floating_point and not expected.dtype.is_complex
    precision = 0.0 if exact or expected.dtype in FLOAT8 else slack * resolution(expected.dtype)
    torch.testing.assert_close(
        wide(actual), wide(expected), rtol=precision, atol=precision, equal_nan=True, check_stride=False
    )


def resolution(dtype: torch.dtype) -> float:
    """Return the distance from 1 to the next number of the dtype."""
    return 2.0**-10 if dtype == torch.complex32 else torch.finfo(dtype).eps
