"""Which strides a device's results may have in place of CPU's, and which not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import torch

from conformance.judging.judge import CaseResult
from conformance.judging.other_strides import DENSE_STRIDES
from conformance.ops.family import OpFacts, Tolerance
from conformance.vocabulary import Check, Route
from tests.two_sides import case_of, judge

COLUMN_MAJOR, ROW_MAJOR = (1, 2), (3, 1)


def placed(values: torch.Tensor, stride: tuple[int, ...]) -> torch.Tensor:
    """A new tensor of the given strides."""
    return torch.empty_strided(values.shape, stride, device=values.device).copy_(values)


def is_dense(x: torch.Tensor) -> bool:
    return bool(x.untyped_storage().nbytes() == x.numel() * x.element_size())


class TestPathOfDenseArguments:
    """CPU takes another path for arguments with gaps: other strides, and values that are rounded otherwise."""

    gaps = case_of("offset_gap")
    facts = OpFacts("misc", tolerance=Tolerance(4.0))
    rounded = 1 + torch.finfo(torch.float32).eps

    def cpu(self, x: torch.Tensor) -> torch.Tensor:
        return placed(x * self.rounded, ROW_MAJOR) if is_dense(x) else placed(x, COLUMN_MAJOR)

    def judged(self, device: Callable[[torch.Tensor], torch.Tensor]) -> CaseResult:
        return judge(self.cpu, device, self.gaps, self.facts, Route.FALLBACK)

    def test_a_device_that_gives_its_strides_and_values_is_not_wrong(self) -> None:
        found = self.judged(lambda x: placed(x * self.rounded, ROW_MAJOR))
        assert (found.mismatches, found.skipped) == ([], DENSE_STRIDES)

    def test_a_device_that_gives_its_strides_and_other_values_is_wrong(self) -> None:
        (mismatch,) = self.judged(lambda x: placed(x * self.rounded**2, ROW_MAJOR)).mismatches
        assert mismatch.check is Check.STRIDE

    def test_a_device_that_gives_its_values_and_third_strides_is_wrong(self) -> None:
        (mismatch,) = self.judged(lambda x: placed(x * self.rounded, (4, 1))).mismatches
        assert mismatch.check is Check.STRIDE

    def test_a_device_that_is_right_the_second_time_is_wrong(self) -> None:
        calls = count()

        def right_at_last(x: torch.Tensor) -> torch.Tensor:
            return placed(x, ROW_MAJOR if next(calls) else COLUMN_MAJOR)

        def cpu(x: torch.Tensor) -> torch.Tensor:
            return placed(x, COLUMN_MAJOR if x.is_meta else ROW_MAJOR)

        (mismatch,) = judge(cpu, right_at_last, self.gaps).mismatches
        assert mismatch.check is Check.STRIDE

    def test_it_excuses_nothing_if_its_values_are_others_than_rounding_explains(self) -> None:
        def cpu(x: torch.Tensor) -> torch.Tensor:
            return placed(x + 0.01, ROW_MAJOR) if is_dense(x) else placed(x, COLUMN_MAJOR)

        (mismatch,) = judge(
            cpu, lambda x: placed(x + 0.01, ROW_MAJOR), self.gaps, self.facts, Route.FALLBACK
        ).mismatches
        assert mismatch.check is Check.STRIDE
