"""The part of an overload's cells that a tier takes."""

from __future__ import annotations

import pytest

from conformance.layouts import GENERATED
from conformance.plan.tiers import TIERS, Share
from conformance.vocabulary import CellId, Route

LAYOUTS = ("contiguous", "transposed", "step2", "values", "sizes", "second_device")


def cells(overload: str, *dtypes: str) -> list[CellId]:
    return [CellId("f", overload, dtype, layout) for dtype in dtypes for layout in LAYOUTS]


def taken(share: Share, *dtypes: str, overload: str = "op") -> set[tuple[str, str]]:
    return {(c.dtype, c.layout) for c in share.of(cells(overload, *dtypes))}


def test_without_limits_all_layouts_of_the_first_dtype_and_few_of_each_other_are_taken() -> None:
    found = taken(Share(True), "bool", "float16", "float32")
    assert found == {
        *(("float32", layout) for layout in LAYOUTS),
        *((dtype, layout) for dtype in ("bool", "float16") for layout in ("contiguous", "values", "second_device")),
    }


def test_the_only_way_to_a_kernel_is_taken_as_a_native_overload_is_where_those_are_taken_whole() -> None:
    full, smoke = TIERS["full"], TIERS["smoke"]
    assert full.share(Route.COMPOSITE).most("values_strided") == 24
    assert full.share(Route.COMPOSITE, only_way=True) == full.share(Route.NATIVE) == Share()
    assert smoke.share(Route.COMPOSITE, only_way=True) == smoke.share(Route.COMPOSITE)


@pytest.mark.parametrize(
    ("dtypes", "first"),
    [(("bool", "float32", "int64"), "float32"), (("bool", "int64"), "int64"), (("uint8", "complex64"), "complex64")],
)
def test_the_first_dtype_is_the_same_in_every_run(dtypes: tuple[str, ...], first: str) -> None:
    assert {d for d, layout in taken(Share(True), *dtypes) if layout == "transposed"} == {first}


def test_with_limits_the_other_layouts_and_dtypes_differ_between_overloads() -> None:
    share = Share(True, layouts=1, dtypes=1)
    found = [taken(share, "float32", "int8", "int16", overload=f"op{i}") for i in range(20)]
    layouts = [{layout for d, layout in one if d == "float32"} & {"transposed", "step2"} for one in found]
    dtypes = [{d for d, layout in one if layout == "contiguous"} - {"float32"} for one in found]
    assert all(len(names) == 1 for names in (*layouts, *dtypes))
    assert set.union(*layouts) == {"transposed", "step2"}
    assert set.union(*dtypes) == {"int8", "int16"}


def test_every_pair_of_a_dtype_and_a_layout_is_taken_unless_one_at_a_time_is_asked_for() -> None:
    assert Share().of(cells("op", "bool", "float32")) == cells("op", "bool", "float32")


def test_cells_of_contexts_alone_are_all_taken() -> None:
    alone = [CellId("f", "op", "int8", "second_device")]
    assert Share(True, 1, 1).of(alone) == alone
    assert Share(True, 1, 1).of([]) == []


def test_the_number_of_samples_depends_on_the_layout() -> None:
    share = Share(samples={"": 2, "sizes": 6})
    assert [share.most(layout) for layout in ("step2", "sizes", "values")] == [2, 6, 2]
    assert Share(samples={"sizes": 6}).most("step2") is None


def test_larger_tiers_take_every_cell_and_every_sample_of_the_corpus() -> None:
    for name in ("wide", "full"):
        shares = [TIERS[name].share(route) for route in Route]
        assert TIERS[name].share(Route.NATIVE) == Share()
        assert not any(share.one_at_a_time for share in shares)
        assert all(share.most("contiguous") is None for share in shares)


def test_the_smoke_tier_limits_every_cell_of_every_route() -> None:
    for share in map(TIERS["smoke"].share, Route):
        assert share.one_at_a_time
        assert all(share.most(layout) for layout in ("contiguous", *GENERATED))
