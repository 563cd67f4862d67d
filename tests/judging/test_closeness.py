"""The bound of inexact values: for every rule, an example that passes and an example that fails."""

from __future__ import annotations

import math

import pytest
import torch

from conformance.judging import compare
from conformance.judging.closeness import NEIGHBOURS, Closeness, Further, far_apart, growth, near
from conformance.records import Mismatch
from conformance.vocabulary import Check

NAN, INF = math.nan, math.inf


def check_of(mismatch: Mismatch | None) -> Check | None:
    return mismatch.check if mismatch else None


class TestClose:
    TRUE = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    CPU = TRUE.to(torch.float32)

    def off(self, ulps: float) -> torch.Tensor:
        return self.CPU + torch.tensor([0.0, 2 * ulps * torch.finfo(torch.float32).eps, 0.0])

    def test_errors_within_the_ulp_bound_pass_and_larger_ones_fail(self) -> None:
        rule = Closeness(multiple=2, ulps=2)
        assert compare.close(self.CPU, self.off(2), self.TRUE, rule, "result") is None
        mismatch = compare.close(self.CPU, self.off(3), self.TRUE, rule, "result")
        assert mismatch is not None
        assert mismatch.facts["index"] == [1]

    def test_a_device_may_err_by_a_multiple_of_the_error_of_cpu(self) -> None:
        cpu, rule = self.off(100), Closeness(multiple=2, ulps=2)
        assert compare.close(cpu, self.off(-180), self.TRUE, rule, "result") is None
        assert compare.close(cpu, self.off(-300), self.TRUE, rule, "result") is not None

    def test_one_wrong_element_among_ten_thousand_is_reported(self) -> None:
        true = torch.linspace(1, 2, 10_000, dtype=torch.float64)
        device = true.to(torch.float32)
        device[7777] += 1e-3
        assert compare.close(true.to(torch.float32), device, true, Closeness(), "result") is not None

    @pytest.mark.parametrize("wrong", [NAN, INF, -INF])
    def test_nan_and_infinity_must_be_on_both_sides_or_neither(self, wrong: float) -> None:
        bad = torch.tensor([1.0, wrong, 3.0])
        assert compare.close(self.CPU, bad, self.TRUE, Closeness(), "result") is not None
        assert compare.close(bad, bad, bad.double(), Closeness(), "result") is None

    def test_a_complex_number_whose_size_is_beyond_doubles_may_be_wrong_too(self) -> None:
        largest = torch.tensor([complex(1.7e308, 1.7e308)], dtype=torch.complex128)
        mismatch = compare.close(largest, -largest, largest, Closeness(), "result")
        assert mismatch is not None
        assert mismatch.facts["absolute"] == "inf"
        assert not near(largest, -largest, Closeness())
        assert compare.close(largest, largest * (1 - 1e-16), largest, Closeness(), "result") is None

    def test_a_finite_value_in_place_of_nan_fails(self) -> None:
        lost = torch.tensor([1.0, NAN, 3.0])
        assert compare.close(lost, self.CPU, lost.double(), Closeness(), "result") is not None

    @pytest.mark.parametrize(("terms", "ok"), [(1000, False), (200_000, True)])
    def test_a_float64_sum_of_many_terms_may_be_off_by_their_number(self, terms: int, ok: bool) -> None:
        total = torch.tensor([3.25 * terms], dtype=torch.float64)
        rounded = total * (1 + terms * torch.finfo(torch.float64).eps)
        bound = Closeness(accumulates=True, terms=terms)
        assert (compare.close(total, rounded, None, bound, "r") is None) == ok
        assert compare.close(total, total - 3.25, None, bound, "r") is not None

    def test_the_bound_of_a_sum_is_relative_to_its_largest_element(self) -> None:
        true = torch.tensor([1e6, 1e-3], dtype=torch.float64)
        device = torch.tensor([1e6, 2e-3])
        assert compare.close(true.float(), device, true, Closeness(ulps=4), "result") is not None
        assert compare.close(true.float(), device, true, Closeness(ulps=4, accumulates=True), "result") is None

    @pytest.mark.parametrize(("spread", "ok"), [(0.0, False), (1e-6, False), (1e-3, True), (NAN, True)])
    def test_a_componentwise_bound_is_relative_to_what_rounding_moves_the_element_by(
        self, spread: float, ok: bool
    ) -> None:
        true = torch.tensor([1e30, 1e-3], dtype=torch.float64)
        device = torch.tensor([1e30, 2e-3])
        rule = Closeness(ulps=4, accumulates=True, componentwise=True)
        further = Further(spread=lambda _: torch.tensor([0.0, spread], dtype=torch.float64))
        found = compare.close(true.float(), device, true, rule, "result", further)
        assert (found is None) is ok
        assert ok or found and found.facts["bound"]["neighbours"] == NEIGHBOURS

    def test_a_componentwise_bound_is_that_of_the_largest_element_where_no_spread_is_asked(self) -> None:
        true = torch.tensor([1e30, 1e-3], dtype=torch.float64)
        rule = Closeness(ulps=4, accumulates=True, componentwise=True)
        assert compare.close(true.float(), torch.tensor([1e30, 2e-3]), true, rule, "result") is None

    @pytest.mark.parametrize(("first_dim", "ok"), [(0, True), (-2, False), (1, False), (3, False)])
    def test_a_large_matrix_does_not_excuse_the_others_of_its_batch(self, first_dim: int, ok: bool) -> None:
        true = torch.tensor([[[1e6, 1e6]], [[1.0, 1.0]]], dtype=torch.float64)
        device = torch.tensor([[[1e6, 1e6]], [[1.0, 1.01]]])
        rule = Closeness(ulps=4, accumulates=True, first_dim=first_dim)
        assert (compare.close(true.float(), device, true, rule, "result") is None) is ok

    def test_a_large_element_of_a_matrix_excuses_its_other_elements(self) -> None:
        true = torch.tensor([[[1e6, 1.0]], [[1.0, 1.0]]], dtype=torch.float64)
        device = torch.tensor([[[1e6, 1.01]], [[1.0, 1.0]]])
        rule = Closeness(ulps=4, accumulates=True, first_dim=-2)
        assert compare.close(true.float(), device, true, rule, "result") is None

    def test_a_magnitude_may_be_given_for_each_element(self) -> None:
        true = torch.tensor([1e-6, 1e-6], dtype=torch.float64)
        rule = Closeness(ulps=4, magnitude=torch.tensor([1.0, 1e-3], dtype=torch.float64))
        assert compare.close(true.float(), torch.tensor([1.2e-6, 1e-6]), true, rule, "result") is None
        found = compare.close(true.float(), torch.tensor([1e-6, 1.2e-6]), true, rule, "result")
        assert found
        assert found.facts["bound"]["magnitude"] == 1e-3

    @pytest.mark.parametrize(("device", "ok"), [(1016.0, True), (256.0, False)])
    def test_a_long_bfloat16_sum_may_round_but_not_stop_growing(self, device: float, ok: bool) -> None:
        true = torch.tensor([1000.0], dtype=torch.float64)
        rule = Closeness(ulps=4, accumulates=True, terms=2000)
        found = compare.close(true.bfloat16(), torch.tensor([device]).bfloat16(), true, rule, "result")
        assert (found is None) is ok

    @pytest.mark.parametrize(("keeps", "ok"), [(False, True), (True, False)])
    def test_a_device_that_keeps_subnormal_numbers_may_not_flush_them(self, keeps: bool, ok: bool) -> None:
        cpu = torch.tensor([1.0, 1e-40])
        rule = Closeness(subnormals=keeps)
        assert near(cpu, torch.tensor([1.0, 0.0]), rule) is ok
        found = compare.close(cpu, torch.tensor([1.0, 0.0]), cpu.double(), rule, "result")
        assert (found is None) is ok

    def test_a_subnormal_number_may_be_rounded(self) -> None:
        smallest = torch.tensor([1e-45])
        rule = Closeness(ulps=2, subnormals=True)
        assert compare.close(smallest, 3 * smallest, smallest.double(), rule, "result") is None
        assert compare.close(smallest, 9 * smallest, smallest.double(), rule, "result") is not None

    def test_a_zero_has_the_sign_of_cpu_only_where_it_is_defined(self) -> None:
        cpu, device = torch.tensor([-0.0, 1.0]), torch.tensor([0.0, 1.0])
        assert compare.close(cpu, device, cpu.double(), Closeness(), "result") is None
        signed = Closeness(signed_zeros=True)
        assert not near(cpu, device, signed)
        assert compare.close(cpu, device, cpu.double(), signed, "result") is not None
        assert compare.close(cpu, cpu, cpu.double(), signed, "result") is None

    @pytest.mark.parametrize("true", [0.0, 1e-50])
    def test_a_zero_has_any_sign_where_cpu_is_not_sure_of_it(self, true: float) -> None:
        cpu, device = torch.tensor([-0.0]), torch.tensor([0.0])
        wide = torch.tensor([true], dtype=torch.float64)
        assert compare.close(cpu, device, wide, Closeness(signed_zeros=True), "result") is None

    def test_integers_must_be_equal_under_any_tolerance(self) -> None:
        a, b = torch.tensor([1, 2]), torch.tensor([1, 3])
        assert compare.close(a, b, None, Closeness(multiple=9, ulps=9), "result") is not None

    def test_without_a_float64_result_the_cpu_result_is_the_reference(self) -> None:
        assert compare.close(self.CPU, self.off(1), None, Closeness(), "result") is None
        assert compare.close(self.CPU, self.off(50), None, Closeness(), "result") is not None


