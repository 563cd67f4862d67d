"""Written arguments are compared like results, whether or not the schema marks them as written."""

from __future__ import annotations

from collections.abc import Callable

import torch

from conformance.ops.family import Accumulation, OpFacts, Tolerance
from conformance.vocabulary import Check
from tests.two_sides import Op, case_of, judge


def test_a_written_argument_that_is_not_returned_is_compared() -> None:
    def nothing(x: torch.Tensor) -> None:
        x.add_(1)

    def nothing_at_all(x: torch.Tensor) -> None:
        x.add_(0)

    case = case_of("offset_gap", written=True)
    assert judge(nothing, case=case).mismatches == []
    (found,) = judge(nothing, nothing_at_all, case=case).mismatches
    assert found.check is Check.VALUE
    assert (found.subject, found.facts["wrong"], found.facts["index"]) == ("self", 6, [0, 0])
    assert (found.facts["device"], found.facts["cpu"]) == (1.0, 2.0)


def test_wrong_elements_with_their_former_values_are_reported_as_stale() -> None:
    def all_but_the_last_row(x: torch.Tensor) -> torch.Tensor:
        x[:1].neg_()
        return x

    for layout in ("contiguous", "transposed"):
        (found,) = judge(torch.Tensor.neg_, all_but_the_last_row, case_of(layout, written=True)).mismatches
        assert found.facts["pattern"]["values"] == {"kind": "stale"}
    (found,) = judge(torch.neg, torch.abs).mismatches
    assert found.facts["pattern"]["values"] == {"kind": "negated"}, "a fresh result has held nothing that is known"


def test_a_resized_argument_has_no_stale_elements() -> None:
    def grown(by: float) -> Callable[[torch.Tensor], torch.Tensor]:
        return lambda x: x.resize_(7).fill_(by)

    (found,) = judge(grown(2), grown(1.5), case_of(written=True)).mismatches
    assert found.facts["pattern"]["values"] == {"kind": "constant", "value": "1.5"}


class TestAnArgumentThatCpuWritesAlthoughNothingSaysSo:
    """An argument like the running statistics of a batch norm."""

    @staticmethod
    def counting(by: float) -> Op:
        def op(x: torch.Tensor) -> torch.Tensor:
            result = x.neg()
            x.add_(by)
            return result

        return op

    def test_a_device_that_writes_the_same_is_right(self) -> None:
        assert judge(self.counting(1), self.counting(1)).mismatches == []

    def test_a_device_that_writes_nothing_or_something_else_is_wrong(self) -> None:
        for layout in ("contiguous", "offset1"):
            found = judge(self.counting(1), torch.neg, case_of(layout)).mismatches
            assert (found[0].check, found[0].subject) == (Check.VALUE, "self")
        assert [m.check for m in judge(self.counting(1), self.counting(2)).mismatches] == [Check.VALUE]

    def test_a_device_may_round_what_it_writes(self) -> None:
        sums = OpFacts("misc", Tolerance(4.0, accumulation=Accumulation.REDUCED))
        eps = torch.finfo(torch.float32).eps
        assert judge(self.counting(1), self.counting(1 + 2 * eps), facts=sums).mismatches == []

    def test_what_it_left_in_an_element_of_several_indices_is_not_compared(self) -> None:
        assert judge(self.counting(1), torch.neg, case_of("expanded")).mismatches == []
