"""The properties of a call of a recorded model: copied bytes, dtype, strides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.corpus.model import DtypeArg
from conformance.layouts import Placement
from conformance.models.model import itemsize
from tests.models.calls import call, slot


def test_a_fallback_copies_whole_storages_down_and_what_is_written_or_new_up() -> None:
    written = slot(0, (4,), written=True)
    view = slot(1, (2,), "float16")
    found = call("op_", written, view, made=7, placed=(*call("", written).placements, Placement("r", (2,), (1,), 3, 9)))
    assert found.copied == (16 + 18) + 16 + 7


def test_a_storage_of_two_arguments_is_copied_once_and_the_host_s_not_at_all() -> None:
    found = call("op", slot(0, (4,)), slot(1, (4,), pool="s0"), slot(2, (4,), on_host=True))
    assert found.copied == 16


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [(("bool", "float32"), {"float32"}), (("bfloat16", "int64"), {"bfloat16"}), (("int64", "bool"), {"int64", "bool"})],
)
def test_a_call_is_about_its_floating_arguments_if_it_has_any(dtypes: tuple[str, ...], expected: set[str]) -> None:
    assert call("op", *(slot(i, dtype=dtype) for i, dtype in enumerate(dtypes))).dtypes == expected


def test_a_call_without_tensors_on_the_device_is_about_the_dtype_that_it_names() -> None:
    found = call("zeros", slot(on_host=True))
    sample = replace(found.sample, kwargs=(("dtype", DtypeArg("int64")),))
    assert replace(found, sample=sample).dtypes == {"int64"}


def test_a_call_is_strided_if_an_argument_on_the_device_is() -> None:
    transposed = Placement("recorded", (2, 3), (1, 2), 0, 6)
    assert call("op").is_contiguous
    assert not call("op", placed=(transposed,)).is_contiguous
    assert call("op", slot(on_host=True), placed=(transposed,)).is_contiguous


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("bool", 1), ("uint8", 1), ("bfloat16", 2), ("float8_e4m3fn", 1), ("int64", 8), ("complex64", 8)],
)
def test_the_size_of_an_element_follows_from_its_name(dtype: str, size: int) -> None:
    assert itemsize(dtype) == size
