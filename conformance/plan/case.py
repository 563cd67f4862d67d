"""A case: a sample's call with its arguments laid out in memory."""

from __future__ import annotations

from dataclasses import dataclass

from conformance import layouts
from conformance.corpus.model import Sample, TensorSlot
from conformance.layouts import Placement
from conformance.vocabulary import CaseId, CellId


@dataclass(frozen=True, slots=True)
class Case:
    """A cell × one sample × the arguments that have the layout: the smallest thing that runs and can be repeated.

    ``placements`` has one entry for each slot of the sample. ``shared`` lists the slots in an earlier slot's storage.
    """

    cell: CellId
    sample: Sample
    variant: str  # the argument the layout is applied to, "all", or "" for contiguous
    placements: tuple[Placement, ...]
    shared: tuple[tuple[int, int, int], ...] = ()  # (slot, earlier slot, offset in elements)
    before: tuple[Case, ...] = ()  # cases that run on the device first, and are not judged

    @property
    def id(self) -> str:
        """The :class:`CaseId` as text. It does not depend on any order."""
        return str(CaseId(self.cell, self.sample.name, self.variant))


def slot_dtype(slot: TensorSlot, dtype: str) -> str:
    """Return the dtype of a slot in a cell of ``dtype``."""
    return slot.dtype or dtype


def movable(sample: Sample) -> list[TensorSlot]:
    """Return the slots that a layout may move: all but those that are the same tensor as an earlier one."""
    return [s for s in sample.tensors if not s.same_as]


def contiguous(slot: TensorSlot) -> Placement:
    """Return the contiguous placement of a slot."""
    placement = layouts.place("contiguous", slot.shape)
    assert placement is not None  # every shape can be contiguous
    return placement


def placed(slot: TensorSlot, layout: str, dtype: str) -> Placement | None:
    """Return the placement of a slot in a layout; None if its shape or its dtype cannot have it."""
    if not layouts.carries(layout, slot_dtype(slot, dtype)):
        return None
    return layouts.place(layout, slot.shape, slot.written)


def put(sample: Sample, moved: dict[int, Placement]) -> tuple[Placement, ...]:
    """Return a placement for each slot: its placement in ``moved``, by index, or the contiguous one."""
    return tuple(moved.get(s.index) or contiguous(s) for s in sample.tensors)


def plainly(cell: CellId, dtype: str, sample: Sample) -> Case:
    """Return a contiguous case of a sample, in the contiguous cell of the same overload in ``dtype``."""
    return Case(CellId(cell.family, cell.overload, dtype, "contiguous"), sample, "", put(sample, {}))
