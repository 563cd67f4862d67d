"""Values for samples of other sizes."""

from __future__ import annotations

import pytest
import torch

from conformance.corpus.model import Sample
from conformance.corpus.places import Extent, Place, resized
from conformance.corpus.vary.fills import filled, of_one_shape
from conformance.corpus.vary.sizes import generate
from tests.generated import corpus, made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def test_an_argument_of_a_dtype_that_cpu_cannot_truncate_is_filled() -> None:
    source = next(s for s in corpus().samples("_scaled_mm") if (s.tensors[0].dtype or "").startswith("float8"))
    change: dict[Place, int] = {Extent(0, 0): 40}
    (found,) = filled(source, resized(source, change), change, corpus())
    assert (found.tensors[0].shape, found.tensors[0].fill) == ((40, 16), "jitter")


def test_an_index_reaches_the_end_of_the_dimension_that_grew() -> None:
    grown = [s for s in made("index_select") if s.tensors[0].shape == (65537,)]
    values = [corpus().value(s.tensors[1], "float32") for s in grown if s.tensors[1].numel > 20]
    assert not values or max(int(v.max()) for v in values) > 4097


@pytest.mark.parametrize("overload", ["scatter_.src", "index_put_", "index_copy_"])
def test_an_index_names_no_element_twice_where_the_last_write_wins(overload: str) -> None:
    found = [s for s in made(overload) if any(t.fill.startswith("rows/") and t.numel for t in s.tensors)]
    assert found
    for s in found:
        (index,) = (t for t in s.tensors if t.fill.startswith("rows/"))
        value = corpus().value(index, s.dtypes[0])
        dim = s.args[1] if overload != "index_put_" and value.dim() else -1
        assert isinstance(dim, int)
        named = value.movedim(dim, -1).reshape(-1, value.shape[dim]).tolist() if value.dim() else []
        assert all(len(set(one)) == len(one) for one in named), s.name


def test_an_index_along_a_dimension_may_be_longer_in_another_one() -> None:
    """In ``scatter`` along dimension 0, a column of the index names each element once; a row may repeat an element."""
    (source,) = (s for s in corpus().samples("scatter.src_out") if s.name == "opinfo.scatter.out.27032842")
    wide: dict[Place, int] = {Extent(slot, 1): 33 for slot in (0, 1, 2)}
    assert [s.tensors[1].fill for s in filled(source, resized(source, wide), wide, corpus())] == [
        "rows/33/33",
        "rows/33/10",
        "rows/33/5",
    ]
    long: dict[Place, int] = {Extent(slot, 0): 33 for slot in (1, 2)}
    assert [s.tensors[1].fill for s in filled(source, resized(source, long), long, corpus())] == ["rows/5/33"]


def test_counts_stay_whole() -> None:
    found = [t for s in made("binomial") for t in s.tensors if t.name == "count" and t.fill]
    assert {t.fill for t in found} == {"choose"}
    drawn = torch.cat([corpus().value(t, "float32").view(-1) for t in found])
    assert torch.equal(drawn, drawn.trunc())


def test_tensors_of_one_shape_have_the_values_that_were_stored_however_often_they_are_filled() -> None:
    source = next(
        s for s in corpus().samples("atan2") if len({t.shape for t in s.tensors}) == 2 and s.base == "float32"
    )
    once = of_one_shape(source, corpus())
    twice = next(filled(once, resized(once, {Extent(t.index, 0): 90 for t in once.tensors}), {}, corpus()))
    assert len({t.shape for t in once.tensors}) == len({t.shape for t in twice.tensors}) == 1
    assert [t.source for t in twice.tensors] == [t.numel for t in source.tensors]
    assert of_one_shape(once, corpus()) is once
