"""A call on CPU and, over the same bytes, on the npu: a comparison of results, errors and written bytes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import refnpu  # noqa: F401 - registers the device
import torch

ALL = [
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
]
RARE = [torch.uint16, torch.uint32, torch.uint64, torch.complex32, torch.float8_e4m3fn, torch.float8_e5m2]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.empty(0, dtype=torch.complex32)  # warns once that complex32 is experimental
CLOSE = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def values(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Return small whole numbers with a few zeros, which are exact in every dtype."""
    count = torch.Size(shape).numel()
    numbers = (torch.arange(count, dtype=torch.int64) * 7 + seed) % 11
    return numbers.reshape(shape).to(torch.float32).to(dtype)


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda t: t.clone(),
    "permuted": lambda t: t.permute(tuple(range(t.dim()))[::-1]).contiguous().permute(tuple(range(t.dim()))[::-1]),
    "stepped": lambda t: t.unsqueeze(-1).repeat_interleave(2, -1)[..., 0] if t.dim() else t.clone(),
    "offset": lambda t: torch.cat([t.flatten()[:1], t.flatten()])[1 if t.numel() else 0 :].view(t.shape),
}


def fresh(argument: Any, device: str, storages: dict[int, torch.Tensor]) -> Any:
    """Return the argument over a copy of its storage on `device`. Arguments that share one on CPU share one there."""
    if isinstance(argument, (list, tuple)):
        return type(argument)(fresh(item, device, storages) for item in argument)
    if not isinstance(argument, torch.Tensor):
        return argument
    key = argument.untyped_storage().data_ptr() or id(argument)
    if key not in storages:
        flat = torch.empty(0, dtype=torch.uint8).set_(argument.untyped_storage())
        storages[key] = flat.clone().to(device)
    whole = torch.empty(0, dtype=argument.dtype, device=device).set_(storages[key].untyped_storage())
    return whole.as_strided(argument.shape, argument.stride(), argument.storage_offset())


def outcome(call: Callable[..., Any], device: str, args: Any, kwargs: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
    """Return the result of the call, its exception, and the bytes of its tensor arguments after the call."""
    storages: dict[int, torch.Tensor] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            own = fresh(list(args), device, storages)
            named = {name: fresh(value, device, storages) for name, value in kwargs.items()}
            result, error = call(*own, **named), None
        except Exception as raised:  # noqa: BLE001 - whatever it is, it is compared
            result, error = None, raised
    return result, error, [flat.cpu() for flat in storages.values()]


def assert_same(got: Any, expected: Any, rtol: float, atol: float) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for one, other in zip(got, expected):
            assert_same(one, other, rtol, atol)
    elif isinstance(expected, torch.Tensor):
        assert got.device.type == "npu"
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        assert got.stride() == expected.stride(), f"stride {got.stride()} is not CPU's {expected.stride()}"
        assert got.storage_offset() == expected.storage_offset()
        mine, theirs = got.cpu(), expected
        if expected.dtype not in CLOSE:
            flat = (one.flatten().clone(memory_format=torch.contiguous_format) for one in (mine, theirs))
            mine, theirs = (one.view(torch.uint8) for one in flat)
        torch.testing.assert_close(mine, theirs, rtol=rtol, atol=atol, equal_nan=True)
    else:
        assert got == expected


def check(call: Callable[..., Any], *args: Any, rtol: float = 0.0, atol: float = 0.0, **kwargs: Any) -> None:
    """Assert that a call has the same result, strides and error type on the npu as on CPU.

    If `rtol` is 0, it must also leave the same bytes in its arguments.
    """
    expected, cpu_error, cpu_bytes = outcome(call, "cpu", args, kwargs)
    if isinstance(cpu_error, NotImplementedError) or "not implemented for" in str(cpu_error):
        return  # CPU lacks the dtype; the device may have it
    got, npu_error, npu_bytes = outcome(call, "npu", args, kwargs)
    assert type(npu_error) is type(cpu_error), f"CPU: {cpu_error!r}\nnpu: {npu_error!r}"
    if cpu_error is not None:
        return
    assert_same(got, expected, rtol, atol)
    if rtol == 0.0:
        for one, other in zip(npu_bytes, cpu_bytes):
            assert torch.equal(one, other), "the arguments' bytes differ afterwards"
