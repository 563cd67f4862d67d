"""The tensors of a call, and their comparison with eager's."""

from __future__ import annotations

import math

import torch

from conformance.aoti.compare import difference, first_difference, tolerance
from conformance.aoti.inputs import make
from conformance.aoti.model import Given

EXAMPLE = torch.arange(8.0).reshape(2, 4)


def given(size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0, dtype: str = "float32") -> Given:
    return Given(0, size, stride, offset, dtype, "cpu")


def test_other_strides_keep_the_values() -> None:
    (made,) = make([given((2, 4), (1, 2), 3)], [EXAMPLE])
    assert (made.stride(), made.storage_offset()) == ((1, 2), 3)
    assert torch.equal(made, EXAMPLE)


def test_other_sizes_get_values_of_the_example() -> None:
    (made,) = make([given((50, 4), (4, 1))], [EXAMPLE])
    assert set(made.flatten().tolist()) <= set(EXAMPLE.flatten().tolist())
    assert len(set(made.flatten().tolist())) > 1


def test_an_expanded_tensor_repeats_its_rows() -> None:
    (made,) = make([given((2, 4), (0, 1))], [EXAMPLE])
    assert torch.equal(made[0], made[1])


def test_the_same_call_gets_the_same_tensors() -> None:
    one, other = (make([given((9,), (2,))], [EXAMPLE])[0] for _ in range(2))
    assert torch.equal(one, other)
    assert one.data_ptr() != other.data_ptr()


def test_dtype_and_device_are_as_given() -> None:
    half, nowhere = make([given((2, 4), (4, 1), 0, "float16"), Given(0, (2, 4), (4, 1), 0, "bool", "meta")], [EXAMPLE])
    assert half.dtype is torch.float16
    assert (nowhere.device.type, nowhere.dtype) == ("meta", torch.bool)


def test_an_empty_input_can_be_made() -> None:
    assert make([given((0, 4), (4, 1))], [EXAMPLE])[0].shape == (0, 4)
    assert make([given((3,), (1,))], [torch.empty(0)])[0].tolist() == [0, 0, 0]


def test_rounding_is_no_difference_and_more_is() -> None:
    bound = tolerance(torch.float32)
    assert difference(EXAMPLE, EXAMPLE + 0.5 * bound * 7) == ""
    assert "8 of 8 values differ" in difference(EXAMPLE, EXAMPLE + 2 * bound * 7)


def test_integers_and_masks_are_compared_exactly() -> None:
    assert tolerance(torch.int64) == 0
    assert difference(torch.tensor([1, 2]), torch.tensor([1, 3])) == "1 of 2 values differ: 3 at [1], eager has 2"
    assert difference(torch.tensor([True]), torch.tensor([True])) == ""


def test_infinities_and_nans_are_where_eager_has_them() -> None:
    values = torch.tensor([1.0, math.inf, math.nan])
    assert difference(values, values.clone()) == ""
    assert "1 of 3" in difference(values, torch.tensor([1.0, math.inf, 0.0]))
    assert "1 of 3" in difference(values, torch.tensor([1.0, -math.inf, math.nan]))
    assert "1 of 3" in difference(values, torch.tensor([math.nan, math.inf, math.nan]))


def test_sizes_dtypes_devices_and_counts_are_compared() -> None:
    assert difference(EXAMPLE, EXAMPLE[:1]) == "shape [1, 4], eager has [2, 4]"
    assert difference(EXAMPLE, EXAMPLE.half()) == "dtype torch.float16, eager has torch.float32"
    assert difference(EXAMPLE.to("meta"), EXAMPLE) == "device cpu, eager has meta"
    assert first_difference([EXAMPLE], []) == "0 outputs, eager has 1"
    assert first_difference([EXAMPLE, 1], [EXAMPLE, 2]) == "output 1: 2, eager has 1"


def test_numbers_that_are_both_nan_are_equal() -> None:
    assert difference(math.nan, math.nan) == ""
    assert difference(math.nan, 1.0) == "1.0, eager has nan"
    assert difference(1, 1.0) == "1.0, eager has 1"
