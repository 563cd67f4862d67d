"""The rules of the comparison, except for the bound of inexact values: an example that passes and one that fails."""

from __future__ import annotations

import math

import pytest
import torch

from conformance.corpus import fills
from conformance.judging import compare
from conformance.judging.closeness import Closeness, beyond
from conformance.records import Mismatch
from conformance.vocabulary import Check

NAN, INF = math.nan, math.inf


def check_of(mismatch: Mismatch | None) -> Check | None:
    return mismatch.check if mismatch else None


class TestMetadata:
    def test_tensors_with_equal_metadata_pass(self) -> None:
        assert compare.metadata(torch.zeros(2, 3), torch.ones(2, 3), "result") is None

    @pytest.mark.parametrize(
        ("actual", "check"),
        [
            (torch.zeros(2, 3, dtype=torch.float64), Check.DTYPE),
            (torch.zeros(3, 2), Check.SHAPE),
            (torch.zeros(3, 2).t(), Check.STRIDE),
            (torch.zeros(7)[1:].view(2, 3), Check.OFFSET),
        ],
    )
    def test_a_difference_in_metadata_is_reported_by_its_own_check(self, actual: torch.Tensor, check: Check) -> None:
        assert check_of(compare.metadata(torch.zeros(2, 3), actual, "result")) is check

    def test_strides_of_empty_tensors_may_differ(self) -> None:
        assert compare.metadata(torch.zeros(0, 3), torch.zeros(3, 0).t(), "result") is None

    def test_a_missing_conj_bit_is_a_value_mismatch(self) -> None:
        z = torch.zeros(2, dtype=torch.complex64)
        assert check_of(compare.metadata(z.conj(), z, "result")) is Check.VALUE

    def test_a_zero_tensor_without_memory_differs_from_one_with_memory(self) -> None:
        z, same = (torch._efficientzerotensor((2, 3)) for _ in range(2))  # noqa: SLF001  # there is no public name
        assert compare.metadata(z, same, "result") is None
        mismatch = compare.metadata(z, torch.zeros(2, 3), "result")
        assert mismatch is not None
        facts = {"kind": "metadata", "what": "zero", "device": False, "cpu": True}
        assert mismatch == Mismatch(Check.VALUE, "result", facts)


class TestExact:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
    def test_equal_bits_pass_and_one_different_element_fails(self, dtype: torch.dtype) -> None:
        a = torch.tensor([1, 0, 1]).to(dtype)
        b = a.clone()
        assert compare.exact(a, b, "result") is None
        b[2] = 0
        mismatch = compare.exact(a, b, "result")
        assert mismatch is not None
        assert mismatch.facts["index"] == [2]

    def test_nan_equals_nan_with_any_payload(self) -> None:
        quiet = torch.tensor([0x7FC00001], dtype=torch.int32).view(torch.float32)
        assert compare.exact(torch.tensor([NAN]), quiet, "result") is None

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
    def test_a_signalling_nan_that_is_moved_stays_as_it_is(self, dtype: torch.dtype) -> None:
        source = torch.cat([fills.hard(str(dtype).removeprefix("torch."))[-2:], torch.tensor([NAN], dtype=dtype)])
        quiet = torch.full_like(source, NAN)
        assert source.isnan()[1]
        found = compare.exact(source[1:2], quiet[1:2], "result", sources=[source])
        assert found is not None
        assert found.facts["index"] == [0]
        assert compare.exact(source, source, "result", sources=[source]) is None

    def test_a_nan_may_be_any_other_where_cpu_computed_it_or_nothing_is_moved(self) -> None:
        signalling = fills.hard("float32")[-1:]
        quiet = torch.tensor([0x7FC00001], dtype=torch.int32).view(torch.float32)
        assert compare.exact(signalling, quiet, "result") is None  # the op moves no values
        assert compare.exact(quiet, torch.tensor([NAN]), "result", sources=[quiet]) is None  # arithmetic keeps payloads
        assert compare.exact(signalling, quiet, "result", sources=[quiet]) is None  # no source has CPU's NaN

    def test_zeros_of_different_sign_are_a_value_mismatch(self) -> None:
        assert check_of(compare.exact(torch.tensor([0.0]), torch.tensor([-0.0]), "result")) is Check.VALUE

    def test_a_bool_stored_as_two_does_not_equal_true(self) -> None:
        two = torch.tensor([2], dtype=torch.uint8).view(torch.bool)
        assert check_of(compare.exact(torch.tensor([True]), two, "result")) is Check.VALUE

    def test_the_sign_of_a_zero_is_ignored_only_on_request(self) -> None:
        plus, minus = torch.tensor([0.0, 1.0]), torch.tensor([-0.0, 1.0])
        assert compare.exact(plus, minus, "result", signed_zeros=False) is None
        assert check_of(compare.exact(plus, minus, "result")) is Check.VALUE
        assert check_of(compare.exact(plus, -minus, "result", signed_zeros=False)) is Check.VALUE

    def test_the_other_part_of_a_complex_zero_is_still_compared(self) -> None:
        plus, minus = torch.tensor([complex(0, 1)]), torch.tensor([complex(-0.0, 1)])
        assert compare.exact(plus, minus, "result", signed_zeros=False) is None
        assert check_of(compare.exact(plus, minus.conj(), "result", signed_zeros=False)) is Check.VALUE


