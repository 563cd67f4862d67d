"""Samples in which an integer argument counts many elements."""

from __future__ import annotations

import pytest

from conformance.corpus.model import Sample
from conformance.corpus.vary.counts import COUNT, LENGTH, generate
from tests.generated import made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


@pytest.mark.parametrize("overload", ["topk", "kthvalue", "multinomial"])
def test_a_long_row_has_a_large_count(overload: str) -> None:
    found = made(overload)
    assert found
    assert all(LENGTH in s.tensors[0].shape and s.args[1] == COUNT for s in found)


def test_dimensions_and_tied_sizes_are_no_counts() -> None:
    assert not made("cumsum")
    assert not made("native_layer_norm")
