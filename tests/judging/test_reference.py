"""Doubts about the CPU reference, and the differences that a doubt does not excuse."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import torch

from conformance.backends import Capabilities
from conformance.corpus.model import DeviceArg, TensorSlot
from conformance.judging import altered, conditioning
from conformance.judging.judge import Judge
from conformance.judging.other_values import LAYOUT
from conformance.judging.reference import BEHIND, LOST, OVERLAP, OVERRUN, RESIZED, TWICE, UNSOUND
from conformance.judging.tolerances import Criteria
from conformance.judging.twins import Twins
from conformance.ops.family import Accumulation, OpFacts, Tolerance
from conformance.plan.case import Case
from conformance.plan.cases import cases
from conformance.torch_versions import schema_of
from conformance.vocabulary import CellId, Check, Route
from tests.samples import sample, slot
from tests.two_sides import Device, behind, case_of, judge, value_of

SUMS = OpFacts("misc", tolerance=Tolerance(4.0, accumulation=Accumulation.REDUCED))


def turned() -> Case:
    """Return a case in which a square matrix is written, and also read as its transpose."""
    both = sample("hand", slot(0, "self", (3, 3), written=True), slot(1, "other", (3, 3)), DeviceArg())
    return next(c for c in cases(CellId("misc", "hand", "float32", "aliased"), [both]) if c.variant == "self%other")


def test_a_device_may_take_an_overlap_that_cpu_refuses() -> None:
    def takes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.copy_(x + y)

    assert judge(torch.Tensor.add_, takes, turned()).skipped == OVERLAP
    assert judge(takes, case=turned()).mismatches == []
    assert judge(takes, lambda x, y: x.copy_(x + y + 1), turned()).mismatches


def test_an_expanded_argument_that_cpu_writes_silently_is_skipped() -> None:
    found = judge(torch.neg, case=case_of("expanded", written=True))
    assert (found.skipped, found.tainted) == (TWICE, False)


def test_cpu_writing_past_an_expanded_argument_damages_nothing() -> None:
    written = []

    def as_dense(x: torch.Tensor) -> torch.Tensor:
        ctypes.memset(x.data_ptr(), 0, x.numel() * x.element_size())  # writes two rows; the storage has one
        written.append(x)
        return x

    found = judge(as_dense, case=case_of("expanded", written=True))
    assert (found.skipped, found.tainted, len(written)) == (TWICE, False, 1)
    assert written[0].untyped_storage().nbytes() < written[0].numel() * written[0].element_size()


def test_cpu_writing_past_an_expanded_argument_and_raising_damages_nothing() -> None:
    written = []

    def dense_and_refuse(x: torch.Tensor) -> torch.Tensor:
        ctypes.memset(x.data_ptr(), 0, x.numel() * x.element_size())
        written.append(x)
        raise RuntimeError("not this dtype")

    found = judge(dense_and_refuse, case=case_of("expanded", written=True))
    assert (found.skipped, found.tainted, len(written)) == (OVERRUN, False, 1)


def test_cpu_writing_behind_an_argument_of_any_strides_damages_nothing() -> None:
    def past_the_end(x: torch.Tensor) -> torch.Tensor:
        storage = x.untyped_storage()
        ctypes.memset(storage.data_ptr() + storage.nbytes(), 0, 4)
        return x.neg_()

    found = judge(past_the_end, case=case_of("as_strided", written=True))
    assert (found.skipped, found.tainted) == (BEHIND, True)
    assert judge(torch.neg_, case=case_of("as_strided", written=True)).skipped == ""


def ones(x: torch.Tensor) -> torch.Tensor:
    """Return a new tensor in place of the given ``out=``."""
    return torch.ones_like(x)


def test_a_case_is_skipped_if_cpu_does_not_return_its_out() -> None:
    case = case_of(written=True, defined=False)
    assert judge(ones, lambda x: x.fill_(1.0), case=case).skipped == LOST


def test_a_result_that_cpu_returns_beside_its_out_may_be_narrower() -> None:
    def narrow(x: torch.Tensor) -> torch.Tensor:
        return torch.full(x.shape, 0.1, dtype=torch.float32)

    case = case_of(written=True, defined=False, dtype="float64")
    assert judge(narrow, lambda x: x.copy_(narrow(x)), case=case).skipped == LOST
    assert judge(narrow, lambda x: x.fill_(0.2), case=case).skipped == ""


def test_the_device_must_hold_the_values_that_cpu_returns_beside_its_out() -> None:
    case = case_of(written=True, defined=False)
    found = judge(ones, lambda x: x.fill_(2.0), case=case)
    assert (found.skipped, {Check.VALUE} <= {m.check for m in found.mismatches}) == ("", True)
    found = judge(ones, lambda x: (x.fill_(1.0), x), case=case)
    assert (found.skipped, found.mismatches[0].check) == ("", Check.SHAPE)


def test_a_case_is_not_skipped_if_only_the_device_does_not_return_its_out() -> None:
    case = case_of(written=True, defined=False)
    assert judge(lambda x: x.fill_(1.0), lambda x: x + 1, case=case).skipped == ""


def test_an_out_that_a_call_without_results_writes_is_compared() -> None:
    def filled(value: float) -> Callable[[torch.Tensor], None]:
        def fill(x: torch.Tensor) -> None:
            x.fill_(value)

        return fill

    case = case_of(written=True, defined=False)
    found = judge(filled(1.0), filled(2.0), case=case)
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.VALUE])
    assert judge(filled(1.0), case=case).mismatches == []


def test_a_case_is_skipped_if_cpu_gives_other_bits_each_time() -> None:
    calls = count()
    found = judge(lambda x: x + next(calls), torch.neg)
    assert (found.skipped, found.tainted) == (UNSOUND, True)


def test_a_result_without_defined_values_still_has_a_size_and_strides() -> None:
    calls = count()
    undefined = OpFacts("misc", undefined=(0,))
    found = judge(lambda x: x + next(calls), lambda x: torch.ones(3, 2).t(), facts=undefined)
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.STRIDE])
    assert judge(lambda x: x + next(calls), torch.neg, facts=undefined).mismatches == []


def test_a_result_without_defined_values_excuses_no_other_result() -> None:
    calls = count()
    undefined = OpFacts("misc", undefined=(1,))
    found = judge(lambda x: (x.neg(), x + next(calls)), lambda x: (x.exp(), x + 1), facts=undefined)
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.VALUE])


def test_a_case_is_skipped_if_cpu_gives_other_bits_once_in_many_calls() -> None:
    calls = count(1)
    found = judge(lambda x: x + (next(calls) % 8 == 0), torch.neg)
    assert (found.skipped, found.tainted) == (UNSOUND, True)


def test_a_case_is_skipped_if_cpu_reads_behind_its_arguments() -> None:
    def beyond(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if behind(x) == 1.0 else x + 2  # the heap has no 1.0 there

    found = judge(beyond, torch.neg)
    assert (found.skipped, found.tainted) == (UNSOUND, True)


def alone(right: Callable[..., torch.Tensor]) -> Judge:
    device = Capabilities(Device(), "hand")
    return Judge(Twins(value_of), device, lambda x, _: right(x), Route.NATIVE, Criteria(OpFacts("misc")), 20)


def test_cpu_alone_is_sound_if_it_reads_its_arguments_alone() -> None:
    calls = count()
    assert alone(torch.neg).reference_is_sound(case_of())
    assert not alone(lambda x: x + 1 if behind(x) == 1.0 else x + 2).reference_is_sound(case_of())
    assert not alone(lambda x: x + next(calls)).reference_is_sound(case_of())


def test_cpu_alone_is_asked_with_finite_numbers_too() -> None:
    def nan(slot: TensorSlot, dtype: str) -> torch.Tensor:
        return torch.full(slot.shape, torch.nan)

    device = Capabilities(Device(), "hand")

    def of_nan(op: Callable[[torch.Tensor], torch.Tensor]) -> Judge:
        return Judge(Twins(nan), device, lambda x, _: op(x), Route.NATIVE, Criteria(OpFacts("misc")), 20)

    assert of_nan(torch.neg).reference_is_sound(case_of())
    assert not of_nan(lambda x: x + behind(x)).reference_is_sound(case_of())


def test_cpu_alone_is_asked_for_the_calls_before_that_of_a_case_too() -> None:
    calls = count()
    of_vectors = alone(lambda x: x + next(calls) if x.dim() == 1 else x.neg())
    assert of_vectors.reference_is_sound(case_of())
    assert not of_vectors.reference_is_sound(replace(case_of(), before=(case_of(shape=(6,)),)))


def test_a_doubtful_layout_is_skipped_even_if_the_device_agrees() -> None:
    def beyond(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if behind(x) == 1.0 else x + 2

    known = OpFacts("misc", doubtful=("expanded",))
    assert judge(beyond, case=case_of("expanded")).skipped == ""
    assert judge(beyond, case=case_of("expanded"), facts=known).skipped == UNSOUND
    assert not Criteria(known).doubts("transposed")


def test_a_doubtful_layout_is_judged_if_cpu_reads_its_arguments_alone() -> None:
    known = OpFacts("misc", doubtful=("expanded",))
    found = judge(torch.neg, torch.abs, case=case_of("expanded"), facts=known)
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.VALUE])


def test_rounding_explains_a_difference_from_cpu_s_result_for_dense_arguments() -> None:
    def of_dense(x: torch.Tensor) -> torch.Tensor:
        return x.sum() if x.is_contiguous() else x.sum() - 7e15

    def values(slot: TensorSlot, dtype: str) -> torch.Tensor:
        return torch.tensor([1e16, 1.0, -1e16, 3.0, 1e8, -1e8]).view(slot.shape).to(getattr(torch, dtype))

    def in_another_order(x: torch.Tensor) -> torch.Tensor:
        return x.flatten().flip(0).cumsum(0)[-1].clone()

    case = case_of("transposed")
    assert judge(of_dense, in_another_order, case=case, facts=SUMS, values=values).skipped == LAYOUT
    wrong = judge(of_dense, lambda x: x.sum() + 1e12, case=case, facts=SUMS, values=values)
    assert [m.check for m in wrong.mismatches] == [Check.VALUE]


def test_how_rounding_moves_results_is_not_asked_of_a_cpu_that_ignores_strides() -> None:
    calls = []

    def of_dense(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        return x.sum() if x.is_contiguous() else x.sum() + 100

    assert judge(of_dense, torch.sum, case=case_of("transposed"), facts=SUMS).skipped == LAYOUT
    assert len(calls) < 2 * conditioning.DRAWS
    wrong = judge(of_dense, lambda x: x.sum() + 1, case=case_of("transposed"), facts=SUMS)
    assert [m.check for m in wrong.mismatches] == [Check.VALUE]


def test_a_cpu_that_ignores_strides_excuses_no_write_into_a_gap() -> None:
    def of_dense(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1 if x.is_contiguous() else 100)

    def into_the_gap(x: torch.Tensor) -> torch.Tensor:
        x.as_strided((1,), (1,), x.size(1)).fill_(7)
        return x.add_(1)

    case = case_of("outer_gap", written=True)
    assert judge(of_dense, lambda x: x.add_(1), case=case, facts=SUMS).skipped == LAYOUT
    found = judge(of_dense, into_the_gap, case=case, facts=SUMS)
    assert found.skipped == ""
    assert len({m.check for m in found.mismatches}) > 1


def test_a_process_in_which_cpu_ignored_strides_within_a_storage_goes_on() -> None:
    def as_dense(x: torch.Tensor) -> torch.Tensor:
        torch.arange(6.0, out=x.as_strided((6,), (1,), 0))
        return x

    case = case_of("step2", written=True, defined=False)
    found = judge(as_dense, lambda x: x.copy_(torch.arange(6.0).view(2, 3)), case=case)
    assert (found.skipped, found.tainted) == (LAYOUT, False)


def test_a_process_in_which_cpu_ignored_strides_and_wrote_behind_a_storage_ends() -> None:
    def as_dense_and_behind(x: torch.Tensor) -> torch.Tensor:
        storage = x.untyped_storage()
        end = ctypes.c_uint32.from_address(storage.data_ptr() + storage.nbytes())
        end.value = (
            0 if end.value == int.from_bytes([altered.ROOM] * 4, "little") else end.value
        )  # bytes of the heap stay unchanged
        torch.arange(6.0, out=x.as_strided((6,), (1,), 0))
        return x

    case = case_of("step2", written=True, defined=False)
    found = judge(as_dense_and_behind, lambda x: x.copy_(torch.arange(6.0).view(2, 3)), case=case)
    assert (found.skipped, found.tainted) == (LAYOUT, True)


def test_a_case_is_skipped_if_cpu_does_not_return_its_written_argument() -> None:
    def negated(x: torch.Tensor) -> torch.Tensor:
        return x.neg()

    case = case_of(written=True)
    assert judge(negated, torch.neg_, case=case).skipped == "", "it is returned by chance, as far as anybody says"
    vars(negated)["_schema"] = schema_of(torch.ops.aten.neg_.default)
    assert judge(negated, torch.neg_, case=case).skipped == LOST
    found = judge(torch.neg_, torch.neg, case=case)
    assert (found.skipped, bool(found.mismatches)) == ("", True)


class TestResizedInPlace:
    """A CPU that resizes the argument of an in-place op."""

    @staticmethod
    def grown(schema: object) -> Callable[[torch.Tensor], torch.Tensor]:
        def grow(x: torch.Tensor) -> torch.Tensor:
            return x.resize_(3, 3).fill_(1)

        vars(grow)["_schema"] = schema
        return grow

    @staticmethod
    def refuse(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("output with shape [2, 3] doesn't match the broadcast shape [3, 3]")

    def test_a_device_that_raises_is_not_wrong(self) -> None:
        cpu = self.grown(schema_of(torch.ops.aten.addbmm_.default))
        assert judge(cpu, self.refuse, case=case_of(written=True)).skipped == RESIZED

    def test_a_device_that_raises_for_an_op_about_sizes_is_wrong(self) -> None:
        cpu = self.grown(schema_of(torch.ops.aten.resize_.default))
        (mismatch,) = judge(cpu, self.refuse, case=case_of(written=True)).mismatches
        assert mismatch.check is Check.ERROR_PARITY

    def test_a_device_that_raises_where_cpu_keeps_the_size_is_wrong(self) -> None:
        assert judge(torch.neg_, self.refuse, case=case_of(written=True)).mismatches


class TestSeveralIndices:
    """A CPU that writes an argument that the schema does not mark as written."""

    @staticmethod
    def written(value: int) -> Callable[[torch.Tensor], torch.Tensor]:
        def write(x: torch.Tensor) -> torch.Tensor:
            x.untyped_storage().fill_(value)
            return torch.zeros(1)

        return write

    def test_what_it_leaves_in_an_element_of_several_indices_is_undefined(self) -> None:
        assert not judge(self.written(1), self.written(2), case=case_of("expanded")).mismatches

    def test_what_it_leaves_in_other_arguments_is_compared(self) -> None:
        (mismatch,) = judge(self.written(1), self.written(2), case=case_of()).mismatches
        assert mismatch.check is Check.VALUE

    def test_a_device_that_writes_where_cpu_does_not_is_wrong(self) -> None:
        (mismatch,) = judge(lambda x: torch.zeros(1), self.written(2), case=case_of("expanded")).mismatches
        assert mismatch.check is Check.MUTATION


def test_sizes_that_depend_on_the_layout_on_cpu_may_be_those_of_dense_arguments() -> None:
    def by_stride(x: torch.Tensor) -> torch.Tensor:
        return torch.ones(2 if x.is_contiguous() else 3)

    assert judge(by_stride, lambda x: torch.ones(2), case=case_of("transposed")).skipped == LAYOUT
    assert judge(by_stride, lambda x: torch.ones(4), case=case_of("transposed")).mismatches
    assert judge(by_stride, lambda x: torch.zeros(2), case=case_of("transposed")).mismatches
    assert judge(by_stride, lambda x: torch.ones(3)).mismatches
