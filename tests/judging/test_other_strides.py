"""The strides that a device's results may and may not have in place of CPU's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import torch

from conformance.corpus.model import DeviceArg
from conformance.judging.judge import CaseResult
from conformance.judging.other_strides import DENSE_STRIDES, PREDICTED_STRIDES
from conformance.judging.other_values import LAYOUT
from conformance.ops.family import OpFacts, Tolerance
from conformance.plan.case import Case
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Check, Route
from tests.samples import sample, slot
from tests.two_sides import case_of, judge

COLUMN_MAJOR, ROW_MAJOR = (1, 2), (3, 1)


def placed(values: torch.Tensor, stride: tuple[int, ...]) -> torch.Tensor:
    """Return a new tensor with the given strides."""
    return torch.empty_strided(values.shape, stride, device=values.device).copy_(values)


def is_dense(x: torch.Tensor) -> bool:
    return bool(x.untyped_storage().nbytes() == x.numel() * x.element_size())


class TestPathOfDenseArguments:
    """A CPU that takes another path for arguments with gaps, with other strides and other rounding."""

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

    def test_it_excuses_values_alone_where_the_strides_are_wrong_for_another_reason(self) -> None:
        def cpu(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return placed(x, COLUMN_MAJOR), x.sum() * (self.rounded if is_dense(x) else 1)

        def device(value: float) -> Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
            return lambda x: (placed(x, ROW_MAJOR), x.sum() * value)

        found = judge(cpu, device(self.rounded), self.gaps, self.facts, Route.FALLBACK)
        assert [m.check for m in found.mismatches] == [Check.STRIDE]
        found = judge(cpu, device(2), self.gaps, self.facts, Route.FALLBACK)
        assert [m.check for m in found.mismatches] == [Check.STRIDE, Check.VALUE]


def with_out(layout: str = "contiguous") -> Case:
    """Return a case of ``op(self, out, device)`` with an ``out=`` argument that has to be resized."""
    out = slot(1, "out", (0,), written=True)
    given = sample("hand", slot(0, "self", (2, 3)), replace(out, pool=""), DeviceArg())
    return cases(CellId("misc", "hand", "float32", layout), [given])[0]


def resized(x: torch.Tensor, out: torch.Tensor, stride: tuple[int, ...]) -> torch.Tensor:
    """Resize ``out`` to the shape of ``x`` and the given strides, copy ``x`` to it, and return it."""
    return out.resize_(8).as_strided_(x.shape, stride).copy_(x)


def void(_: torch.Tensor) -> None:
    """Return nothing, as an op without results does."""


class TestPredicted:
    """A CPU that makes a resized ``out=`` argument column-major, where Meta predicts row-major."""

    @staticmethod
    def cpu(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return resized(x, out, ROW_MAJOR if x.is_meta else COLUMN_MAJOR)

    def test_a_device_that_gives_the_strides_of_meta_is_not_wrong(self) -> None:
        found = judge(self.cpu, lambda x, out: resized(x, out, ROW_MAJOR), with_out())
        assert (found.mismatches, found.skipped) == ([], PREDICTED_STRIDES)

    def test_it_may_be_an_argument_that_the_op_does_not_return(self) -> None:
        def cpu(x: torch.Tensor, out: torch.Tensor) -> None:
            self.cpu(x, out)

        def device(stride: tuple[int, ...]) -> Callable[[torch.Tensor, torch.Tensor], None]:
            return lambda x, out: void(resized(x, out, stride))

        assert judge(cpu, device(ROW_MAJOR), with_out()).skipped == PREDICTED_STRIDES
        assert judge(cpu, device((4, 1)), with_out()).mismatches

    def test_a_device_that_gives_third_strides_is_wrong(self) -> None:
        found = judge(self.cpu, lambda x, out: resized(x, out, (4, 1)), with_out())
        assert (found.skipped, {m.check for m in found.mismatches}) == ("", {Check.STRIDE})

    def test_a_device_that_gives_other_values_is_wrong(self) -> None:
        found = judge(self.cpu, lambda x, out: resized(x + 1, out, ROW_MAJOR), with_out())
        assert (found.skipped, {m.check for m in found.mismatches}) == ("", {Check.STRIDE})

    def test_other_strides_are_wrong_if_meta_predicts_those_of_cpu(self) -> None:
        def cpu(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
            return resized(x, out, COLUMN_MAJOR)

        found = judge(cpu, lambda x, out: resized(x, out, ROW_MAJOR), with_out())
        assert (found.skipped, {m.check for m in found.mismatches}) == ("", {Check.STRIDE})

    def test_the_values_may_be_those_of_cpu_for_dense_arguments(self) -> None:
        def cpu(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
            return self.cpu(x + (0 if x.is_contiguous() else 1), out)

        def device(added: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
            return lambda x, out: resized(x + added, out, ROW_MAJOR)

        gaps = with_out("offset_gap")
        assert judge(cpu, device(0), gaps).skipped == LAYOUT
        assert judge(cpu, device(2), gaps).mismatches

    def test_meta_predicts_them_for_arguments_that_lie_as_cpu_s_do(self) -> None:
        def cpu(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
            return resized(x, out, ROW_MAJOR if is_dense(x) else COLUMN_MAJOR)

        found = judge(cpu, lambda x, out: resized(x, out, ROW_MAJOR), with_out("offset_gap"))
        assert (found.skipped, {m.check for m in found.mismatches}) == ("", {Check.STRIDE})

    def test_a_new_result_has_the_strides_of_cpu(self) -> None:
        def beside(of_cpu: bool) -> Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
            def op(x: torch.Tensor, out: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                stride = ROW_MAJOR if x.is_meta or not of_cpu else COLUMN_MAJOR
                return placed(x, stride), resized(x, out, stride)

            return op

        found = judge(beside(True), beside(False), with_out())
        assert (found.skipped, {m.check for m in found.mismatches}) == ("", {Check.STRIDE})

    def test_an_argument_that_keeps_its_size_has_the_strides_of_cpu_or_its_own(self) -> None:
        def turned(x: torch.Tensor) -> torch.Tensor:
            return x.as_strided_((2, 3), ROW_MAJOR if x.is_meta else COLUMN_MAJOR).fill_(1)

        def row_major(x: torch.Tensor) -> torch.Tensor:
            return x.as_strided_((2, 3), ROW_MAJOR).fill_(1)

        found = judge(turned, row_major, case_of(written=True))
        assert (found.skipped, {m.check for m in found.mismatches}) == ("", {Check.STRIDE})
        found = judge(turned, row_major, case_of("transposed", written=True, defined=False))
        assert (found.skipped, {m.check for m in found.mismatches}) == ("", {Check.STRIDE})


def permuted_unless_dense(x: torch.Tensor) -> torch.Tensor:
    """Return a copy of ``x``, column-major if ``x`` has gaps."""
    dense = x.untyped_storage().nbytes() == x.numel() * x.element_size()
    return x.clone(memory_format=torch.contiguous_format) if dense else torch.empty_strided((2, 3), (1, 2)).copy_(x)


def row_major(x: torch.Tensor) -> torch.Tensor:
    return torch.empty(x.shape).copy_(x)


def test_a_result_may_have_the_strides_that_cpu_gives_without_gaps() -> None:
    gaps = case_of("offset_gap")
    assert judge(permuted_unless_dense, row_major, gaps).skipped == DENSE_STRIDES
    wrong = judge(permuted_unless_dense, lambda x: row_major(x) + 1, gaps)
    assert (wrong.skipped, bool(wrong.mismatches)) == ("", True)


def test_a_result_has_the_strides_that_cpu_gives_if_meta_predicts_them() -> None:
    def permuted(x: torch.Tensor) -> torch.Tensor:
        is_dense = not x.is_meta and x.untyped_storage().nbytes() == x.numel() * x.element_size()
        return torch.empty_strided((2, 3), (3, 1) if is_dense else (1, 2), device=x.device).copy_(x)

    found = judge(permuted, row_major, case_of("offset_gap"))
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.STRIDE])