class TestBounds:
    def test_infinity_is_right_where_the_float64_result_overflows(self) -> None:
        true = torch.tensor([1e39, 2.0], dtype=torch.float64)
        cpu = torch.tensor([3e38, 2.0])  # CPU's float32 result did not overflow
        assert compare.close(cpu, torch.tensor([INF, 2.0]), true, Closeness(), "result") is None
        assert compare.close(cpu, torch.tensor([-INF, 2.0]), true, Closeness(), "result") is not None
        assert compare.close(cpu, torch.tensor([INF, INF]), true, Closeness(), "result") is not None

    def test_a_bound_with_a_magnitude_is_relative_to_that_magnitude(self) -> None:
        true = torch.tensor([1e-6], dtype=torch.float64)
        device = torch.tensor([1.2e-6])
        assert compare.close(true.float(), device, true, Closeness(ulps=4), "result") is not None
        assert compare.close(true.float(), device, true, Closeness(ulps=4, magnitude=1.0), "result") is None
        far = Closeness(ulps=4, magnitude=1e-3)
        assert compare.close(true.float(), device, true, far, "result") is not None

    def test_a_bound_with_a_dtype_has_the_precision_of_that_dtype(self) -> None:
        true = torch.tensor([1.0], dtype=torch.float64)
        device = torch.tensor([1.0 + 2**-8])
        assert compare.close(true.float(), device, true, Closeness(), "result") is not None
        assert compare.close(true.float(), device, true, Closeness(dtype=torch.bfloat16), "result") is None
        assert compare.close(true.float(), device + 1, true, Closeness(dtype=torch.bfloat16), "result") is not None


