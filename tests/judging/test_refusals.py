"""Calls that CPU refuses because of oneDNN or of an argument's strides, and what a device may do with them."""

from __future__ import annotations

from dataclasses import replace

import torch

from conformance.judging.refusals import ONEDNN, REFUSED
from conformance.layouts import Placement
from conformance.torch_versions import schema_of
from conformance.vocabulary import Check
from tests.two_sides import case_of, judge


class TestOneDnn:
    """A CPU that refuses a call only while its kernels use oneDNN."""

    @staticmethod
    def refused(x: torch.Tensor) -> torch.Tensor:
        if torch.backends.mkldnn.enabled:
            raise RuntimeError("not this dtype")
        return x + 1

    def test_a_device_that_does_what_cpu_does_without_it_is_not_wrong(self) -> None:
        assert judge(self.refused, lambda x: x + 1).skipped == ONEDNN

    def test_a_device_that_does_something_else_is_wrong(self) -> None:
        (mismatch,) = judge(self.refused, lambda x: x + 2).mismatches
        assert mismatch.check is Check.ERROR_PARITY

    def test_a_refusal_of_cpu_alone_stays_one(self) -> None:
        def refuse(x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("not this dtype")

        (mismatch,) = judge(refuse, lambda x: x).mismatches
        assert mismatch.check is Check.ERROR_PARITY


class TestARefusedLayout:
    """A CPU that takes only contiguous arguments."""

    @staticmethod
    def refused(x: torch.Tensor) -> torch.Tensor:
        if not x.is_contiguous():
            raise RuntimeError("expected a contiguous tensor")
        return x + 1

    def test_a_device_that_takes_it_and_gives_the_values_of_a_contiguous_one_is_not_wrong(self) -> None:
        found = judge(self.refused, lambda x: x + 1, case=case_of("step2"))
        assert (found.skipped, found.mismatches) == (REFUSED, [])

    def test_a_device_that_takes_it_and_gives_other_values_is_wrong(self) -> None:
        (mismatch,) = judge(self.refused, lambda x: x + 2, case=case_of("step2")).mismatches
        assert mismatch.check is Check.ERROR_PARITY

    def test_a_device_may_give_what_cpu_gives_for_an_argument_in_the_order_of_its_strides(self) -> None:
        def as_stored(x: torch.Tensor) -> torch.Tensor:
            """Read the argument as contiguous, like a kernel that ignores strides."""
            if x.untyped_storage().nbytes() > x.nbytes:
                raise RuntimeError("index out of range")
            return x.as_strided(x.shape, (x.shape[1], 1)).clone()

        def copied(x: torch.Tensor) -> torch.Tensor:
            return as_stored(x.clone())

        case = case_of("transposed")
        case = replace(case, placements=(Placement("transposed", (2, 3), (2, 4), 0, 12),))
        assert judge(as_stored, copied, case=case).skipped == REFUSED
        (mismatch,) = judge(as_stored, lambda x: copied(x) + 1, case=case).mismatches
        assert mismatch.check is Check.ERROR_PARITY

    @staticmethod
    def singular(x: torch.Tensor) -> torch.Tensor:
        """Refuse the strides first and then the values, as some CPU kernels do."""
        if not x.is_contiguous():
            raise RuntimeError("expected a contiguous tensor")
        raise ValueError("singular")

    def test_a_device_may_find_the_error_of_a_contiguous_argument_first(self) -> None:
        def singular(x: torch.Tensor) -> torch.Tensor:
            raise ValueError("singular")

        found = judge(self.singular, singular, case=case_of("step2"))
        assert (found.skipped, found.mismatches) == (REFUSED, [])

    def test_an_error_that_cpu_raises_for_no_layout_is_wrong(self) -> None:
        def other(x: torch.Tensor) -> torch.Tensor:
            raise TypeError("no such dtype")

        def singular(x: torch.Tensor) -> torch.Tensor:
            raise ValueError("singular")

        (mismatch,) = judge(self.singular, other, case=case_of("step2")).mismatches
        assert mismatch.check is Check.ERROR_PARITY
        (mismatch,) = judge(self.refused, singular, case=case_of("step2")).mismatches
        assert mismatch.check is Check.ERROR_PARITY

    def test_a_device_that_copies_where_cpu_refuses_a_view_is_wrong(self) -> None:
        def refused(x: torch.Tensor) -> torch.Tensor:
            return self.refused(x)

        vars(refused)["_schema"] = schema_of(torch.ops.aten.view.default)
        (mismatch,) = judge(refused, lambda x: x + 1, case=case_of("step2")).mismatches
        assert mismatch.check is Check.ERROR_PARITY


def test_the_device_must_raise_where_cpu_refuses_an_expanded_argument() -> None:
    def refuse(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("several indices, one place")

    case = case_of("expanded", written=True)
    assert judge(refuse, case=case).mismatches == []
    assert [m.check for m in judge(refuse, torch.neg, case=case).mismatches] == [Check.ERROR_PARITY]
