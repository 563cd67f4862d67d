"""Twins: the arguments of a case on CPU and on the device, each over storages of its own with equal bytes.

The device side uses only four primitives: allocate bytes, copy contiguous bytes both ways, ``view(dtype)`` and
``as_strided``. The bring-up gate tries exactly these before anything is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from conformance.corpus.model import (
    Arg,
    ComplexArg,
    DeviceArg,
    DtypeArg,
    EnumArg,
    GeneratorArg,
    Sample,
    TensorSlot,
)
from conformance.judging.host_memory import same_bytes
from conformance.judging.views import (
    all_work,
    can_fetch,
    can_make,
    can_view_as_dtype,
    fill,
    poison,
    torch_dtype,
    view,
)
from conformance.layouts import Placement
from conformance.ops import facts
from conformance.plan.case import Case

CPU = torch.device("cpu")

ValueOf = Callable[[TensorSlot, str], torch.Tensor]

# The most bytes of all templates together. If the next template does not fit, all others are dropped. A template
# larger than this is not kept.
TEMPLATE_BYTES = 64 << 20
TEMPLATE_COST = 1_000  # approximate bytes of a template besides its storage


@dataclass(slots=True, eq=False)
class Argument:
    """One tensor argument on one side. ``base`` is the whole storage as bytes, ``tensor`` the view that the op gets."""

    slot: TensorSlot
    placement: Placement
    base: torch.Tensor
    tensor: torch.Tensor
    before: torch.Tensor  # the storage's bytes as they were, on CPU; shared with other sides, not to be written
    room: torch.Tensor | None = None  # extra bytes behind the storage, which no argument covers; None if there are none
    room_before: torch.Tensor | None = None  # ``room`` as it was before the call

    @property
    def overrun(self) -> bool:
        """Whether a call wrote into the room behind the storage."""
        return self.room is not None and self.room_before is not None and not same_bytes(self.room, self.room_before)


@dataclass(slots=True, eq=False)
class Side:
    """The arguments of a case on one device, ready for the call."""

    device: torch.device
    arguments: list[Argument]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def generators(self) -> list[torch.Generator]:
        """The generators among the arguments."""
        return [a for a in (*self.args, *self.kwargs.values()) if isinstance(a, torch.Generator)]


@dataclass(slots=True, eq=False)
class _Template:
    """The template for the storages of one slot, placement and dtype. Holds the objects whose ids are its key."""

    slot: TensorSlot
    placement: Placement
    before: torch.Tensor  # the storage's bytes before a call
    dtype: torch.dtype
    is_flat: bool  # whether the argument is the whole storage, in one dimension
    is_dense: bool  # whether it is the whole storage, row-major

    def sent(self, to_host: bool) -> torch.Tensor:
        """Return the tensor to copy to a side: bytes, or elements if bytes cannot be viewed as another dtype."""
        return self.before if to_host or can_view_as_dtype() else self.before.view(self.dtype)

    def whole(self) -> torch.Tensor:
        """Return the argument that is the whole storage, as it is before a call, on CPU."""
        return self.before.view(self.dtype).view(self.placement.size)

    def over(self, base: torch.Tensor) -> torch.Tensor:
        """Return the argument, over the bytes ``base``."""
        return base.view(self.dtype) if self.is_flat and all_work() else view(base, self.dtype, self.placement)


def is_on_host(slot: TensorSlot, case: Case) -> bool:
    """Return whether a tensor argument is on the host, whatever the device."""
    return _stays_on_host(slot, facts(case.sample.overload).host)


def _stays_on_host(slot: TensorSlot, arguments: Collection[str]) -> bool:
    """Return whether an argument stays on the host. ``arguments``: those that the op has on the host."""
    return slot.on_host or slot.argument in arguments


class Sides(Protocol):
    """A maker of the sides of cases."""

    def side(self, case: Case, device: torch.device, dtypes: Callable[[str], str] | None = None) -> Side:
        """Return the arguments of a case on a device. ``dtypes`` gives the dtype to use in place of each."""


class Twins:
    """The maker of twin sides. Keeps the filled storage of each (slot, dtype, placement) as a template to clone."""

    def __init__(self, value_of: ValueOf) -> None:
        self._value_of = value_of
        self._templates: dict[tuple[int, int, str, str], _Template] = {}
        self._kept = 0  # bytes

    def storage(self, slot: TensorSlot, placement: Placement, dtype: str, wide: str = "") -> torch.Tensor:
        """Return the storage of a slot as it is before the call: CPU bytes, owned by the cache and not to be written.

        ``wide``: values of ``dtype``, held in this dtype instead (the float64 reference gets the very same numbers).
        """
        return self._template(slot, placement, dtype, wide or dtype).before

    def _template(self, slot: TensorSlot, placement: Placement, dtype: str, wide: str) -> _Template:
        key = (id(slot), id(placement), dtype, wide)
        found = self._templates.get(key)
        if found is None:
            found = self._make_template(slot, placement, dtype, wide)
            size = found.before.numel() + TEMPLATE_COST
            if self._kept + size > TEMPLATE_BYTES:
                self._templates.clear()
                self._kept = 0
            if size <= TEMPLATE_BYTES:
                self._templates[key] = found
                self._kept += size
        return found

    def _make_template(self, slot: TensorSlot, placement: Placement, dtype: str, wide: str) -> _Template:
        held_in = torch_dtype(wide)
        before = self.bytes_before(slot, placement, dtype, wide)
        is_whole = not placement.bit and before.numel() == placement.storage * held_in.itemsize
        is_flat = is_whole and placement.stride == (1,) and placement.size == (placement.storage,)
        is_dense = is_whole and placement.layout == "contiguous"
        return _Template(slot, placement, before, held_in, is_flat, is_dense)

    def bytes_before(self, slot: TensorSlot, placement: Placement, dtype: str, wide: str) -> torch.Tensor:
        """Return the bytes of a slot's storage before a call: its values of ``dtype``, held in ``wide``."""
        value = self._value_of(slot, dtype).to(torch_dtype(wide)) if slot.pool else None
        if value is not None and placement.layout == "contiguous" and placement.storage == value.numel():
            return value.reshape(-1).view(torch.uint8)
        base = poison(placement.storage * torch_dtype(wide).itemsize, wide)
        if value is not None:
            fill(base, placement, value)
        return base

    def side(self, case: Case, device: torch.device, dtypes: Callable[[str], str] | None = None) -> Side:
        """Return fresh arguments of ``case`` on ``device``.

        ``dtypes`` maps the dtype of each slot to the one to use (the float64 reference widens with it); None keeps it.
        """
        own, on_host = case.cell.dtype, facts(case.sample.overload).host
        shared = {index: (earlier, distance) for index, earlier, distance in case.shared}
        arguments: list[Argument] = []
        for slot, placement in zip(case.sample.tensors, case.placements, strict=True):
            if slot.same_as:
                made = _same(slot, arguments[_index_of(case.sample, slot.same_as)])
            elif slot.index in shared:
                earlier, distance = shared[slot.index]
                made = _inside(slot, placement, arguments[earlier], distance)
            else:
                dtype = slot.dtype or own
                template = self._template(slot, placement, dtype, dtypes(dtype) if dtypes else dtype)
                stays = _stays_on_host(slot, on_host)
                made = self._argument(template, CPU) if stays else self._on_device(template, device)
            arguments.append(made)
        return side_of(case, device, arguments, dtypes)

    def _on_device(self, template: _Template, device: torch.device) -> Argument:
        """Return an argument on a device. Raises DeviceLacks if the device holds bytes, but nothing of this dtype."""
        if device == CPU:
            return self._argument(template, device)
        if not can_make(template.placement):
            raise DeviceLacks("channels innermost behind an offset") from LookupError("as_strided does not work")
        try:
            return self._argument(template, device)
        except Exception as e:
            if lacks_dtype(template.dtype, device, template.placement.size):
                raise DeviceLacks(f"tensors of {str(template.dtype).removeprefix('torch.')}") from e
            raise

    def _argument(self, template: _Template, device: torch.device) -> Argument:
        """Return an argument on a device.

        A device without as_strided may not resize a view, or write it in place with another size. So an argument that
        is a whole storage is sent there as a tensor of its own, and the storage is a view over this tensor. CPU's
        argument is then no view, either.
        """
        is_own = template.is_dense and not can_fetch()
        if is_own and device != CPU:
            tensor = self.base(template.slot, template.whole(), device)
            base = tensor.view(-1)
        else:
            base = self.base(template.slot, template.sent(device == CPU), device)
            tensor = template.over(base).data if is_own else template.over(base)
        return Argument(template.slot, template.placement, base, tensor, template.before)

    def base(self, slot: TensorSlot, template: torch.Tensor, device: torch.device) -> torch.Tensor:  # noqa: ARG002
        """Return a slot's storage with the template's bytes. A subclass may return an existing storage."""
        return template.clone() if device == CPU else template.to(device, copy=True)