def drawn(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Closeness]:
    """Return CPU's results, a device's that are a few units off, the float64 or complex128 results, and a bound."""
    generator = torch.Generator().manual_seed(seed)

    def pick(*of: float) -> float:
        return of[int(torch.randint(len(of), (1,), generator=generator))]

    dtype = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64)[seed % 5]
    wide = torch.complex128 if dtype.is_complex else torch.float64
    true = torch.randn(20, dtype=wide, generator=generator) * pick(1e-30, 1e-4, 1, 1e4)
    eps = torch.finfo(dtype).eps
    theirs, ours = (
        (true * (1 + eps * pick(0, 1, 8) * torch.randn(20, dtype=wide, generator=generator))).to(dtype)
        for _ in range(2)
    )
    ours = torch.where(torch.rand(20, generator=generator) < pick(0, 0.5, 1), theirs, ours)
    for tensor in (true, theirs, ours):
        if pick(0, 0, 1):
            tensor[int(pick(0, 1, 2))] = pick(0, INF, -INF)
    multiple, ulps, accumulates, terms = pick(0.5, 1, 4), pick(0, 1, 4), bool(pick(0, 1)), int(pick(1, 30))
    closeness = Closeness(multiple, ulps, accumulates, terms, bool(pick(0, 1)), pick(0, 3))
    return theirs, ours, true, closeness


