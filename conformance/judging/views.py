"""Storages as bytes, and tensors as views over them, on CPU and on the device.

On the device, these functions use the primitives of the bring-up gate alone, without those that are broken.
"""

from __future__ import annotations

import torch

from conformance.layouts import BROADCAST, FILLED, Placement
from conformance.torch_versions import has_no_memory, neg_view
from conformance.vocabulary import DTYPES

# All bits set is NaN in every floating dtype and -1 in every integer, so a value that was read outside of an argument
# is visible in the result.
POISON = 0xFF
# In a bool storage only 0 and 1 are legal; an irregular run of both, so that neither a constant nor a shift matches it.
POISON_BOOL = (1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0)

_DTYPES = {name: dtype for name in DTYPES if isinstance(dtype := getattr(torch, name, None), torch.dtype)}


def poison(nbytes: int, dtype: str) -> torch.Tensor:
    """Return ``nbytes`` bytes that no defined value of ``dtype`` equals (for bool: an irregular run of both values)."""
    if dtype == "bool":
        run = torch.tensor(POISON_BOOL, dtype=torch.uint8)
        return run.repeat(nbytes // len(POISON_BOOL) + 1)[:nbytes].clone()
    return torch.full((nbytes,), POISON, dtype=torch.uint8)


def torch_dtype(name: str) -> torch.dtype:
    """Return the torch dtype called ``name``. Raises LookupError if this torch has no such dtype."""
    found = _DTYPES.get(name)
    if found is None:
        raise LookupError(f"torch {torch.__version__} has no dtype {name!r}")
    return found


def _shaped(value: torch.Tensor, placement: Placement) -> torch.Tensor:
    """Return the part of a sample's value that a placement with another size keeps."""
    if placement.layout == "zero_dim":
        return value.reshape(-1)[0]
    if placement.layout == "zero_size":
        return value[:0]
    if placement.layout == BROADCAST:
        return value[tuple(slice(n) for n in placement.size)]
    return value


def fill(base: torch.Tensor, placement: Placement, value: torch.Tensor) -> None:
    """Write ``value`` (contiguous, on CPU) where ``placement`` puts it into the storage ``base`` (bytes, on CPU)."""
    typed = base.view(value.dtype)
    if placement.bit == "conj":
        value = _flip_signs(value, (1,))
    elif placement.bit == "neg":
        value = _flip_signs(value, (0, 1))
    if placement.layout in ("expanded", "overlapping"):
        # Several indices share an element, so the storage is filled in order and the view repeats it.
        typed.copy_(value.reshape(-1)[: placement.storage])
        return
    if placement.layout == FILLED:
        typed.copy_(value.reshape(-1).repeat(-(-placement.storage // value.numel()))[: placement.storage])
    shaped = _shaped(value, placement)
    for dim, step in enumerate(placement.stride):
        if step == 0:
            shaped = shaped.narrow(dim, 0, 1)  # the view repeats these
    typed.as_strided(shaped.shape, placement.stride, placement.offset).copy_(shaped)


def _flip_signs(value: torch.Tensor, parts: tuple[int, ...]) -> torch.Tensor:
    """Return the negated tensor, zeros included. torch's own negation of complex numbers leaves some zeros as they are.

    Of a complex value, only the ``parts`` are negated: 0 is the real part, 1 the imaginary part.
    """
    if not value.dtype.is_complex:
        return -value
    flipped = torch.view_as_real(value).clone()
    for part in parts:
        flipped[..., part] = -flipped[..., part]
    return torch.view_as_complex(flipped)


# Layouts whose tensors can be made without as_strided: by view, permute and expand.
MADE_BY_OPS = frozenset({
    "contiguous", "transposed", "channels_last", "expanded", "zero_size", "zero_dim", "conj", "neg", BROADCAST,
})  # fmt: skip

# The primitives that do not work on the device of this process, see bringup.py.
_broken: frozenset[str] = frozenset()


def do_without(primitives: frozenset[str]) -> None:
    """Stop using these primitives on the device in this process."""
    global _broken  # noqa: PLW0603  # of the process, as the device is
    _broken = primitives


def all_work() -> bool:
    """Return whether all primitives work on the device."""
    return not _broken


def known_dtypes() -> tuple[str, ...]:
    """Return the names of the dtypes that this torch has."""
    return tuple(_DTYPES)


def copies_of(dtype: str) -> str:
    """Return the name of the primitive that copies elements of a dtype to the device and back."""
    return f"copy_{dtype}"


def can_copy(dtype: torch.dtype) -> bool:
    """Return whether elements of a dtype come back unchanged from the device."""
    return not _broken or copies_of(str(dtype).removeprefix("torch.")) not in _broken


def can_view_as_dtype() -> bool:
    """Return whether the device can view bytes as another dtype."""
    return "view_as_dtype" not in _broken


def can_make(placement: Placement) -> bool:
    """Return whether the device can make a placement: one of ``channels_last`` with an offset needs as_strided."""
    return "as_strided" not in _broken or placement.layout != "channels_last" or not placement.offset


def by_ops(flat: torch.Tensor, placement: Placement) -> torch.Tensor:
    """Return the tensor that ``placement`` describes over all of ``flat``, made by view, permute and expand."""
    axes = [d for d in range(len(placement.size)) if placement.stride[d] or placement.size[d] == 1]
    ordered = sorted(axes, key=lambda d: (-placement.stride[d], d))
    if placement.layout == "expanded":
        return flat.view([placement.size[d] if d in axes else 1 for d in range(len(placement.size))]).expand(
            placement.size
        )
    dense = flat.view([placement.size[d] for d in ordered])
    return dense if ordered == axes else dense.permute([ordered.index(d) for d in axes])


def view(base: torch.Tensor, dtype: torch.dtype, placement: Placement) -> torch.Tensor:
    """Return the tensor that ``placement`` describes over the bytes ``base``."""
    flat = base if base.dtype == dtype else base.view(dtype)
    if "as_strided" in _broken and base.device.type != "cpu":
        tensor = by_ops(flat, placement)
    else:
        tensor = flat.as_strided(placement.size, placement.stride, placement.offset)
    if placement.bit == "conj":
        return torch.conj(tensor)
    if placement.bit == "neg":
        return neg_view(tensor)
    return tensor


class Unreadable(Exception):
    """The error that the device raised when memory was read back; ``__cause__`` is the device's error."""


def _read(tensor: torch.Tensor) -> torch.Tensor:
    """Return a device tensor on the CPU. Raises Unreadable."""
    try:
        return tensor.cpu()
    except RuntimeError as e:
        raise Unreadable from e


def device_bytes(base: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Return a storage's bytes on the CPU, by the contiguous byte copy that the bring-up gate has tried.

    ``before``: the bytes of the storage before the call. If ``base`` is only a view over a tensor that was resized,
    they take the place of the bytes that ``base`` does not reach. Raises Unreadable.
    """
    if base.is_cpu:
        return base
    after = _read(base)
    if after.dtype != torch.uint8:  # of a device that cannot view bytes as another dtype
        after = after.view(torch.uint8)
    if after.numel() == before.numel():
        return after
    same = min(after.numel(), before.numel())
    return torch.cat((after[:same], before[same:]))


def can_fetch() -> bool:
    """Return whether the device makes the view over a whole storage that :func:`fetch` needs."""
    return "as_strided" not in _broken


def fetch(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a device tensor's whole storage, on CPU, without bytes behind the last whole element.

    Raises Unreadable.
    """
    if tensor.is_conj():
        tensor = torch.conj(tensor)
    if tensor.is_neg():
        tensor = neg_view(tensor)
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    flat = tensor.as_strided((count,), (1,), 0)
    return _read(flat.view(torch.uint8)) if can_view_as_dtype() else _read(flat).view(torch.uint8)


def over(base: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Return a view over the bytes ``base``, placed and with bits as ``tensor`` is over its own storage."""
    moved = base.view(tensor.dtype).as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    moved = torch.conj(moved) if tensor.is_conj() else moved
    return neg_view(moved) if tensor.is_neg() else moved


def host_copy(tensor: torch.Tensor) -> torch.Tensor:
    """Return a device tensor on the CPU, with its stride, offset and bits, without the device's strided copy.

    The storage is copied as bytes and viewed again on CPU, so that a wrong strided copy is not blamed on another op.
    Raises Unreadable.
    """
    if has_no_memory(tensor):
        return torch.zeros(tensor.shape, dtype=tensor.dtype)
    if tensor.is_cpu:
        return tensor
    return over(fetch(tensor), tensor) if can_fetch() else _read(tensor)


def device_of_memory(tensor: torch.Tensor) -> torch.device | None:
    """Return the device on which a tensor's memory is; None if torch does not give it."""
    try:
        return tensor.untyped_storage().device
    except (RuntimeError, NotImplementedError):
        return None