def _same(slot: TensorSlot, other: Argument) -> Argument:
    """Return an argument that is the same tensor as an earlier one."""
    return Argument(slot, other.placement, other.base, other.tensor, other.before)


def _inside(slot: TensorSlot, placement: Placement, other: Argument, distance: int) -> Argument:
    """Return an argument that begins ``distance`` elements into the storage of an earlier one."""
    if distance == 0 and placement == other.placement:
        return _same(slot, other)
    moved = other.tensor.as_strided(placement.size, placement.stride, distance)
    return Argument(slot, placement, other.base, moved, other.before)


def side_of(
    case: Case, device: torch.device, arguments: list[Argument], dtypes: Callable[[str], str] | None = None
) -> Side:
    """Return the side whose tensors are those of ``arguments``, one for each of the sample's."""
    fit = _Fitter(case, [a.tensor for a in arguments], device, dtypes)
    args = tuple([fit(a) for a in case.sample.args])
    return Side(device, arguments, args, {name: fit(a) for name, a in case.sample.kwargs})


def _index_of(sample: Sample, name: str) -> int:
    return next(s.index for s in sample.tensors if s.name == name)


class _Fitter:
    """A converter of a sample's argument tree to the op's arguments on one side."""

    __slots__ = ("_case", "_device", "_dtypes", "_tensors")

    def __init__(
        self, case: Case, tensors: list[torch.Tensor], device: torch.device, dtypes: Callable[[str], str] | None
    ) -> None:
        self._case = case
        self._tensors = tensors
        self._device = device
        self._dtypes = dtypes

    def __call__(self, arg: Arg) -> Any:
        if isinstance(arg, TensorSlot):
            return self._tensors[arg.index]
        if type(arg) in _PLAIN:
            return arg
        if isinstance(arg, tuple):
            return [self(a) for a in arg]
        if isinstance(arg, DtypeArg):
            dtype = arg.name or self._case.cell.dtype
            return torch_dtype(self._dtypes(dtype) if self._dtypes else dtype)
        if isinstance(arg, DeviceArg):
            return torch.device(arg.name) if arg.name else self._device
        if isinstance(arg, EnumArg):
            return getattr(torch, arg.name)
        if isinstance(arg, ComplexArg):
            return complex(arg.real, arg.imag)
        assert isinstance(arg, GeneratorArg)
        return _generator(self._device).manual_seed(arg.seed)


class DeviceLacks(Exception):
    """The error that the device lacks something that a case's arguments need, such as generators.

    ``what`` names this in the plural; ``__cause__`` is the error that torch raised.
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def _generator(device: torch.device) -> torch.Generator:
    try:
        return torch.Generator(device)
    except RuntimeError as e:
        raise DeviceLacks("generators") from e


def lacks_dtype(dtype: torch.dtype, device: torch.device, size: tuple[int, ...] = (2,)) -> bool:
    """Return whether the device holds tensors of bytes of a size, but none of this dtype."""
    return not _holds(dtype, device, size) and _holds(torch.uint8, device, size)


def _holds(dtype: torch.dtype, device: torch.device, size: tuple[int, ...]) -> bool:
    """Return whether a tensor of a dtype and size can be sent to the device and back."""
    try:
        torch.full(size, 2.0).to(dtype).to(device).cpu()
    except Exception:  # noqa: BLE001  # whatever a backend raises
        return False
    return True


_PLAIN = frozenset({type(None), bool, int, float, str})