class TestUntouched:
    BEFORE = torch.arange(8, dtype=torch.uint8)
    REACHED = torch.tensor([False, False, True, True, True, True, False, False])

    def after(self, byte: int) -> torch.Tensor:
        changed = self.BEFORE.clone()
        changed[byte] ^= 0xFF
        return changed

    def test_an_unchanged_storage_passes(self) -> None:
        assert compare.untouched(self.BEFORE, self.BEFORE, self.BEFORE.clone(), self.REACHED, False, "self") is None

    def test_bytes_that_cpu_changes_may_change_or_stay(self) -> None:
        cpu = self.after(6)
        for after in (cpu, self.BEFORE):
            assert compare.untouched(self.BEFORE, cpu, after, self.REACHED, False, "self") is None
        assert compare.untouched(self.BEFORE, cpu, self.after(7), self.REACHED, False, "self") is not None

    @pytest.mark.parametrize("written", [True, False])
    def test_a_byte_outside_the_view_must_not_change(self, written: bool) -> None:
        mismatch = compare.untouched(self.BEFORE, self.BEFORE, self.after(6), self.REACHED, written, "self")
        assert check_of(mismatch) is Check.UNTOUCHED
        assert mismatch is not None
        assert mismatch.facts["byte"] == 6

    def test_a_byte_of_the_view_may_change_only_if_the_schema_says_so(self) -> None:
        assert compare.untouched(self.BEFORE, self.BEFORE, self.after(3), self.REACHED, True, "self") is None
        assert (
            check_of(compare.untouched(self.BEFORE, self.BEFORE, self.after(3), self.REACHED, False, "self"))
            is Check.MUTATION
        )


def test_the_mask_of_wrong_elements_follows_the_comparison() -> None:
    a, b = torch.tensor([1.0, -0.0, NAN, 3.0]), torch.tensor([1.0, 0.0, NAN, 4.0])
    assert compare.differing(a, b).tolist() == [False, True, False, True]
    assert compare.differing(a, b, signed_zeros=False).tolist() == [False, False, False, True]
    assert beyond(a, b, None, Closeness()).tolist() == [False, False, False, True]
    assert beyond(a.long(), b.long(), None, Closeness()).tolist()[3]


def test_strides_of_a_device_without_strides_are_not_compared_where_it_is_row_major() -> None:
    cpu, dense, other = torch.zeros(3, 2).t(), torch.zeros(2, 3), torch.zeros(2, 6)[:, ::2]
    assert compare.metadata(cpu, dense, "result", strided=False) is None
    assert compare.metadata(cpu, other, "result", strided=False) is not None, "it has strides, and they are others"
    assert compare.metadata(cpu, dense, "result") is not None
    assert compare.metadata(cpu, torch.zeros(3, 2), "result", strided=False) is not None, "the shape is compared"
