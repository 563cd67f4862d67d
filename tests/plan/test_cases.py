"""Cells and cases, and their ids."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.corpus.model import Sample
from conformance.plan.case import Case
from conformance.plan.cases import cases, cells
from conformance.plan.tiers import TIERS
from conformance.vocabulary import TIERS as VOCABULARY
from conformance.vocabulary import CellId
from tests.samples import sample, slot

ADD = sample("add.Tensor", slot(0, "self", (2, 3)), slot(1, "other", (2, 3)))
ADD_ = sample("add_.Tensor", slot(0, "self", (2, 3), written=True), slot(1, "other", (2, 3)))


def ids(layout: str, one: Sample = ADD, pointwise: bool = False) -> list[str]:
    found = cases(CellId("f", one.overload, "float32", layout), [one], pointwise=pointwise)
    return [c.id.partition("#")[2] for c in found]


def test_a_contiguous_cell_has_one_case_for_each_sample() -> None:
    assert ids("contiguous") == ["hand.made"]


def test_a_layout_is_given_to_all_arguments_and_to_each_alone() -> None:
    assert ids("transposed") == ["hand.made@all", "hand.made@self", "hand.made@other"]


def test_only_pointwise_ops_get_a_size_changing_layout_on_one_argument() -> None:
    assert ids("zero_dim") == ["hand.made@all"]
    assert ids("zero_dim", pointwise=True) == ["hand.made@all", "hand.made@self", "hand.made@other"]


def sizes(layout: str, one: Sample) -> list[tuple[tuple[int, ...], ...]]:
    return [
        tuple(p.size for p in case.placements) for case in cases(CellId("f", one.overload, "float32", layout), [one])
    ]


def test_one_argument_has_one_column_and_two_a_column_and_a_row() -> None:
    assert ids("broadcast") == ["hand.made@self", "hand.made@other", "hand.made@selfxother"]
    assert sizes("broadcast", ADD) == [((2, 1), (2, 3)), ((2, 3), (2, 1)), ((2, 1), (1, 3))]


def test_what_is_written_is_whole_where_others_have_one_column() -> None:
    assert sizes("broadcast", ADD_) == [((2, 3), (2, 1))]


def test_arguments_broadcast_only_where_another_one_has_several_columns() -> None:
    column = sample("add.Tensor", slot(0, "self", (2, 3)), slot(1, "other", (2, 1)))
    assert ids("broadcast", column) == []


def test_only_overloads_that_broadcast_have_such_cells() -> None:
    def layouts_of(*, broadcasts: bool) -> set[str]:
        return {c.layout for c in cells("f", "add.Tensor", [ADD], pointwise=True, broadcasts=broadcasts)}

    assert layouts_of(broadcasts=True) - layouts_of(broadcasts=False) == {"broadcast"}


def test_aliased_arguments_are_one_tensor_or_overlapping_views_or_lie_in_other_strides() -> None:
    assert ids("aliased") == ["hand.made@self=other", "hand.made@self~other", "hand.made@self^other"]


def test_views_of_one_storage_in_other_strides_reach_all_of_it() -> None:
    for shape, stride, storage in (((2, 3), (1, 2), 6), ((4,), (2,), 8)):
        two = sample("add.Tensor", slot(0, "self", shape), slot(1, "other", shape))
        case = cases(CellId("f", "add.Tensor", "float32", "aliased"), [two])[-1]
        one, other = case.placements
        assert case.shared == ((1, 0, 0),)
        assert one.stride != other.stride == stride
        assert one.storage == other.storage == storage


def test_a_written_argument_never_overlaps_another_in_part() -> None:
    assert ids("aliased", ADD_) == ["hand.made@self=other", "hand.made@self+other", "hand.made@self&other"]


def two_outs(shape: tuple[int, ...], dtype: str | None = None, pool: str = "") -> Sample:
    first = slot(1, "min", (2, 3), written=True)
    second = slot(2, "max", shape, dtype=dtype, written=True)
    return sample(
        "aminmax.out", slot(0, "self", (4,), dtype="uint8"), replace(first, pool=""), replace(second, pool=pool)
    )


def test_a_square_that_is_written_is_read_along_its_columns() -> None:
    one = sample("addmm_", slot(0, "self", (2, 3, 3), written=True), slot(1, "mat1", (2, 3, 3)))
    case = next(c for c in cases(CellId("f", "addmm_", "float32", "aliased"), [one]) if c.variant == "self%mat1")
    assert case.shared == ((1, 0, 0),)
    assert case.placements[1].stride == (9, 1, 3)
    flat = sample("addmm_", slot(0, "self", (2, 3), written=True), slot(1, "mat1", (2, 3)))
    assert not any("%" in found for found in ids("aliased", flat))


def test_two_written_arguments_lie_behind_each_other_and_in_turns_in_one_storage() -> None:
    behind, in_turns = cases(CellId("f", "aminmax.out", "float32", "aliased"), [two_outs((2, 3))])
    assert [c.variant for c in (behind, in_turns)] == ["min+max", "min&max"]
    assert (behind.shared, in_turns.shared) == (((2, 1, 6),), ((2, 1, 1),))
    for case in (behind, in_turns):
        assert case.placements[1].storage == 12
    assert [p.stride for p in in_turns.placements[1:]] == [(6, 2), (6, 2)]


def test_written_arguments_of_other_sizes_lie_behind_each_other_alone() -> None:
    assert ids("aliased", two_outs((5,))) == ["hand.made@min+max"]


def test_written_arguments_that_are_not_alike_share_no_storage() -> None:
    assert ids("aliased", two_outs((2, 3), dtype="int64")) == []
    assert ids("aliased", two_outs((2, 3), pool="float32")) == []


def test_an_input_lies_in_front_of_an_out_in_one_storage() -> None:
    out = replace(slot(2, "out", (2, 3), written=True), pool="")
    one = sample("add.out", slot(0, "self", (2, 3)), slot(1, "other", (2, 3)), out)
    found = cases(CellId("f", one.overload, "float32", "aliased"), [one])
    assert [c.variant for c in found if not c.variant.startswith("self") or "out" in c.variant] == ["self+out"]
    assert found[-1].shared == ((2, 0, 6),)


def test_an_input_that_may_be_an_index_does_not_lie_behind_a_written_argument() -> None:
    index = slot(1, "index", (2, 3), dtype="int64")
    assert ids("aliased", sample("put_", slot(0, "self", (2, 3), dtype="int64", written=True), index)) == [
        "hand.made@self=index"
    ]


def test_an_argument_without_dimensions_is_an_element_of_another_one() -> None:
    one = sample("add.Tensor", slot(0, "self", (2, 3)), slot(1, "other", ()))
    (case,) = cases(CellId("f", one.overload, "float32", "aliased"), [one])
    assert case.id.endswith("@self:other")
    assert case.shared == ((1, 0, 5),)


@pytest.mark.parametrize(
    ("overload", "name", "judged"), [("fill_.Tensor", "value", True), ("add_.Tensor", "other", False)]
)
def test_of_a_written_argument_only_its_value_may_be_an_element(overload: str, name: str, judged: bool) -> None:
    one = sample(overload, slot(0, "self", (2, 3), written=True), slot(1, name, ()))
    assert any(":" in found for found in ids("aliased", one)) == judged


def test_an_argument_that_lies_on_the_host_is_no_element_of_another_one() -> None:
    one = sample("randint_like.Tensor", slot(0, "self", (2, 3)), slot(1, "high", ()))
    assert ids("aliased", one) == []


def test_an_out_argument_is_an_input_of_a_pointwise_op_alone() -> None:
    out = sample("add.out", slot(0, "self", (2, 3)), slot(1, "out", (2, 3), written=True))
    assert ids("aliased", out) == []
    assert ids("aliased", out, pointwise=True) == ["hand.made@self=out"]


def test_an_out_argument_without_values_is_an_input_too() -> None:
    out = sample("add.out", slot(0, "self", (2, 3)), replace(slot(1, "out", (2, 3), written=True), pool=""))
    assert ids("aliased", out, pointwise=True) == ["hand.made@self=out", "hand.made@self+out"]


def test_the_layout_mixed_gives_each_argument_another_layout() -> None:
    for case in cases(CellId("f", "add.Tensor", "float32", "mixed"), [ADD]):
        assert len({p.layout for p in case.placements}) == 2


def test_a_case_id_does_not_depend_on_other_samples() -> None:
    other = replace(ADD, name="another")
    cell = CellId("f", "add.Tensor", "float32", "transposed")
    alone = {c.id for c in cases(cell, [ADD])}
    assert alone <= {c.id for c in cases(cell, [other, ADD])}


def test_every_cell_has_a_case() -> None:
    for cell in cells("f", "add.Tensor", [ADD]):
        assert cases(cell, [ADD], pointwise=True), str(cell)


@pytest.mark.parametrize("layout", ["conj", "channels_last"])
def test_a_layout_that_fits_no_argument_makes_no_cell(layout: str) -> None:
    assert layout not in {c.layout for c in cells("f", "add.Tensor", [ADD])}


def test_a_cell_has_at_most_as_many_samples_as_are_asked_for() -> None:
    samples = [replace(ADD, name=name) for name in ("one", "two", "three")]
    cell = cells("f", "add.Tensor", samples)[0]
    taken: list[list[Case]] = [cases(cell, samples, most) for most in (1, 2, None)]
    assert [{c.sample.name for c in found} for found in taken] == [{"one"}, {"one", "two"}, {"one", "two", "three"}]


def test_a_sample_runs_only_in_its_dtypes() -> None:
    assert not cases(CellId("f", "add.Tensor", "int64", "contiguous"), [ADD])


def test_a_cell_is_parsed_from_its_id_and_other_text_is_refused() -> None:
    cell = CellId("masking", "masked_fill_.Scalar", "float32", "expanded")
    assert CellId.parse(str(cell)) == cell
    assert CellId.parse("tests/test_x.py::test_y[1-2]") is None


def test_every_tier_of_the_vocabulary_is_defined() -> None:
    assert {name: tier.name for name, tier in TIERS.items()} == dict(zip(VOCABULARY, VOCABULARY, strict=True))
