"""Samples in which an integer argument counts many elements."""

from __future__ import annotations

import pytest

from conformance.corpus.model import Sample
from conformance.corpus.vary.counts import LENGTHS, generate
from tests.generated import made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


@pytest.mark.parametrize("overload", ["topk", "kthvalue", "multinomial"])
def test_a_long_row_has_a_large_count_and_a_count_of_all(overload: str) -> None:
    found = made(overload)
    for length, count in LENGTHS:
        assert any(length in s.tensors[0].shape and s.args[1] == count for s in found)
    assert all((max(s.tensors[0].shape), s.args[1]) in LENGTHS for s in found)


def test_dimensions_and_tied_sizes_are_no_counts() -> None:
    assert not made("cumsum")
    assert not made("native_layer_norm")