def test_results_near_cpu_are_close_for_any_float64_result() -> None:
    found = 0
    for seed in range(1_000):
        theirs, ours, true, closeness = drawn(seed)
        if near(theirs, ours, closeness):
            found += 1
            for wide in (true, None, torch.zeros_like(true), torch.full_like(true, INF)):
                assert compare.close(theirs, ours, wide, closeness, "result") is None, seed
    assert 50 < found < 900, "both answers have to occur"


def test_results_far_from_cpu_are_not_near() -> None:
    one = torch.ones(3)
    for value in (1.001, INF, -INF, NAN, 0.0):
        assert not near(one, torch.tensor([1.0, value, 1.0]), Closeness()), value
        assert not near(torch.tensor([1.0, value, 1.0]), one, Closeness()), value
    assert near(torch.tensor([1.0, NAN, INF]), torch.tensor([1.0, -NAN, INF]), Closeness())
    assert not near(torch.ones(3, dtype=torch.int64), torch.ones(3, dtype=torch.int64), Closeness())


HUGE = 3e38  # near the maximum of float32


def fails(theirs: float, ours: float, true: float | None, *, sums: bool, dtype: torch.dtype = torch.float32) -> bool:
    wide = None if true is None else torch.tensor([true], dtype=torch.float64)
    closeness = Closeness(accumulates=sums)
    return (
        compare.close(torch.tensor([theirs], dtype=dtype), torch.tensor([ours], dtype=dtype), wide, closeness, "r")
        is not None
    )


