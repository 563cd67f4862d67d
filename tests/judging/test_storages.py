"""Effects of a call: shared storages, version counters, and bytes that must not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance.judging import storages
from conformance.judging.oracle import CallOutcome, call
from conformance.judging.twins import CPU, Twins
from conformance.ops.family import OpFacts
from conformance.plan.case import Case
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Check
from tests.samples import sample, slot
from tests.two_sides import case_of, judge, value_of

Op = Callable[..., Any]


def outcome(op: Op, case: Case) -> CallOutcome:
    return call(op, Twins(value_of).side(case, CPU))


def of_one(op: Op, layout: str = "contiguous", written: bool = False) -> CallOutcome:
    return outcome(lambda x, where: op(x), case_of(layout, written))


def aliasing(expected: Op, actual: Op, i: int = 0) -> tuple[str, Any, Any] | None:
    """Return the finding's kind and its facts about the device and the CPU; None for no finding."""
    found = storages.aliasing(storages.Sharing(of_one(expected)), storages.Sharing(of_one(actual)), i)
    return (found.kind, found.facts["device"], found.facts["cpu"]) if found else None


def changed(op: Op, layout: str, written: bool = False, reference: Op = torch.abs) -> list[Check]:
    found = storages.Fetched(of_one(reference, layout, written).side, of_one(op, layout, written).side).differences()
    return [m.check for m in found]


def writing(number: float, at: int) -> Op:
    """Return an op that writes an element of its argument's storage."""

    def op(x: torch.Tensor) -> torch.Tensor:
        x.as_strided((1,), (1,), at).fill_(number)
        return x

    return op


def test_an_element_between_the_rows_of_an_out_that_cpu_writes_has_no_defined_value() -> None:
    def found(op: Op, reference: Op, *, defined: bool) -> list[Check]:
        case = case_of("outer_gap", written=True, defined=defined)
        expected, actual = outcome(lambda x, _: reference(x), case), outcome(lambda x, _: op(x), case)
        return [m.check for m in storages.Fetched(expected.side, actual.side).differences()]

    assert found(writing(1.5, 4), writing(2.5, 4), defined=False) == []
    assert found(writing(1.5, 5), writing(2.5, 4), defined=False) == [Check.UNTOUCHED]
    assert found(writing(1.5, 4), writing(2.5, 4), defined=True) == [Check.UNTOUCHED]


