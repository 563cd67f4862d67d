"""The values that a device may give in place of CPU's, and the differences that stay failures."""

from __future__ import annotations

from collections.abc import Callable

import torch

from conformance.corpus import fills
from conformance.corpus.model import DeviceArg, TensorSlot
from conformance.judging import bits
from conformance.judging.other_values import FLUSHED, HELD, LAYOUT, QUIETED
from conformance.judging.tolerances import Criteria
from conformance.ops.family import EXACT, OpFacts
from conformance.plan.case import Case
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Check
from tests.samples import sample, slot
from tests.two_sides import case_of, judge

NAN = float("nan")


def one_as_two() -> Case:
    """Return a case with one tensor as both arguments."""
    both = sample("hand", slot(0, "self", (2, 3)), slot(1, "other", (2, 3)), DeviceArg())
    return cases(CellId("misc", "hand", "float32", "aliased"), [both])[0]


def test_a_case_is_skipped_if_the_cpu_result_depends_on_the_layout() -> None:
    def by_memory_order(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.is_contiguous() else x - 1

    found = judge(by_memory_order, lambda x: x + 1, case=case_of("transposed"))
    assert found.skipped == LAYOUT


def test_cpu_is_asked_for_its_loop_over_single_elements_where_it_has_strided_arguments_too() -> None:
    def vector_loop(x: torch.Tensor) -> torch.Tensor:
        return x + (1 if x.stride(-1) == 1 else 2)

    case = case_of("outer_gap")
    assert judge(vector_loop, lambda x: x + 2, case=case).skipped == LAYOUT
    assert [m.check for m in judge(vector_loop, lambda x: x + 3, case=case).mismatches] == [Check.VALUE]


def test_the_device_must_give_one_of_the_values_of_a_layout_dependent_cpu() -> None:
    def by_memory_order(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.is_contiguous() else x - 1

    def fill_by_memory_order(x: torch.Tensor) -> torch.Tensor:
        return x.fill_(1.0 if x.is_contiguous() else 2.0)

    found = judge(by_memory_order, lambda x: x + 2, case=case_of("transposed"))
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.VALUE])
    written = case_of("transposed", written=True)
    found = judge(fill_by_memory_order, lambda x: x.fill_(3.0), case=written)
    assert (found.skipped, {m.check for m in found.mismatches}) == ("", {Check.VALUE})
    assert judge(fill_by_memory_order, lambda x: x.fill_(1.0), case=written).skipped == LAYOUT


def test_any_device_value_is_skipped_if_cpu_depends_on_shared_memory() -> None:
    def by_sharing(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x - 1 if x.data_ptr() == y.data_ptr() else x + 1

    assert judge(by_sharing, lambda x, _: x + 2, case=one_as_two()).skipped == LAYOUT


def test_a_dense_call_with_more_results_raises_no_doubt_about_cpu() -> None:
    def by_sharing(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (x + 1,) if x.data_ptr() == y.data_ptr() else (x + 1, y + 1)

    found = judge(by_sharing, lambda x, _: (x + 2,), case=one_as_two())
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.VALUE])


def test_a_device_that_alone_depends_on_the_layout_fails() -> None:
    found = judge(lambda x: x + 1, lambda x: x - 1, case=case_of("transposed"))
    assert [m.check for m in found.mismatches] == [Check.VALUE]


def in_a_vector_loop(x: torch.Tensor, dense: float = 1.0, apart: float = 2.0) -> torch.Tensor:
    """Return other values for contiguous arguments than for others, as some CPU kernels do for a NaN.

    Such a kernel handles a NaN in its vector loop differently from a NaN behind the end of the loop.
    """
    return torch.where(x > 0, dense if x.is_contiguous() else apart, x)


def test_a_case_is_skipped_if_the_vector_loop_of_cpu_gives_the_device_value() -> None:
    assert judge(in_a_vector_loop, lambda x: in_a_vector_loop(x, dense=2.0)).skipped == LAYOUT


