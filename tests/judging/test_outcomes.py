"""Two outcomes of one case: what a native kernel may do otherwise, what a fallback may, and what neither may."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.corpus.model import DeviceArg
from conformance.judging import oracle
from conformance.judging.other_references import OtherReferences
from conformance.judging.outcomes import Comparison
from conformance.judging.tolerances import Criteria
from conformance.judging.twins import CPU, Twins
from conformance.ops.family import EXACT, Accumulation, Equivalence, OpFacts, Tolerance
from conformance.plan.case import Case
from conformance.plan.cases import cases
from conformance.records import Mismatch
from conformance.torch_versions import schema_of
from conformance.vocabulary import CellId, Check, Route
from tests.samples import sample, slot
from tests.two_sides import Op, case_of, judge, value_of, with_keyword

NAN = float("nan")
ULP = torch.finfo(torch.float32).eps


def third(x: torch.Tensor) -> torch.Tensor:
    return x / 3


def nearly_a_third(x: torch.Tensor) -> torch.Tensor:
    return third(x) * (1 + ULP)


def test_a_native_kernel_may_differ_from_cpu_by_rounding() -> None:
    assert judge(third, nearly_a_third, route=Route.NATIVE).mismatches == []


def test_a_fallback_must_equal_cpu_bit_for_bit() -> None:
    (found,) = judge(third, nearly_a_third, route=Route.FALLBACK).mismatches
    assert found.check is Check.VALUE
    assert found.facts["bound"] == {"exact": True, "signed_zeros": True}


def test_a_kernel_that_only_moves_values_must_equal_cpu_bit_for_bit() -> None:
    facts = OpFacts("misc", tolerance=EXACT)
    assert [m.check for m in judge(third, nearly_a_third, facts=facts).mismatches] == [Check.VALUE]


def of_number(right: Op, wrong: Op, facts: OpFacts, dtype: str = "float64") -> list[Mismatch]:
    return judge(right, wrong, case_of(dtype=dtype), facts).mismatches


def last_third(x: torch.Tensor) -> float:
    number: float = third(x).flatten()[-2].item()
    return number


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: torch.tensor(last_third(x), dtype=torch.float32).item(),
        lambda x: last_third(x) * (1 + torch.finfo(torch.float64).eps),
        lambda x: float("nan"),
    ],
)
def test_a_number_that_is_read_is_that_of_cpu_in_all_its_bits(wrong: Op) -> None:
    exact = OpFacts("misc", tolerance=EXACT)
    assert of_number(last_third, last_third, exact) == []
    (found,) = of_number(last_third, wrong, exact)
    assert (found.check, found.facts["kind"]) == (Check.VALUE, "plain")


@pytest.mark.parametrize(
    ("one", "other", "right"),
    [
        (0.0, -0.0, False), (-0.0, -0.0, True), (complex(0.0, -0.0), complex(0.0, 0.0), False),
        (complex(NAN, 1), complex(NAN, 1), True), (complex(NAN, 1), complex(NAN, 2), False), (NAN, -NAN, True),
        (7, 7, True), (7, 8, False), (True, False, False),
    ],
)  # fmt: skip
def test_numbers_that_are_read_differ_in_the_sign_of_zero_and_beside_nan(
    one: complex, other: complex, right: bool
) -> None:
    found = of_number(lambda _: one, lambda _: other, OpFacts("misc", tolerance=EXACT))
    assert [m.check for m in found] == ([] if right else [Check.VALUE])


def test_the_sign_of_a_number_that_is_zero_may_be_undefined() -> None:
    assert of_number(lambda _: 0.0, lambda _: -0.0, OpFacts("misc", tolerance=EXACT, either_zero=True)) == []
    assert of_number(lambda _: 0.0, lambda _: -0.0, OpFacts("misc")) == []  # rounded to zero


@pytest.mark.parametrize(
    ("dtype", "off", "right"),
    [
        ("float64", 2**-51, True), ("float64", 2**-40, False), ("float64", 2**-24, False),
        ("float32", 2**-22, True), ("float32", 2**-19, False), ("bfloat16", 2**-22, True), ("bfloat16", 2**-10, False),
    ],
)  # fmt: skip
def test_a_number_that_is_computed_is_rounded_as_its_arguments_are(dtype: str, off: float, right: bool) -> None:
    found = of_number(last_third, lambda x: last_third(x) * (1 + off), OpFacts("misc"), dtype)
    assert [m.check for m in found] == ([] if right else [Check.VALUE])
    of_complex = of_number(
        lambda x: 1j * last_third(x), lambda x: 1j * last_third(x) * (1 + off), OpFacts("misc"), dtype
    )
    assert [m.check for m in of_complex] == ([] if right else [Check.VALUE])


def test_a_result_whose_memory_is_on_another_device_than_it_says_is_wrong() -> None:
    class Elsewhere(torch.Tensor):
        def untyped_storage(self) -> torch.UntypedStorage:
            return torch.empty(3, device="meta").untyped_storage()

    (found,) = judge(third, lambda x: third(x).as_subclass(Elsewhere)).mismatches
    assert (found.check, found.facts["device"], found.facts["wanted"]) == (Check.DEVICE, "meta", "cpu")


def test_an_undefined_result_is_compared_by_its_metadata_alone() -> None:
    facts = OpFacts("misc", undefined=(0,))
    assert judge(third, torch.neg, facts=facts).mismatches == []
    assert [m.check for m in judge(third, lambda x: third(x)[:1], facts=facts).mismatches] == [Check.SHAPE]


def test_a_result_that_is_not_unique_is_compared_by_its_equivalence() -> None:
    facts = OpFacts("misc", equivalence=((0, Equivalence.UNORDERED),))
    assert judge(torch.clone, lambda x: x.flip(0), facts=facts).mismatches == []
    assert [m.check for m in judge(torch.clone, third, facts=facts).mismatches] == [Check.VALUE]


@pytest.mark.parametrize(
    ("stable", "taken", "checks"),
    [
        (False, [[1, 0, 2], [2, 0, 1]], []),
        (False, [[0, 0, 2], [0, 1, 2]], [Check.VALUE]),
        (True, [[0, 1, 2], [0, 1, 2]], []),
        (True, [[1, 0, 2], [2, 0, 1]], [Check.VALUE]),
    ],
)
def test_a_sort_may_exchange_equal_elements_unless_it_is_stable(
    stable: bool, taken: list[list[int]], checks: list[Check]
) -> None:
    def in_order(x: torch.Tensor, stable: bool) -> tuple[torch.Tensor, torch.Tensor]:
        values, indices = x.sort(stable=True, dim=1)
        return values, indices

    def as_taken(x: torch.Tensor, stable: bool) -> tuple[torch.Tensor, torch.Tensor]:
        return x.sort(1).values, torch.tensor(taken)

    facts = OpFacts("misc", tolerance=EXACT, equivalence=((1, Equivalence.INDEX_OF_TAKEN),))
    rows = torch.tensor([[1.0, 1.0, 2.0], [3.0, 3.0, 3.0]])
    case = with_keyword("stable", stable)
    found = judge(in_order, as_taken, case, facts, values=lambda slot, _: rows)
    assert [m.check for m in found.mismatches] == checks


def test_a_result_of_an_op_that_picks_its_kernel_may_lie_in_any_dense_order() -> None:
    def turned(x: torch.Tensor) -> torch.Tensor:
        return x.neg().t().contiguous().t()

    def with_a_gap(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x.neg(), x], -1)[..., 0]

    facts = OpFacts("misc", picks_kernel=True)
    assert judge(torch.neg, turned, facts=facts).mismatches == []
    for wrong, given in ((turned, OpFacts("misc")), (with_a_gap, facts)):
        assert [m.check for m in judge(torch.neg, wrong, facts=given).mismatches] == [Check.STRIDE]


def test_what_a_native_kernel_keeps_for_its_backward_has_any_size() -> None:
    def with_kept(size: int) -> Op:
        return lambda x: (x.neg(), x.new_empty(size))

    facts = OpFacts("misc", equivalence=((1, Equivalence.PRIVATE),))
    assert judge(with_kept(6), with_kept(0), facts=facts).mismatches == []
    (found,) = judge(with_kept(6), with_kept(0), facts=facts, route=Route.FALLBACK).mismatches
    assert found.check is Check.SHAPE
    (found,) = judge(with_kept(6), lambda x: (x.exp(), x.new_empty(0)), facts=facts).mismatches
    assert (found.check, found.subject) == (Check.VALUE, "result[0]")


@pytest.mark.parametrize("wrong", [2.5, 3, None])
def test_results_that_are_not_tensors_are_compared_by_type_and_value(wrong: object) -> None:
    assert judge(lambda _: 2.0).mismatches == []
    (found,) = judge(lambda _: 2.0, lambda _: wrong).mismatches
    assert found.check is (Check.VALUE if isinstance(wrong, float) else Check.DTYPE)


def test_a_missing_result_is_reported() -> None:
    (found,) = judge(lambda x: (x + 1, x + 2), lambda x: (x + 1,)).mismatches
    assert found == Mismatch(Check.SHAPE, "", {"kind": "count", "device": 1, "cpu": 2})


def test_the_same_error_on_both_sides_passes() -> None:
    def refuse(x: torch.Tensor) -> torch.Tensor:
        raise IndexError("out of range")

    assert judge(refuse).mismatches == []
    (found,) = judge(refuse, third).mismatches
    assert found.facts == {
        "kind": "errors", "device": None, "cpu": {"type": "IndexError", "message": "out of range"},
    }  # fmt: skip


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


def promoted(x: torch.Tensor) -> torch.Tensor:
    """As CPU lays out a sum of ints and floats: densely, by what it has converted."""
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


def test_only_a_complex_zero_under_a_bit_may_have_another_sign() -> None:
    facts = OpFacts("misc", tolerance=EXACT)

    def zeros(x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(x.shape)

    def minus_zeros(x: torch.Tensor) -> torch.Tensor:
        return -torch.zeros(x.shape)

    conj = case_of("conj", dtype="complex64")
    assert judge(zeros, minus_zeros, case=conj, facts=facts).mismatches == []
    for case in (case_of(), case_of("neg")):
        assert [m.check for m in judge(zeros, minus_zeros, case=case, facts=facts).mismatches] == [Check.VALUE]


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


class TestOutOfTheRightSize:
    """CPU gives an ``out=`` of the right size other strides, and the device leaves it where it lies."""

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
    """CPU only removes a dimension of size 1 of an ``out=``, and the device resizes it."""

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
    """CPU returns memory that it shares, and the schema does not say so."""

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


class TestResultsFinerThanArguments:
    """Means of float16 rows."""

    @staticmethod
    def checks(right: Op, wrong: Op) -> list[Check]:
        rows = torch.tensor([[1.0, 1.001, 1.0], [3.0, 3.002, 3.0]], dtype=torch.float16)
        sums = OpFacts("misc", Tolerance(4.0, accumulation=Accumulation.REDUCED))
        case = case_of(dtype="float16")
        return [
            m.check
            for m in judge(
                right, wrong, case, sums, values=lambda slot, dtype: rows.to(getattr(torch, dtype))
            ).mismatches
        ]

    def test_a_device_that_rounds_to_the_dtype_of_the_arguments_is_wrong(self) -> None:
        assert self.checks(lambda x: x.float().mean(1), lambda x: x.mean(1).float()) == [Check.VALUE]
        assert self.checks(lambda x: x.float().mean(1), lambda x: x.float().sum(1) / 3) == []

    def test_a_device_may_round_a_result_in_that_dtype(self) -> None:
        assert self.checks(lambda x: x.mean(1), lambda x: (x.float().sum(1) * (1 / 3)).half()) == []


class TestAnArgumentThatCpuWritesAlthoughNothingSaysSo:
    """Such as the running statistics of a batch norm."""

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


INF, NAN = float("inf"), float("nan")


class TestANumberThatIsNotOne:
    """Sums of rows: of NaN, infinity and 1, and of infinity, 1 and 2."""

    @staticmethod
    def checks(right: Op, wrong: Op) -> list[Check]:
        rows = torch.tensor([[NAN, INF, 1.0], [INF, 1.0, 2.0]])
        sums = OpFacts("misc", Tolerance(2.0, accumulation=Accumulation.REDUCED))
        return [m.check for m in judge(right, wrong, facts=sums, values=lambda slot, _: rows).mismatches]

    def test_a_device_that_leaves_nan_out_of_a_sum_is_wrong(self) -> None:
        assert self.checks(lambda x: x.sum(1), lambda x: x.nan_to_num(0.0, INF).sum(1)) == [Check.VALUE]

    def test_infinities_that_cancel_on_cpu_may_stay_infinite(self) -> None:
        assert self.checks(lambda x: x.sum(1) + (x.sum(1) - x.sum(1)), lambda x: x.sum(1)) == []


def column(x: torch.Tensor) -> torch.Tensor:
    """A new column, whose stride along its only element is 6."""
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


def on_the_host(route: Route, op: Op, case: Case, context: str = "") -> list[Check]:
    """The checks that find what ``op`` returns on the host, if its arguments are on a device."""
    if context:
        case = replace(case, cell=replace(case.cell, layout=context))
    twins = Twins(value_of)
    on_host = oracle.call(op, twins.side(case, CPU))
    comparison = Comparison(Criteria(OpFacts("misc")), route, torch.device("meta"))
    return [m.check for m in comparison.results(on_host, on_host, OtherReferences(case, twins, op))]


def given(*arguments: Any) -> Case:
    one = sample("hand", *arguments, dtypes=("float32",))
    return cases(CellId("misc", "hand", "float32", "contiguous"), [one])[0]


X = slot(0, "self", (2, 3))
ON_HOST = replace(X, on_host=True)


@pytest.mark.parametrize(
    ("route", "op", "checks"),
    [
        (Route.NATIVE, torch.neg, [Check.DEVICE]),
        (Route.COMPOSITE, torch.neg, []),  # torch itself decides where its kernels for all devices put results
        (Route.NATIVE, lambda x: torch.ones(2), []),
        (Route.NATIVE, torch.nonzero, [Check.DEVICE]),  # Meta has no numbers, and raises
        (Route.COMPOSITE, torch.nonzero, []),
    ],
)
def test_a_result_of_arguments_on_the_device_is_not_left_on_the_host(
    route: Route, op: Callable[[torch.Tensor], torch.Tensor], checks: list[Check]
) -> None:
    assert on_the_host(route, op, given(X)) == checks


def test_where_meta_raises_a_result_may_be_on_the_host_if_anything_else_says_so() -> None:
    def chosen(x: torch.Tensor, *_: object) -> torch.Tensor:
        return x[x > 1]

    def put_into_the_last(*tensors: torch.Tensor) -> torch.Tensor:
        return tensors[-1].copy_(tensors[0][tensors[0] > 3].sum())

    assert on_the_host(Route.NATIVE, chosen, given(ON_HOST)) == []
    assert on_the_host(Route.NATIVE, chosen, given(X, DeviceArg())) == []
    assert on_the_host(Route.NATIVE, chosen, given(X), context="thread") == []
    host_out = replace(slot(1, "out", (), written=True), on_host=True)
    assert on_the_host(Route.NATIVE, put_into_the_last, given(X, host_out)) == []
    assert on_the_host(Route.NATIVE, chosen, given(X, host_out)) == [Check.DEVICE]
