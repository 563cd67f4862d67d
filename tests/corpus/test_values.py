"""Conversion of stored values: the same bits on every machine."""

from __future__ import annotations

import pytest
import torch

from conformance.corpus.model import TensorSlot
from conformance.corpus.values import Values, convert


def slot(shape: tuple[int, ...], pool: str, start: int = 0, dtype: str | None = None) -> TensorSlot:
    return TensorSlot(0, "self", shape, dtype, written=False, pool=pool, start=start)


def bits(t: torch.Tensor) -> str:
    return bytes(t.view(torch.uint8).tolist()).hex()


def test_floats_are_rounded_to_nearest_even() -> None:
    flat = torch.tensor([1.00390625, 1.01171875, -0.0, 65536.0])
    assert bits(convert(flat, "bfloat16")) == "803f823f00808047"
    assert bits(convert(flat, "float16")) == "043c0c3c0080007c"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "float8_e4m3fn", "float8_e5m2"])
def test_every_nan_is_the_same_nan(dtype: str) -> None:
    odd = torch.tensor([0x7FC00001, -1], dtype=torch.int32).view(torch.float32)
    converted = convert(odd.repeat(20), dtype)
    assert len({bits(t) for t in converted.view(-1, 1)}) == 1


def test_a_nan_beside_numbers_with_an_infinite_sum_is_the_same_nan() -> None:
    odd = torch.tensor([0x7FC00001], dtype=torch.int32).view(torch.float32)
    largest = torch.full((2,), torch.finfo(torch.float32).max)
    converted = convert(torch.cat([largest, odd, -largest]), "float64")
    assert bits(converted[2:3]) == bits(torch.tensor([float("nan")], dtype=torch.float64))
    assert converted.isnan().tolist() == [False, False, True, False, False]


def test_complex_numbers_become_their_real_parts() -> None:
    assert convert(torch.tensor([1 + 2j, -3.5 + 0.5j]), "float64").tolist() == [1.0, -3.5]


def test_integers_are_clamped_and_made_positive_for_unsigned() -> None:
    flat = torch.tensor([-(2**63), -300, -1, 0, 300, 2**63 - 1])
    assert convert(flat, "int8").tolist() == [-128, -128, -1, 0, 127, 127]
    assert convert(flat, "uint8").tolist() == [255, 255, 1, 0, 255, 255]
    assert convert(flat, "uint32").tolist() == [2**32 - 1, 300, 1, 0, 300, 2**32 - 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
def test_bools_made_of_numbers_are_of_both_kinds(dtype: torch.dtype) -> None:
    assert convert(torch.tensor([-2, -1, 0, 1, 2], dtype=dtype), "bool").tolist() == [False] * 3 + [True] * 2


def test_float8_is_clamped_to_what_it_holds() -> None:
    assert convert(torch.tensor([1e6, -1e6]), "float8_e4m3fn").to(torch.float32).tolist() == [448.0, -448.0]


def test_a_slot_reads_its_range_in_its_shape_and_own_dtype() -> None:
    values = Values({"int64": torch.arange(10)})
    assert values.value(slot((2, 2), "int64", 3), "int32").tolist() == [[3, 4], [5, 6]]
    assert values.value(slot((2,), "int64", 0, "uint8"), "int32").dtype == torch.uint8


def test_a_slot_without_values_is_an_error() -> None:
    with pytest.raises(ValueError, match="argument self has no values"):
        Values({}).value(slot((2,), ""), "float32")


def test_a_slot_outside_its_pool_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"wants elements 8\.\.12 of pool 'int64', which has 10"):
        Values({"int64": torch.arange(10)}).value(slot((4,), "int64", 8), "int64")