def test_each_element_may_equal_either_loop_of_cpu() -> None:
    def some_as_one_and_some_as_the_other(x: torch.Tensor) -> torch.Tensor:
        found = in_a_vector_loop(x)
        found.view(-1)[::2] = in_a_vector_loop(x, dense=2.0).view(-1)[::2]
        return found

    assert judge(in_a_vector_loop, some_as_one_and_some_as_the_other).skipped == LAYOUT


def test_an_element_that_equals_neither_loop_of_cpu_fails() -> None:
    found = judge(in_a_vector_loop, lambda x: in_a_vector_loop(x, dense=3.0))
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.VALUE])
    found = judge(in_a_vector_loop, lambda x: in_a_vector_loop(x, dense=2.0).reshape(-1))
    assert found.skipped == ""


def as_bits(x: torch.Tensor) -> torch.Tensor:
    return x.view(torch.int32)


class TestSignallingNan:
    """An argument with a signalling NaN as its last element, for which C defines little."""

    @staticmethod
    def values(slot: TensorSlot, dtype: str) -> torch.Tensor:
        return fills.hard(dtype)[-slot.numel :].reshape(slot.shape).clone()

    @staticmethod
    def of_nan(signalling: float, quiet: float) -> Callable[[torch.Tensor], torch.Tensor]:
        """Return an op that gives one number for a signalling NaN and another number for a quiet NaN."""

        def op(x: torch.Tensor) -> torch.Tensor:
            as_quiet = (as_bits(x) & 0x00400000) != 0
            return torch.where(x.isnan(), torch.where(as_quiet, quiet, signalling), 3.0)

        return op

    def test_a_device_that_takes_it_for_a_quiet_one_is_not_wrong(self) -> None:
        found = judge(self.of_nan(NAN, 1.0), self.of_nan(1.0, 1.0), values=self.values)
        assert found.skipped == QUIETED

    def test_a_device_that_gives_a_third_number_is_wrong(self) -> None:
        assert judge(self.of_nan(NAN, 1.0), self.of_nan(2.0, 1.0), values=self.values).mismatches

    def test_a_device_that_is_wrong_at_another_number_is_wrong(self) -> None:
        def op(x: torch.Tensor) -> torch.Tensor:
            return torch.where(x.isnan(), 1.0, 4.0)

        assert judge(self.of_nan(NAN, 1.0), op, values=self.values).mismatches

    def test_an_op_that_moves_numbers_has_to_leave_it_as_it_is(self) -> None:
        def quieted(x: torch.Tensor) -> torch.Tensor:
            return (as_bits(x) | torch.where(x.isnan(), 0x00400000, 0).int()).view(torch.float32)

        facts = OpFacts("misc", tolerance=EXACT, moves=True)
        assert judge(torch.clone, values=self.values, facts=facts).mismatches == []
        assert judge(torch.clone, quieted, values=self.values, facts=facts).mismatches