class TestNumbersBeyondTheDtype:
    @pytest.mark.parametrize("sums", [False, True])
    def test_infinite_elements_must_agree_in_sign_with_cpu(self, sums: bool) -> None:
        for true in (INF, None):
            assert not fails(INF, INF, true, sums=sums)
            assert fails(INF, -INF, true, sums=sums)
            assert fails(INF, NAN, true, sums=sums)
            assert fails(INF, 3.4e38, true, sums=sums)
            assert fails(INF, 1.0, true, sums=sums)
            assert fails(1.0, INF, 1.0 if true else None, sums=sums)
        assert fails(INF, 1.0, 1e39, sums=sums), "CPU's infinite distance allows nothing"

    @pytest.mark.parametrize("sums", [False, True])
    def test_overflow_on_both_sides_passes_where_the_result_is_finite(self, sums: bool) -> None:
        assert not fails(NAN, -INF, HUGE, sums=sums)
        assert not fails(INF, NAN, HUGE, sums=sums)
        assert fails(1.0, NAN, 1.0, sums=sums), "CPU did not overflow"
        assert fails(NAN, 2.0, HUGE, sums=sums), "the device gives a number, and a wrong one"
        assert fails(INF, NAN, INF, sums=sums), "the result is infinite"

    def test_a_float64_function_may_overflow_a_little_early(self) -> None:
        for theirs, ours in ((INF, 1.2e308), (1.2e308, INF), (-INF, -1.2e308)):
            assert not fails(theirs, ours, None, sums=False, dtype=torch.float64)
        for theirs, ours in ((INF, 1e307), (1e307, INF), (INF, -1.2e308), (INF, NAN)):
            assert fails(theirs, ours, None, sums=False, dtype=torch.float64)
        assert fails(INF, HUGE, INF, sums=False), "double precision says that it is infinite"

    def test_a_complex_number_that_overflows_in_a_part_is_near_in_the_other_by_its_magnitude(self) -> None:
        def is_wrong(ours: complex, true: complex = complex(1e45, 3e29)) -> bool:
            theirs = torch.tensor([true], dtype=torch.complex128).to(torch.complex64)
            given = torch.tensor([ours], dtype=torch.complex64)
            wide = torch.tensor([true], dtype=torch.complex128)
            return compare.close(theirs, given, wide, Closeness(), "r") is not None

        assert not is_wrong(complex(INF, 3.000001e29))
        assert is_wrong(complex(-INF, 3e29))
        assert is_wrong(complex(INF, NAN))
        assert is_wrong(complex(INF, 3e29), complex(1e30, 3e29))
        assert is_wrong(complex(3e38, 3e29))
        assert not is_wrong(complex(INF, 1.0000001), complex(INF, 1))
        assert is_wrong(complex(INF, 1.01), complex(INF, 1))

    def test_a_product_that_rounds_to_infinity_must_be_infinite(self) -> None:
        assert fails(INF, NAN, 1e39, sums=False)
        assert fails(INF, -INF, 1e39, sums=False)
        assert not fails(INF, NAN, 1e39, sums=True), "a sum may pass it in both directions"

    def test_a_sum_may_be_infinite_where_cpu_gives_nan(self) -> None:
        assert not fails(NAN, INF, NAN, sums=True)
        assert fails(NAN, INF, NAN, sums=False)
        assert fails(NAN, 1.0, NAN, sums=True)

    def test_a_sum_that_is_nan_by_an_argument_may_not_be_infinite(self) -> None:
        def compared(without_nan: torch.Tensor | None) -> object:
            nan, inf = torch.tensor([1.0, NAN]), torch.tensor([1.0, INF])
            sums = Closeness(accumulates=True)
            return compare.close(nan, inf, nan.double(), sums, "r", Further(without_nan=lambda: without_nan))

        assert compared(torch.tensor([1.0, INF])) is not None
        assert compared(torch.tensor([1.0, NAN])) is None, "infinities cancel"
        assert compared(None) is None, "CPU raises without NaN"

    def test_a_float64_sum_that_overflows_may_be_infinite_or_nan(self) -> None:
        assert not fails(INF, NAN, None, sums=True, dtype=torch.float64)
        assert fails(INF, NAN, None, sums=False, dtype=torch.float64)
        assert fails(INF, 1.0, None, sums=True, dtype=torch.float64)
        assert fails(1.0, INF, None, sums=True, dtype=torch.float64)

    def test_a_float64_sum_may_come_back_from_beyond_the_largest_number_or_not(self) -> None:
        for theirs, ours in ((-INF, -7.4e307), (-7.4e307, -INF), (INF, 5e292)):
            assert not fails(theirs, ours, None, sums=True, dtype=torch.float64)
        assert fails(-INF, -7.4e307, None, sums=False, dtype=torch.float64), "nothing is added"
        assert fails(-INF, 7.4e307, None, sums=True, dtype=torch.float64), "another sign"
        assert fails(INF, 1e291, None, sums=True, dtype=torch.float64), "too small to be what is left of such a product"
        assert fails(INF, 3e38, INF, sums=True), "double precision says that it is infinite"


