"""Samples with longer lists of tensors, and with more dimensions."""

from __future__ import annotations

from conformance.corpus.model import Sample
from conformance.corpus.vary.sizes import generate
from tests.generated import made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def test_lists_of_tensors_grow() -> None:
    assert max(len(s.args[0]) for s in made("_foreach_add.List") if isinstance(s.args[0], tuple)) == 70


def test_ranks_grow() -> None:
    assert {6, 9} <= {len(t.shape) for s in made("masked_fill_.Scalar") for t in s.tensors}


def test_a_list_of_indices_grows_with_the_dimensions_that_they_index() -> None:
    assert any(len([t for t in s.tensors if t.name.startswith("indices")]) == 5 for s in made("index.Tensor"))


def test_a_longer_list_takes_its_values_from_those_that_are_stored() -> None:
    found = [s for s in made("block_diag.out") if "list=" in s.name]
    assert found
    assert all(t.source <= 15 for s in found for t in s.tensors if t.pool)