class TestSubnormalArgument:
    """A device that also flushes subnormal arguments to zero."""

    @staticmethod
    def values(slot: TensorSlot, dtype: str) -> torch.Tensor:
        numbers = torch.arange(1.0, slot.numel + 1)
        numbers[1] = torch.finfo(torch.float32).tiny / 4
        return numbers.reshape(slot.shape)

    @staticmethod
    def of_flushed(op: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
        return lambda x: op(torch.where(x.abs() < torch.finfo(torch.float32).tiny, 0.0, x))

    @staticmethod
    def slope(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x + 5, x - 5)

    def test_a_device_that_takes_it_for_zero_is_not_wrong(self) -> None:
        assert judge(self.slope, self.of_flushed(self.slope), values=self.values).skipped == FLUSHED

    def test_a_device_that_keeps_those_of_the_dtype_is_wrong(self) -> None:
        def mismatches(dtype: torch.dtype) -> bool:
            criteria = Criteria(OpFacts("misc"), frozenset({dtype}))
            return bool(judge(self.slope, self.of_flushed(self.slope), None, criteria, values=self.values).mismatches)

        assert mismatches(torch.float32)
        assert not mismatches(torch.float16)

    def test_a_device_that_gives_a_third_number_for_it_is_wrong(self) -> None:
        wrong = self.of_flushed(lambda x: torch.where(x > 0, x + 5, x - 4))
        assert judge(self.slope, wrong, values=self.values).mismatches

    def test_a_device_that_is_wrong_at_another_number_is_wrong(self) -> None:
        wrong = self.of_flushed(lambda x: torch.where(x > 1, x + 5, x - 5))
        assert judge(self.slope, wrong, values=self.values).mismatches

    def test_an_op_that_moves_numbers_has_to_leave_it_as_it_is(self) -> None:
        facts = OpFacts("misc", tolerance=EXACT, moves=True)
        assert judge(torch.clone, self.of_flushed(torch.clone), values=self.values, facts=facts).mismatches

    def test_a_complex_number_has_two_parts(self) -> None:
        tiny = torch.finfo(torch.float32).tiny
        numbers = torch.tensor([complex(1, -tiny / 2), complex(tiny / 2, 2), complex(tiny, 0)])
        buffer = numbers.view(torch.uint8).clone()
        assert bits.flush(buffer, torch.complex64)
        assert buffer.view(torch.complex64).tolist() == [complex(1, -0.0), complex(0, 2), complex(tiny, 0)]
        assert not bits.flush(buffer, torch.complex64)


class TestFormerValue:
    """A CPU kernel that adds to the former value of an ``out=`` argument."""

    case = case_of(written=True, defined=False)

    def test_a_device_that_gives_what_cpu_gives_over_zeros_is_not_wrong(self) -> None:
        assert judge(lambda x: x.add_(3), lambda x: x.fill_(3), case=self.case).skipped == HELD

    def test_a_device_that_gives_something_else_is_wrong(self) -> None:
        assert judge(lambda x: x.add_(3), lambda x: x.fill_(4), case=self.case).mismatches

    def test_a_device_that_alone_reads_the_former_value_is_wrong(self) -> None:
        assert judge(lambda x: x.fill_(3), lambda x: x.add_(3), case=self.case).mismatches

    def test_an_argument_in_place_has_a_former_value(self) -> None:
        assert judge(lambda x: x.add_(3), lambda x: x.fill_(3), case=case_of(written=True)).mismatches


def test_a_copy_with_the_order_of_the_strides_is_a_reference_too() -> None:
    def code(x: torch.Tensor) -> torch.Tensor:
        return torch.full((2, 3), {(1, 1): 1.0, (1, 2): 2.0, (3, 1): 3.0}[x.stride()])

    case = case_of("overlapping")
    assert judge(code, lambda x: torch.full((2, 3), 2.0), case=case).skipped == LAYOUT
    assert judge(code, lambda x: torch.full((2, 3), 3.0), case=case).skipped == LAYOUT
    assert judge(code, lambda x: torch.full((2, 3), 4.0), case=case).mismatches


def test_an_excuse_by_layout_holds_for_what_cpu_writes_unmarked_too() -> None:
    def by_layout(x: torch.Tensor) -> torch.Tensor:
        total = x.sum() + (0 if x.is_contiguous() else 1)
        x.data.add_(1)  # no schema says so
        return total

    def dense(x: torch.Tensor) -> torch.Tensor:
        total = x.sum()
        x.data.add_(1)
        return total

    gaps = case_of("offset_gap")
    assert judge(by_layout, dense, gaps).skipped == LAYOUT
    assert judge(by_layout, torch.sum, gaps).mismatches


def test_a_reference_that_leaves_an_argument_says_nothing_about_it() -> None:
    def writes_with_gaps(x: torch.Tensor) -> torch.Tensor:
        total = x.sum()
        if not x.is_contiguous():
            total += 1
            x.data.add_(1)
        return total

    assert judge(writes_with_gaps, torch.sum, case_of("offset_gap")).mismatches
