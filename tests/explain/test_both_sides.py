"""The comparison that scripts contain, against that of the suite."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import pytest
import torch

from conformance.explain import both_sides
from conformance.judging.closeness import Closeness, beyond, growth, widen

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.complex64], ids=str)
@pytest.mark.parametrize(("sums", "signed_zeros"), [(False, False), (False, True), (True, False), (True, True)])
def test_a_script_finds_the_elements_wrong_that_the_suite_does(
    dtype: torch.dtype, sums: bool, signed_zeros: bool
) -> None:
    most, eps = torch.finfo(dtype).max, torch.finfo(dtype).eps
    numbers = [
        1.0,
        -1.0,
        2.0,
        0.0,
        -0.0,
        NAN,
        INF,
        -INF,
        most,
        -most,
        0.6 * most,
        0.4 * most,
        0.01 * most,
        0.1 * eps * most,
    ]
    wide = widen(torch.empty(0, dtype=dtype)).dtype
    closeness = Closeness(accumulates=sums, signed_zeros=signed_zeros)
    grown = growth(eps, closeness.terms) if sums else 0.0
    bound = both_sides.Bound(False, closeness.multiple, closeness.ulps, eps, 0.0, grown, signed_zeros)
    for cpu, device, true in product(numbers, numbers, [*numbers, 3.0 * most]):
        theirs, ours = torch.tensor([cpu], dtype=dtype), torch.tensor([device], dtype=dtype)
        reference = theirs if dtype is torch.float64 else torch.tensor([true], dtype=wide)
        of_suite = beyond(theirs, ours, None if dtype is torch.float64 else reference, closeness)
        assert both_sides.wrong(theirs, ours, reference, bound).tolist() == of_suite.tolist(), (cpu, device, true)


def test_a_large_element_excuses_others_up_to_a_multiple_of_their_own() -> None:
    eps = torch.finfo(torch.float32).eps
    componentwise = both_sides.Bound(False, multiple=4.0, ulps=4.0, eps=eps, growth=1.0, neighbours=1024.0)
    cpu, device = torch.tensor([1e30, 1.0, 1.0]), torch.tensor([1e30, 1.0 + 1e-4, 2.0])
    assert both_sides.wrong(cpu, device, cpu, componentwise).tolist() == [False, False, True]
    normwise = componentwise._replace(neighbours=0.0)
    assert both_sides.wrong(cpu, device, cpu, normwise).tolist() == [False, False, False]


def test_a_large_matrix_does_not_excuse_the_others() -> None:
    whole = both_sides.Bound(False, ulps=4.0, eps=torch.finfo(torch.float32).eps, growth=1.0)
    cpu, device = torch.tensor([[[1e6]], [[1.0]]]), torch.tensor([[[1e6]], [[1.01]]])
    assert both_sides.wrong(cpu, device, cpu, whole).flatten().tolist() == [False, False]
    assert both_sides.wrong(cpu, device, cpu, whole._replace(first_dim=-2)).flatten().tolist() == [False, True]


def test_a_small_float_may_be_off_by_units_of_its_own_and_by_those_of_float32_of_others() -> None:
    bound = both_sides.Bound(False, ulps=4.0, eps=torch.finfo(torch.float32).eps, growth=1.0, unit=4 * 2**-7)
    cpu, device = torch.tensor([1e3, 1.0, 1.0]).bfloat16(), torch.tensor([1e3, 1.0 + 2**-6, 1.0625]).bfloat16()
    assert both_sides.wrong(cpu, device, cpu.double(), bound).tolist() == [False, False, True]


def test_elements_that_are_cut_lie_on_one_side() -> None:
    true = torch.randn(500, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    near = true.bfloat16()
    cut = torch.where(near.double().abs() > true.abs(), torch.nextafter(near, torch.zeros_like(near)), near)
    assert both_sides.one_sided(cut, true)
    assert not both_sides.one_sided(near, true)


def test_an_infinity_of_cpu_allows_no_number() -> None:
    bound = both_sides.Bound(False, multiple=4.0, ulps=4.0, eps=torch.finfo(torch.float32).eps)
    theirs, ours = torch.tensor([INF, 1.0]), torch.tensor([3.0, 1.0])
    assert both_sides.wrong(theirs, ours, theirs, bound).tolist() == [True, False]


def test_a_device_whose_storages_have_no_address_is_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(storage: torch.UntypedStorage) -> int:
        raise RuntimeError("Attempted to access the data pointer on an invalid python storage.")

    monkeypatch.setattr(torch.UntypedStorage, "data_ptr", none)
    base = torch.zeros(4, dtype=torch.uint8)
    views = [base.view(torch.float32), torch.ones(1)]
    assert both_sides.homes(views, {"self": (base, views[0])}) == ["self", None]


def arguments(tensor: torch.Tensor, base: torch.Tensor, before: torch.Tensor) -> dict[str, object]:
    return {"self": (base, tensor, before)}


def called(cpu: float, device: float, before: float = 1.0) -> Callable[..., object]:
    """Return a call that writes a number to its argument and has no result."""

    def call(where: str, widened: object = None) -> object:
        base = torch.tensor([cpu if where == "cpu" else device]).view(torch.uint8)
        return None, arguments(base.view(torch.float32), base, torch.tensor([before]).view(torch.uint8))

    return call


@pytest.mark.parametrize(("cpu", "device", "differ"), [(2.0, 2.0, False), (2.0, 1.0, True), (1.0, 1.0, False)])
def test_what_cpu_writes_unmarked_is_compared(cpu: float, device: float, differ: bool) -> None:
    assert bool(list(both_sides.differences(called(cpu, device), "there", [], both_sides.Bound(True)))) is differ


def test_a_result_that_is_left_on_the_host_is_a_difference() -> None:
    left, there = torch.ones(2), torch.ones(2, device="meta")
    (found,) = both_sides.left_on_host([there, left], "meta", [0, 1])
    assert found == "result[1] is on the host, not on the device"
    assert not list(both_sides.left_on_host([there, left], "meta", [0]))
    assert not list(both_sides.left_on_host(left, "cpu", [0]))


def test_an_out_that_left_its_storage_is_not_held_against_it() -> None:
    empty = torch.empty(0, dtype=torch.uint8)
    moved = torch.ones(3)
    assert not list(both_sides.outside("out", (empty, moved, empty), (empty, moved, empty), written=True))


def test_a_tensor_that_stands_for_zeros_is_no_tensor_of_zeros() -> None:
    assert both_sides.what(torch._efficientzerotensor(2)) != both_sides.what(torch.zeros(2))  # noqa: SLF001
