"""A device's support for subnormal numbers: its adapter's answer, or a test by copies, products and sums."""

from __future__ import annotations

import math

import torch

from conformance.backends import Capabilities
from conformance.judging import bits, views

# The dtypes that have subnormal numbers. float8_e8m0fnu, of powers of two, has none.
_DTYPES = {
    name: dtype
    for name in views.known_dtypes()
    if (dtype := views.torch_dtype(name)).is_floating_point and torch.finfo(dtype).eps < 1
}


def asked(backend: Capabilities) -> tuple[str, ...]:
    """Return the dtypes for which the device is tested: none if its adapter answers."""
    return tuple(_DTYPES) if backend.keeps_subnormals is None else ()


def kept(backend: Capabilities) -> frozenset[torch.dtype]:
    """Return the dtypes whose subnormal numbers kernels keep. Empty without an answer of adapter or test."""
    if backend.keeps_subnormals is not None:
        return frozenset(_DTYPES.values() if backend.keeps_subnormals else ())
    return frozenset(_DTYPES[name] for name in backend.subnormals)


def keeps(backend: Capabilities, dtype: str) -> bool:
    """Test whether a strided copy, a product with 1 and a sum on the device keep the subnormal numbers of a dtype.

    False if the device lacks one of these ops. Run this in a process that may crash.
    """
    numbers, total = _numbers(_DTYPES[dtype])
    try:
        sent = numbers.to(backend.device)
        spread = torch.stack((bits.bits(numbers),) * 2, dim=1).view(numbers.dtype).to(backend.device)[:, 0]
        one = torch.ones_like(numbers).to(backend.device)
        found = [back.cpu() for back in (sent, spread.contiguous(), sent * one, sent.sum())]
    except Exception:  # noqa: BLE001  # whatever a device without the op or the dtype raises
        return False
    expected = (numbers, numbers, numbers, total)
    return all(f.dtype == e.dtype and bits.same_bits(f, e) for f, e in zip(found, expected, strict=True))


def _numbers(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return subnormal numbers of a dtype, from both ends of their range, and their sum.

    They are multiples of the smallest one, made from the bits of integers, because CPU's arithmetic is not trusted.
    """
    half = 2 ** (round(-math.log2(torch.finfo(dtype).eps)) - 1)
    whole = bits.bits(torch.empty(0, dtype=dtype)).dtype
    return torch.tensor([1, 2, half], dtype=whole).view(dtype), torch.tensor(half + 3, dtype=whole).view(dtype)


def real(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of the parts of a complex dtype, any other dtype as it is."""
    return dtype.to_real() if dtype.is_complex else dtype