class TestStorageOfANewResult:
    @staticmethod
    def found(count: int, op: Op = torch.neg) -> list[Check]:
        """Return the failed checks of a device whose result is at the start of a storage of ``count`` elements."""

        def at_the_beginning(x: torch.Tensor) -> torch.Tensor:
            storage = torch.zeros(count)
            return storage.as_strided(x.shape, op(x).stride()).copy_(op(x))

        return [m.check for m in judge(op, at_the_beginning).mismatches]

    def test_it_may_be_padded_and_rounded_up(self) -> None:
        assert self.found(6) == self.found(16 * 1024) == []

    def test_it_is_not_far_larger_than_that_of_cpu(self) -> None:
        assert self.found(17 * 1024) == [Check.STORAGE]

    def test_what_lies_behind_a_view_is_not_its_own(self) -> None:
        large = case_of(shape=(40_000, 1))
        assert judge(lambda x: x[:2], case=large).mismatches == []
        facts = OpFacts("misc", may_alias=True)
        assert judge(lambda x: x[:2].clone(), lambda x: x[:2], large, facts).mismatches == []

    def test_one_as_large_as_that_of_cpu_is_right(self) -> None:
        def at_the_beginning(x: torch.Tensor) -> torch.Tensor:
            return torch.zeros(100_000)[:6].view(x.shape).copy_(x)

        assert judge(at_the_beginning).mismatches == []

    def test_results_may_share_a_large_storage(self) -> None:
        def halves(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            storage = torch.cat([x.flatten(), torch.zeros(100_000)])
            return storage[6:], storage[:6]

        assert judge(halves).mismatches == []


class TestAliasing:
    def test_two_different_views_of_one_argument_alias_alike(self) -> None:
        assert aliasing(lambda x: x.view(-1), lambda x: x.view(3, 2)) is None

    def test_a_copy_in_place_of_a_view_is_reported_and_the_reverse(self) -> None:
        assert aliasing(lambda x: x.view(-1), lambda x: x + 1) == ("aliasing", None, "self")
        assert aliasing(lambda x: x + 1, lambda x: x.view(-1)) == ("aliasing", "self", None)

    @pytest.mark.parametrize(("copied", "checks"), [(torch.clone, []), (torch.neg, [Check.VALUE])])
    def test_a_copy_has_the_values_of_the_argument_that_cpu_may_return(self, copied: Op, checks: list[Check]) -> None:
        found = judge(lambda x: x, copied, facts=OpFacts("misc", may_alias=True)).mismatches
        assert [m.check for m in found] == checks

    def test_a_view_in_place_of_the_argument_itself_is_reported(self) -> None:
        assert aliasing(lambda x: x, lambda x: x.view(2, 3)) == ("identity", False, True)

    def test_results_that_share_a_storage_on_cpu_must_share_it_on_the_device(self) -> None:
        def shared(x: torch.Tensor) -> list[torch.Tensor]:
            y = x + 1
            return [y, y[0]]

        def apart(x: torch.Tensor) -> list[torch.Tensor]:
            return [x + 1, (x + 1)[0]]

        assert aliasing(shared, shared, 1) is None
        assert aliasing(shared, apart, 1) == ("shared_results", None, "result[0]")


def grown(x: torch.Tensor) -> torch.Tensor:
    return x.resize_(7).fill_(1.0)


def grown_elsewhere(x: torch.Tensor) -> torch.Tensor:
    return x.set_(torch.ones(7))


class TestStorageOfAWrittenArgument:
    @staticmethod
    def found(right: Op, wrong: Op, shape: tuple[int, ...] = (0,)) -> list[str]:
        return [m.kind for m in judge(right, wrong, case_of("contiguous", True, defined=False, shape=shape)).mismatches]

    @pytest.mark.parametrize("shape", [(0,), (3,)])
    def test_one_that_grows_in_its_storage_passes(self, shape: tuple[int, ...]) -> None:
        assert self.found(grown, grown, shape) == []

    def test_one_that_grows_in_another_storage_is_reported(self) -> None:
        assert self.found(grown, grown_elsewhere) == ["new_storage"]

    def test_one_that_has_another_storage_on_cpu_too_passes(self) -> None:
        assert self.found(grown_elsewhere, grown_elsewhere) == []

    def test_a_device_whose_tensors_lie_in_no_storage_of_their_base_is_not_asked(self) -> None:
        case = case_of("contiguous", True, defined=False, shape=(0,))
        in_place, elsewhere = (outcome(lambda x, _, op=op: op(x), case).side for op in (grown, grown_elsewhere))
        assert storages.moved(in_place, elsewhere, lambda: elsewhere) == []
        assert len(storages.moved(in_place, elsewhere, lambda: Twins(value_of).side(case, CPU))) == 1


class TestVersions:
    def test_a_version_counter_that_moves_on_both_sides_passes(self) -> None:
        assert storages.versions(of_one(lambda x: x.add_(1)).side, of_one(lambda x: x.mul_(3)).side) == []

    def test_a_version_counter_may_move_more_often_than_on_cpu(self) -> None:
        once, twice = of_one(lambda x: x.add_(1)), of_one(lambda x: x.add_(1).sub_(0))
        assert storages.versions(once.side, twice.side) == []

    def test_a_write_that_moves_no_version_counter_is_reported(self) -> None:
        (found,) = storages.versions(of_one(lambda x: x.add_(1)).side, of_one(lambda x: x.data.add_(1)).side)
        assert (found.subject, found.facts) == ("self", {"kind": "version", "device": 0, "cpu": 1})

    @pytest.mark.parametrize("written", [True, False])
    def test_only_a_written_argument_may_have_a_counter_that_moves_alone(self, written: bool) -> None:
        silent, told = (of_one(op, written=written) for op in (lambda x: x.data.add_(1), lambda x: x.add_(1)))
        assert len(storages.versions(silent.side, told.side)) == (0 if written else 1)


class TestStorages:
    def test_an_unchanged_input_passes(self) -> None:
        assert changed(lambda x: x * 2, "offset_gap") == []

    def test_a_changed_input_is_a_mutation(self) -> None:
        assert changed(lambda x: x.data.mul_(3), "offset_gap") == [Check.MUTATION]

    def test_changed_bytes_of_a_written_argument_are_no_mutation(self) -> None:
        assert changed(lambda x: x.data.mul_(3), "offset_gap", written=True) == []

    def test_a_changed_gap_of_a_written_argument_is_reported(self) -> None:
        assert changed(lambda x: x.data.as_strided((17,), (1,), 0).zero_(), "offset_gap", written=True) == [
            Check.UNTOUCHED
        ]

    def test_a_gap_that_cpu_writes_too_may_change(self) -> None:
        def everywhere(x: torch.Tensor) -> None:
            x.data.as_strided((17,), (1,), 0).zero_()

        assert changed(everywhere, "offset_gap", written=True, reference=everywhere) == []

    def test_a_write_through_one_of_two_aliases_is_no_mutation_of_the_other(self) -> None:
        one = sample("add_.Tensor", slot(0, "self", (4,), written=True), slot(1, "other", (4,)))
        case = next(iter(cases(CellId("f", "add_.Tensor", "float32", "aliased"), [one])))
        cpu, device = outcome(lambda a, b: a + b, case), outcome(lambda a, b: a.data.add_(b), case)
        assert storages.Fetched(cpu.side, device.side).differences() == []


class TestSame:
    """The decision by storages alone that a written argument is the same on both sides."""

    def same(self, reference: Op, op: Op, layout: str = "contiguous") -> bool:
        return storages.Fetched(of_one(reference, layout, True).side, of_one(op, layout, True).side).same(0)

    def test_equal_bytes_settle_a_written_argument_in_every_layout(self) -> None:
        for layout in ("contiguous", "transposed", "offset_gap"):
            assert self.same(torch.Tensor.neg_, torch.Tensor.neg_, layout)
            assert not self.same(torch.Tensor.neg_, torch.Tensor.abs_, layout)

    def test_equal_bytes_do_not_settle_an_argument_with_a_new_place_or_size(self) -> None:
        def elsewhere(x: torch.Tensor) -> torch.Tensor:
            return x.set_(torch.zeros(2, 3))

        def grown(x: torch.Tensor) -> torch.Tensor:
            return x.resize_(9).fill_(1)

        def moved(x: torch.Tensor) -> torch.Tensor:
            return x.as_strided_((1, 2), (3, 1), 1)

        for op in (elsewhere, grown, moved):
            assert not self.same(op, op)
            assert not self.same(torch.clone, op)


def test_what_copies_make_of_an_argument_is_not_the_mutation_of_a_call() -> None:
    def found(call: Op, copy: Op | None) -> list[Check]:
        expected, actual = of_one(torch.abs), of_one(call)
        send = (lambda: of_one(copy).side) if copy else None
        return [m.check for m in storages.Fetched(expected.side, actual.side).differences(send)]

    assert found(writing(0.0, 1), None) == [Check.MUTATION]
    assert found(writing(0.0, 1), writing(0.0, 1)) == []
    for copy in (torch.abs, writing(0.0, 2), writing(7.0, 1)):
        assert found(writing(0.0, 1), copy) == [Check.MUTATION]
    assert found(lambda x: writing(0.0, 2)(writing(0.0, 1)(x)), writing(0.0, 1)) == [Check.MUTATION]


@pytest.mark.parametrize(("size", "stride", "dense"), [
    ((2, 3), (3, 1), True), ((2, 3), (1, 2), True), ((2, 1, 3), (3, 99, 1), True), ((), (), True),
    ((2, 3), (4, 1), False), ((2, 3), (0, 1), False), ((2, 3), (1, 1), False),
])  # fmt: skip
def test_a_tensor_lies_densely_if_its_elements_lie_side_by_side(
    size: tuple[int, ...], stride: tuple[int, ...], dense: bool
) -> None:
    assert storages.lies_densely(torch.zeros(20).as_strided(size, stride)) is dense


class TestRefusedCalls:
    """A call that raises on both sides, and may write its argument."""

    @staticmethod
    def checks(device: Op, cpu: Op | None = None, layout: str = "contiguous") -> list[Check]:
        found = judge(cpu or refuse, device, case_of(layout, written=True))
        return [m.check for m in found.mismatches]

    def test_an_argument_that_stays_as_it_was_passes(self) -> None:
        assert self.checks(refuse) == []

    @pytest.mark.parametrize("layout", ["contiguous", "offset_gap", "transposed"])
    def test_an_argument_that_was_written_before_the_error_fails(self, layout: str) -> None:
        assert self.checks(after(lambda x: x[:1].zero_()), layout=layout) == [Check.MUTATION]

    def test_an_argument_that_was_resized_before_the_error_fails(self) -> None:
        assert self.checks(after(lambda x: x.resize_(3))) == [Check.SHAPE]

    def test_what_cpu_has_changed_too_is_undefined(self) -> None:
        assert self.checks(after(lambda x: x.zero_()), after(lambda x: x.neg_())) == []
        assert self.checks(after(lambda x: x.resize_(3)), after(lambda x: x.resize_(2))) == []

    def test_a_kernel_may_have_begun_to_write_when_it_finds_the_error(self) -> None:
        def found_late(x: torch.Tensor) -> torch.Tensor:
            return x if x.is_meta else refuse(x)

        assert self.checks(after(lambda x: x.zero_()), found_late) == []


def refuse(_: torch.Tensor) -> torch.Tensor:
    raise IndexError("no such dimension")


def after(change: Op) -> Op:
    """Return an op that changes its argument and then raises."""

    def op(x: torch.Tensor) -> torch.Tensor:
        change(x)
        return refuse(x)

    return op
