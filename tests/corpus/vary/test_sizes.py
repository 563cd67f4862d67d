"""The free sizes of a sample, and the samples made by changing them."""

from __future__ import annotations

import pytest

from conformance.corpus.model import Sample
from conformance.corpus.places import label
from conformance.corpus.vary.sizes import Maker, generate
from conformance.corpus.vary.sources import OTHER_DTYPES, sources
from conformance.corpus.vary.trial import MOST_ELEMENTS, Trials
from tests.generated import corpus, made_by


def sample(overload: str, shapes: tuple[tuple[int, ...], ...]) -> Sample:
    """Return the sample of an overload whose tensors have these shapes."""
    return next(s for s in corpus().samples(overload) if tuple(t.shape for t in s.tensors) == shapes and not s.raises)


def groups(source: Sample) -> set[frozenset[str]]:
    """Return the free sizes of a sample, each as the set of the names of the places that change together."""
    found = Maker(Trials(corpus(), timed=False), corpus()).groups(source, source.dtypes[0])
    return {frozenset(label(source, [place]) for place in group.places) for group in found}


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def test_extents_that_must_agree_change_together() -> None:
    found = groups(sample("addmm", ((2, 3), (2, 2), (2, 3))))
    assert found == {
        frozenset({"self.0", "mat1.0"}),
        frozenset({"self.1", "mat2.1"}),
        frozenset({"mat1.1", "mat2.0"}),
    }


def test_an_integer_argument_follows_its_dimension() -> None:
    found = [group for s in sources(corpus().samples("native_layer_norm"), corpus()) for group in groups(s)]
    assert any({"input.1", "arg1.0", "weight.0"} <= group for group in found)


def test_a_factory_has_sizes_among_its_arguments_alone() -> None:
    found = made("zeros")
    assert found
    assert all(not s.tensors or not any(t.pool for t in s.tensors) for s in found)


@pytest.mark.parametrize("overload", ["masked_fill_.Scalar", "sum.dim_IntList", "_foreach_add.List", "index_select"])
def test_samples_reach_past_tiles_and_stay_within_bounds(overload: str) -> None:
    found = made(overload)
    largest = max(n for s in found for t in s.tensors for n in t.shape)
    assert largest == 65537
    assert max(sum(t.numel for t in s.tensors) for s in found) <= MOST_ELEMENTS
    assert len({s.name for s in found}) == len(found)
    assert {s.axis for s in found} == {"sizes"}
    assert max(len(s.dtypes) for s in found) == 1 + OTHER_DTYPES


def test_each_dimension_takes_a_size_of_one() -> None:
    shapes = {s.tensors[0].shape for s in made("cumsum") if s.name.endswith("=1")}
    assert {tuple(n == 1 for n in shape) for shape in shapes} >= {
        (True, False, False),
        (False, True, False),
        (False, False, True),
    }


def test_each_dimension_is_also_empty() -> None:
    shapes = {s.tensors[0].shape for s in made("cumsum") if s.name.endswith("=0")}
    assert {shape.index(0) for shape in shapes} == {0, 1, 2}


def test_the_same_samples_are_generated_every_time() -> None:
    assert made_by.__wrapped__(generate, "cat") == made("cat")  # without the cache


def test_every_dtype_of_a_source_has_a_size_past_the_usual_tiles() -> None:
    found = [s for s in made("sum.IntList_out") if max(t.numel for t in s.tensors if t.pool) > 1024]
    assert {"float16", "bfloat16", "float64", "uint8", "int8", "complex64"} <= {d for s in found for d in s.dtypes}


def test_sizes_that_are_equal_by_chance_change_alone_where_they_are_too_large_together() -> None:
    shapes = {(s.tensors[0].shape, s.tensors[1].shape) for s in made("index_select.out") if s.base == "int64"}
    assert {((5, 5), (n,)) for n in (1024, 4097)} <= shapes


def test_complex_samples_have_other_sizes_too() -> None:
    found = [s for s in made("mul.out") if s.base == "complex64"]
    assert max(t.numel for s in found for t in s.tensors) > 65536


def test_sizes_are_full_blocks_too_and_long_in_two_dimensions_at_once() -> None:
    shapes = {t.shape for s in made("trace") for t in s.tensors if t.pool}
    assert any(1024 in shape for shape in shapes)
    assert any(min(shape) > 512 for shape in shapes)


def test_the_largest_samples_have_what_is_searched_for_at_their_end_too() -> None:
    fills = {t.fill for s in made("argmin") for t in s.tensors if 65537 in t.shape}
    assert {"ascending", "descending"} <= fills
    assert not any(t.fill == "ascending" for s in made("neg") for t in s.tensors)


def test_the_largest_samples_have_narrow_indices_too() -> None:
    narrow = [s for s in made("embedding") if s.name.endswith(".int32")]
    assert narrow
    assert all(s.tensors[1].dtype == "int32" and 65537 in s.tensors[0].shape for s in narrow)


def test_dimensions_have_equal_sizes_in_some_sample() -> None:
    equal = {s.tensors[0].shape for s in made("roll") if len(set(s.tensors[0].shape)) == 1}
    assert {7, 37} <= {size for size, *more in equal if more}


def test_indices_that_name_no_element_twice_are_resized_with_all_other_sizes() -> None:
    (equal,) = (s for s in made("index_put") if s.name.endswith("247586ef.all=7x7x7"))
    assert [t.shape for t in equal.tensors] == [(7, 7, 7, 7), (7,), (7,), (7, 7, 7)]


def test_a_number_that_is_to_keep_its_value_is_no_size() -> None:
    source = next(s for s in corpus().samples("logspace.out") if s.base == "int64" and not s.raises)
    assert groups(source) == {frozenset({"arg2"})}
    ends = [t for s in made("logspace.Tensor_Tensor") for t in s.tensors if t.argument in ("start", "end")]
    assert ends
    assert not any(t.fill.startswith("below") for t in ends)


def test_bools_have_other_sizes_beside_other_dtypes_unless_each_element_is_alone() -> None:
    assert max(t.numel for s in made("sort.values_stable") for t in s.tensors if s.base == "bool") > 65536
    assert not any(s.base == "bool" for s in made("mul.out"))