class TestIntegersWithASpread:
    """A small integer, and a large power that was computed in float64 and truncated."""

    CPU = torch.tensor([3, 1_149_307_199_541_191])

    def passes(self, device: tuple[int, int], spread: tuple[float, float]) -> bool:
        of = torch.tensor(spread, dtype=torch.float64)
        closeness = Closeness(ulps=2.0)
        return compare.close(self.CPU, torch.tensor(device), None, closeness, "r", Further(spread=lambda _: of)) is None

    def test_an_integer_may_be_off_by_its_spread_times_twice_the_bound(self) -> None:
        assert self.passes((3, 1_149_307_199_541_196), (0.0, 2.0))
        assert not self.passes((3, 1_149_307_199_541_200), (0.0, 2.0))

    def test_an_integer_without_a_spread_is_exact(self) -> None:
        assert not self.passes((2, 1_149_307_199_541_191), (0.0, 2.0))
        assert not self.passes((3, 1_149_307_199_541_192), (0.0, 0.0))
        beyond_float64 = torch.tensor([2**60])
        without = compare.close(
            beyond_float64, beyond_float64 + 1, None, Closeness(), "r", Further(spread=torch.zeros_like)
        )
        assert without is not None, "float64 does not tell them apart"

    def test_the_bound_of_an_integer_tells_of_the_spread(self) -> None:
        found = compare.close(self.CPU, self.CPU + 9, None, Closeness(), "r", Further(spread=torch.zeros_like))
        assert found
        assert found.facts["bound"] == {"exact": True, "signed_zeros": True, "spread": True}

    def test_truth_values_are_exact(self) -> None:
        one = torch.tensor([True])
        found = compare.close(one, ~one, None, Closeness(), "r", Further(spread=lambda t: torch.full_like(t, 9.0)))
        assert found
        assert "spread" not in found.facts["bound"]


class TestASumOfWhichAPartOverflows:
    """3e38 + 3e38 - 3e38, which is 3e38, but overflows in float32 if it is added from left to right."""

    TERMS = (3e38, 3e38, -3e38)

    def passes(self, device: float, terms: tuple[float, ...] = TERMS, dtype: torch.dtype = torch.float32) -> bool:
        wide = torch.tensor([sum(terms)], dtype=torch.float64)
        total = torch.tensor([sum(map(abs, terms))], dtype=torch.float64)
        found = Further(of_magnitudes=lambda: total)
        result = torch.tensor([device], dtype=dtype)
        return compare.close(wide.to(dtype), result, wide, Closeness(accumulates=True), "r", found) is None

    @pytest.mark.parametrize("device", [INF, -INF, math.nan])
    def test_it_may_be_infinite_or_nan(self, device: float) -> None:
        assert self.passes(device)

    def test_it_may_not_be_another_number(self) -> None:
        assert not self.passes(1e38)

    def test_a_sum_whose_parts_are_all_in_range_is_finite(self) -> None:
        assert not self.passes(INF, (1e38, 1e38, -1e38))

    def test_a_float8_that_is_nan_may_be_judged_too(self) -> None:
        assert not self.passes(math.nan, (6e1, 6e1, -6e1), torch.float8_e4m3fn)

    def test_halves_are_summed_in_float32(self) -> None:
        assert not self.passes(INF, (6e4, 6e4, -6e4), torch.float16)

    def test_float64_has_its_own_range(self) -> None:
        assert self.passes(INF, (1e308, -1e308, 1e308), torch.float64)


def test_a_narrow_sum_of_small_floats_may_round_each_term() -> None:
    eps = torch.finfo(torch.bfloat16).eps
    assert growth(eps, 1024) == 1
    assert growth(eps, 1024, narrow=True) == 32


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        (1.0, 1.1, False),
        (1.0, 1.2, True),
        (INF, 1.0, True),
        (1.0, -INF, True),
        (INF, 3e38, False),  # a partial sum may have overflowed
        (INF, INF, False),
        (NAN, 1.0, False),
        (NAN, INF, False),
    ],
)
def test_what_no_rounding_explains_is_far_apart(one: float, other: float, apart: bool) -> None:
    assert far_apart(torch.tensor([2.0, one]), torch.tensor([2.0, other])) is apart
