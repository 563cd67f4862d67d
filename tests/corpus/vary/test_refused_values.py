"""Samples that CPU refuses because of the values of one argument."""

from __future__ import annotations

from conformance.corpus.vary.hard_values import generate
from tests.corpus.vary.test_hard_values import made, made_in_a_child, values
from tests.generated import made_by


def test_a_refused_value_must_be_refused_without_an_optional_argument_too() -> None:
    found = [s for s in made("repeat_interleave.Tensor") if s.raises and s.base == "int64"]
    assert {dict(s.kwargs).get("output_size") is None for s in found} == {True, False}
    assert all((values(s, "repeats", "int64") < 0).any() for s in found)
    assert not any(s.raises for s in made("sum.dim_IntList"))


def test_an_index_out_of_bounds_is_refused_below_beyond_and_at_the_last_element_alone() -> None:
    first = next(s.name.rpartition("hard=")[0] for s in made("gather") if s.raises)
    own = (s for s in made("gather") if s.raises and s.name.startswith(first) and "1031" not in s.name)
    refused = {s.name.removeprefix(f"{first}hard="): s for s in own}
    assert refused.keys() == {f"index.{value}.refused" for value in ("min", "-1", "70001", "last.-1")}
    last = values(refused["index.last.-1.refused"], "index", "int64").flatten()
    assert last[-1] == -1
    assert bool((last[:-1] >= 0).all())


def test_an_index_that_is_refused_in_one_form_is_not_counted_from_the_end_in_another() -> None:
    found = made_in_a_child("nll_loss_backward")
    names = [s.name.rpartition("hard=target.")[2] for s in found if "hard=target." in s.name]
    assert {"-1.refused", "last.-1.refused"} <= set(names)
    assert "last.-1" not in names, "CPU does not check the targets of a loss that is not reduced"
    assert any(s.name.endswith("hard=indices[0].last.-1") for s in made("index.Tensor"))


def test_what_a_number_beyond_half_is_written_as_is_left_to_the_op() -> None:
    refused = [s for s in made("masked_fill.Tensor_out") if "hard=value" in s.name and s.raises]
    assert not any("float16" in s.dtypes for s in refused)


def test_an_argument_that_is_to_keep_its_values_is_not_refused_for_others() -> None:
    assert not any(s.raises for s in made("logspace.Tensor_Tensor"))


def test_the_rates_of_a_random_op_keep_their_values_but_where_they_are_refused() -> None:
    assert {s.tensors[0].fill for s in made("poisson") if s.raises} == {"hard/all/-inf", "hard/all/nan"}
    assert all(s.raises for s in made("poisson"))


def test_an_index_out_of_bounds_is_refused_where_a_dimension_is_long() -> None:
    # With 65,603 indices, CPU would write 65,603 rows for each index, which takes more than 10 seconds per call.
    found = made_by(generate, "index_fill_.int_Scalar", most=100_000)
    refused = [s for s in found if s.raises and s.name.endswith("1031.refused")]
    shapes = {tuple(t.shape for t in s.tensors) for s in refused}
    assert ((5, 1031), (5,)) in shapes
    assert all(values(s, "index", "int64").view(-1)[-1] == 70001 for s in refused)
