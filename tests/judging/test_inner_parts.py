"""Arguments that are the middle of larger matrices: a defect that only their offset shows is found."""

from __future__ import annotations

import torch

from conformance.corpus.model import DeviceArg
from conformance.plan.case import Case
from conformance.plan.cases import cases
from conformance.vocabulary import CellId
from tests.samples import sample, slot
from tests.two_sides import judge


def cases_of(shape: tuple[int, ...]) -> list[Case]:
    one = sample("hand", slot(0, "self", shape), DeviceArg())
    return cases(CellId("misc", "hand", "float32", "offset_gap"), [one])


def from_first_column(x: torch.Tensor) -> torch.Tensor:
    """Negate ``x``, but read it from the first column of the larger matrix if it begins below the first row."""
    offset, row = x.storage_offset(), x.stride(-2)
    return -x.as_strided(x.shape, x.stride(), offset - offset % row if offset >= row else offset)


def test_an_op_that_drops_the_column_of_an_offset_is_found_by_the_middle_of_a_matrix_alone() -> None:
    found = cases_of((4, 5))
    assert [case.variant for case in found] == ["self", "inner"]
    assert [bool(judge(torch.neg, from_first_column, case).mismatches) for case in found] == [False, True]


def test_a_right_op_passes_for_the_middle_of_matrices() -> None:
    assert not any(judge(torch.neg, torch.neg, case).mismatches for case in cases_of((2, 4, 5)))


def test_a_vector_has_no_middle_of_a_matrix() -> None:
    assert [case.variant for case in cases_of((5,))] == ["self"]
