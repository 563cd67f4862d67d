"""Differences from CPU that a device may have in the strides and the shared memory of results and outputs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformance.ops.family import OpFacts
from conformance.torch_versions import schema_of
from conformance.vocabulary import Check, Route
from tests.two_sides import case_of, judge


def test_a_result_of_an_op_that_picks_its_kernel_may_lie_in_any_dense_order() -> None:
    def turned(x: torch.Tensor) -> torch.Tensor:
        return x.neg().t().contiguous().t()

    def with_a_gap(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x.neg(), x], -1)[..., 0]

    facts = OpFacts("misc", picks_kernel=True)
    assert judge(torch.neg, turned, facts=facts).mismatches == []
    for wrong, given in ((turned, OpFacts("misc")), (with_a_gap, facts)):
        assert [m.check for m in judge(torch.neg, wrong, facts=given).mismatches] == [Check.STRIDE]


def promoted(x: torch.Tensor) -> torch.Tensor:
    """Return ``x + 0.5``. For integers, CPU lays it out densely, like the converted argument."""
    return torch.add(x, 0.5)


def test_a_promoted_result_may_have_the_strides_of_cpu_or_of_the_argument() -> None:
    case = case_of("transposed", dtype="int64")

    def dense(x: torch.Tensor) -> torch.Tensor:
        return (x + 0.5).contiguous()

    def as_the_argument(x: torch.Tensor) -> torch.Tensor:
        return (x.to(torch.float32) + 0.5).t().contiguous().t()

    def laid_out(x: torch.Tensor) -> torch.Tensor:
        return dense(x) if x.dtype is torch.int64 else as_the_argument(x)

    def in_a_third_way(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided((2, 3), (4, 1), dtype=torch.float32).copy_(x + 0.5)

    assert judge(laid_out, as_the_argument, case=case).mismatches == []
    assert [m.check for m in judge(laid_out, in_a_third_way, case=case).mismatches] == [Check.STRIDE]


class TestOutOfTheRightSize:
    """An ``out=`` of the right size. CPU changes its strides, and the device keeps them."""

    case = case_of("outer_gap", written=True, defined=False)

    @staticmethod
    def restrided(x: torch.Tensor) -> torch.Tensor:
        return x.resize_(x.shape, memory_format=torch.contiguous_format).fill_(3)

    def test_a_device_that_keeps_it_where_it_lies_is_not_wrong(self) -> None:
        assert not judge(self.restrided, lambda x: x.fill_(3), case=self.case).mismatches

    def test_its_values_are_compared(self) -> None:
        found = judge(self.restrided, lambda x: x.fill_(4), case=self.case)
        assert {m.check for m in found.mismatches} == {Check.VALUE}

    def test_a_device_that_alone_gives_it_other_strides_is_wrong(self) -> None:
        found = judge(lambda x: x.fill_(3), self.restrided, case=self.case)
        assert Check.STRIDE in {m.check for m in found.mismatches}

    def test_an_argument_in_place_has_to_lie_as_on_cpu(self) -> None:
        found = judge(self.restrided, lambda x: x.fill_(3), case=case_of("outer_gap", written=True))
        assert Check.STRIDE in {m.check for m in found.mismatches}


class TestOutOfAnotherSize:
    """An ``out=`` with an extra dimension of size 1. CPU only removes the dimension, and the device resizes it."""

    case = case_of("outer_gap", written=True, defined=False, shape=(2, 3, 1))

    @staticmethod
    def squeezed(x: torch.Tensor) -> torch.Tensor:
        return x.squeeze_(2).fill_(3)

    @staticmethod
    def resized(x: torch.Tensor) -> torch.Tensor:
        return x.resize_(2, 3).fill_(3)

    def test_a_device_that_makes_it_contiguous_is_not_wrong(self) -> None:
        assert not judge(self.squeezed, self.resized, case=self.case).mismatches

    def test_a_device_that_gives_it_other_strides_is_wrong(self) -> None:
        found = judge(self.squeezed, lambda x: x.resize_(3, 2).t_().fill_(3), case=self.case)
        assert Check.STRIDE in {m.check for m in found.mismatches}

    def test_where_cpu_resizes_it_the_device_has_to_resize_it_alike(self) -> None:
        found = judge(lambda x: x.resize_(3, 2).t_().fill_(3), self.resized, case=self.case)
        assert Check.STRIDE in {m.check for m in found.mismatches}


class TestResultsThatTheSchemaSharesNotAtAll:
    """A CPU result that shares memory with an argument, with and without a schema that says so."""

    @staticmethod
    def found(op: Callable[[torch.Tensor], torch.Tensor], schema: object, route: Route = Route.NATIVE) -> list[Check]:
        def itself(x: torch.Tensor) -> torch.Tensor:
            return x

        vars(itself)["_schema"] = schema
        return [m.check for m in judge(itself, op, route=route).mismatches]

    new = schema_of(torch.ops.aten.neg.default)
    view = schema_of(torch.ops.aten.alias.default)

    def test_a_device_that_returns_a_new_tensor_is_not_wrong(self) -> None:
        assert self.found(torch.clone, self.new) == []
        assert self.found(lambda x: x.t().clone().t(), self.new) == [], "it may have other strides"

    def test_its_values_are_compared(self) -> None:
        assert self.found(torch.neg, self.new) == [Check.VALUE]

    def test_a_device_that_copies_what_the_schema_shares_is_wrong(self) -> None:
        assert self.found(torch.clone, self.view) == [Check.ALIASING]

    def test_the_ops_below_a_composite_one_have_to_share_memory_as_on_cpu(self) -> None:
        assert self.found(torch.clone, self.new, Route.COMPOSITE) == [Check.ALIASING]

    def test_a_device_that_alone_shares_memory_is_wrong(self) -> None:
        def copied(x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        vars(copied)["_schema"] = self.new
        assert [m.check for m in judge(copied, lambda x: x).mismatches] == [Check.ALIASING]


def column(x: torch.Tensor) -> torch.Tensor:
    """Return a new column. Its stride along the dimension of size 1 is 6."""
    return torch.empty_strided((6, 1), (1, 6)).copy_(x.reshape(6, 1))


@pytest.mark.parametrize(("step", "checks"), [(1, []), (0, [Check.STRIDE]), (5, [Check.STRIDE])])
def test_a_new_result_may_have_the_row_major_stride_along_a_single_element(step: int, checks: list[Check]) -> None:
    found = judge(column, lambda x: torch.empty_strided((6, 1), (1, step)).copy_(x.reshape(6, 1)))
    assert [m.check for m in found.mismatches] == checks


def test_a_new_result_has_the_strides_of_cpu_along_several_elements() -> None:
    found = judge(lambda x: torch.empty_strided(x.shape, (1, 2)).copy_(x), torch.clone)
    assert [m.check for m in found.mismatches] == [Check.STRIDE]


def test_a_view_has_the_strides_of_cpu_along_a_single_element_too() -> None:
    found = judge(lambda x: x.as_strided((6, 1), (1, 6)), lambda x: x.as_strided((6, 1), (1, 1)))
    assert [m.check for m in found.mismatches] == [Check.STRIDE]
