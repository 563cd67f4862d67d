"""CPU kernels that give a result of the wrong size: torch's own prediction decides, and excuses no other sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformance.corpus.model import DeviceArg
from conformance.judging.judge import CaseResult
from conformance.judging.reference import PREDICTED
from conformance.plan.case import Case
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Check
from tests.samples import sample, slot
from tests.two_sides import judge

addmv = torch.ops.aten.addmv.default

# A run ignores the warnings of ops too. torch 2.15 warns if CPU's kernel changes the size of the result.
pytestmark = pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")

# The numbers of rows and columns of matrices without elements.
EMPTY = ((0, 4), (5, 0))


def case_of(rows: int, columns: int) -> Case:
    """Return a case that adds a matrix-vector product to a 0-dim tensor, which CPU returns for an empty matrix."""
    slots = slot(0, "self", ()), slot(1, "mat", (rows, columns)), slot(2, "vec", (columns,))
    given = sample("addmv", *slots, DeviceArg())
    return cases(CellId("matmul", "addmv", "float32", "contiguous"), [given])[0]


def expanded(self: torch.Tensor, mat: torch.Tensor, vec: torch.Tensor) -> torch.Tensor:
    """Return ``addmv`` by its definition: one element for each row of the matrix."""
    return self.expand(mat.shape[0]) + mat.mv(vec)


def early(self: torch.Tensor, mat: torch.Tensor, vec: torch.Tensor) -> torch.Tensor:
    """Return ``addmv``, but a 0-dim tensor for an empty matrix, on Meta as on CPU."""
    return expanded(self, mat, vec) if mat.numel() else self.clone()


def judged(device: Callable[..., torch.Tensor], rows: int, columns: int) -> CaseResult:
    return judge(addmv, device, case_of(rows, columns))


def test_a_device_that_gives_the_predicted_sizes_is_not_wrong() -> None:
    found = judged(expanded, 5, 0)
    assert (found.mismatches, found.skipped) == ([], PREDICTED)


@pytest.mark.parametrize("sizes", EMPTY)
def test_other_sizes_are_a_failure_where_torch_predicts_what_cpu_gives(sizes: tuple[int, int]) -> None:
    found = judge(early, expanded, case_of(*sizes))
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.SHAPE])


@pytest.mark.parametrize("sizes", EMPTY)
def test_other_sizes_than_the_predicted_ones_are_a_failure(sizes: tuple[int, int]) -> None:
    found = judged(lambda *given: expanded(*given)[None], *sizes)
    assert Check.SHAPE in {m.check for m in found.mismatches}


def test_wrong_sizes_where_cpu_gives_the_predicted_ones_are_a_failure() -> None:
    found = judged(lambda *given: expanded(*given)[:2], 5, 3)
    assert Check.SHAPE in {m.check for m in found.mismatches}
    assert judged(expanded, 5, 3).mismatches == []
