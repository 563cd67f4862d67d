"""Tensors as bits: equality, and NaN, infinities and subnormal numbers by their bits. For tensors on CPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch

# An integer dtype of the same width, to compare bits (NaN payloads and the sign of zero included).
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

# The bit that is set in a quiet NaN: the first bit of the fraction.
_QUIET = {torch.float64: 1 << 51, torch.float32: 1 << 22, torch.float16: 1 << 9, torch.bfloat16: 1 << 6}


def real(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor without conj and neg bits, and complex as pairs of reals in a last dimension of 2."""
    if tensor.is_conj():
        tensor = tensor.resolve_conj()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    return torch.view_as_real(tensor) if tensor.dtype.is_complex else tensor


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor's elements as integers of the same width, complex as pairs."""
    tensor = real(tensor)
    return tensor.view(_BITS[tensor.element_size()])


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two CPU tensors of one dtype and shape have equal bits."""
    return bool(torch.equal(bits(a), bits(b)))


def same_exactly(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return elementwise whether bits are equal, or both are NaN (torch promises no payload)."""
    equal = bits(a) == bits(b)
    if a.dtype.is_complex:
        both = torch.isnan(real(a)) & torch.isnan(real(b))
        return (equal | both).all(-1)
    if a.dtype.is_floating_point and a.element_size() > 1:
        return equal | (torch.isnan(a) & torch.isnan(b))
    return equal


def make_quiet(buffer: torch.Tensor, dtype: torch.dtype) -> bool:
    """Make the signalling NaN of ``dtype`` quiet in a buffer of bytes. Return whether there were any.

    Return False for a dtype that is complex, integral or of 8 bits, and leave the buffer as it is.
    """
    if dtype not in _QUIET:
        return False
    numbers = buffer.view(dtype)
    signalling = numbers.isnan() & (bits(numbers) & _QUIET[dtype] == 0)
    bits(numbers)[signalling] |= _QUIET[dtype]
    return bool(signalling.any())


def make_finite(buffer: torch.Tensor, dtype: torch.dtype) -> None:
    """Replace infinities and NaN of a floating or complex ``dtype`` above 8 bits by 1 in a buffer of bytes."""
    if (dtype.is_floating_point or dtype.is_complex) and dtype.itemsize > 1:
        numbers = buffer.view(dtype.to_real())
        numbers[~numbers.isfinite()] = 1


def flush(buffer: torch.Tensor, dtype: torch.dtype) -> bool:
    """Replace the subnormal numbers of ``dtype`` in a buffer by zeros of their sign. Return whether there were any."""
    if not (dtype.is_floating_point or dtype.is_complex) or dtype.itemsize == 1:
        return False
    numbers = real(buffer.view(dtype))
    small = (numbers != 0) & (numbers.abs() < torch.finfo(dtype).tiny)
    numbers[small] *= 0
    return bool(small.any())


def altered(expected: torch.Tensor, actual: torch.Tensor, sources: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return elementwise whether CPU copied a signalling NaN from one of ``sources``, and the device has another NaN.

    The device's NaN is quiet then, or none of the sources has it. Arithmetic makes a signalling NaN quiet, so CPU
    moved this NaN. All elements are False for a dtype that is complex, integral or of 8 bits.
    """
    none = torch.zeros(expected.shape, dtype=torch.bool)
    if expected.dtype.is_complex or expected.element_size() == 1 or not expected.dtype.is_floating_point:
        return none
    ours, theirs = bits(actual), bits(expected)
    quiet = _QUIET[expected.dtype]
    moved = expected.isnan() & actual.isnan() & (ours != theirs) & ((theirs & quiet) == 0)
    if not bool(moved.any()):
        return none
    known = torch.cat([bits(source).flatten() for source in sources if source.dtype is expected.dtype] or [none])
    return moved & torch.isin(theirs, known) & ((ours & quiet != 0) | ~torch.isin(ours, known))
