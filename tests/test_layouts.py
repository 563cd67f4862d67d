"""The placement of a shape in each layout."""

from __future__ import annotations

from random import Random

import pytest

from conformance import layouts
from conformance.layouts import LAYOUTS, MIXABLE, PLACERS, Placement, contiguous_stride, place

SHAPES = [(), (1,), (5,), (2, 3), (3, 1), (2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 3, 2), (0, 3), (3, 0)]


def reached(placement: Placement) -> set[int]:
    """Return the storage positions that the view reaches."""
    positions = {placement.offset} if all(placement.size) else set()
    for size, stride in zip(placement.size, placement.stride, strict=True):
        positions = {p + i * stride for p in positions for i in range(size)}
    return positions


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", PLACERS)
def test_no_layout_reaches_outside_its_storage(layout: str, shape: tuple[int, ...]) -> None:
    placement = place(layout, shape)
    if placement is not None:
        assert reached(placement) <= set(range(placement.storage))


@pytest.mark.parametrize("layout", sorted(set(PLACERS) - {"zero_size", "zero_dim"}))
def test_a_layout_keeps_the_shape(layout: str) -> None:
    placement = place(layout, (2, 3, 4, 5))
    assert placement is not None
    assert placement.size == (2, 3, 4, 5)


@pytest.mark.parametrize("layout", ["transposed", "channels_last", "step2", "outer_gap", "expanded", "overlapping"])
def test_a_strided_layout_is_not_contiguous(layout: str) -> None:
    placement = place(layout, (2, 3, 4, 5))
    assert placement is not None
    assert placement.stride != contiguous_stride(placement.size)


@pytest.mark.parametrize("layout", ["step2", "outer_gap", "offset1", "offset_gap"])
def test_a_layout_with_gaps_leaves_bytes_that_must_not_move(layout: str) -> None:
    placement = place(layout, (2, 3, 4))
    assert placement is not None
    assert len(reached(placement)) < placement.storage


@pytest.mark.parametrize(("layout", "distinct"), [("expanded", 12), ("overlapping", 13)])
def test_elements_share_memory_where_the_layout_says_so(layout: str, distinct: int) -> None:
    placement = place(layout, (2, 3, 4))
    assert placement is not None
    assert len(reached(placement)) == distinct


def test_offset_gap_has_a_tail_behind_the_view() -> None:
    placement = place("offset_gap", (2, 3))
    assert placement is not None
    assert max(reached(placement)) < placement.storage - 1
    assert placement.offset > 0


@pytest.mark.parametrize("shape", [(2, 3), (5, 1), (1, 7), (2, 3, 4), (2, 1, 3, 4, 5)])
def test_an_inner_part_is_what_a_slice_of_rows_and_columns_gives(shape: tuple[int, ...]) -> None:
    import torch

    whole = torch.empty(*shape[:-2], shape[-2] + 3, shape[-1] + 3)
    part = whole[..., 1:-2, 2:-1]
    placement = layouts.inner_part(shape)
    assert placement is not None
    assert (placement.size, placement.stride) == (tuple(part.shape), part.stride())
    assert (placement.offset, placement.storage) == (part.storage_offset(), whole.numel())


@pytest.mark.parametrize("shape", [(), (4,), (0, 3), (1, 1)])
def test_a_shape_without_rows_of_several_elements_has_no_inner_part(shape: tuple[int, ...]) -> None:
    assert layouts.inner_part(shape) is None


def test_channels_last_is_what_torch_calls_so() -> None:
    import torch

    expected = torch.empty(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    placement = place("channels_last", (2, 3, 4, 5))
    assert placement is not None
    assert placement.stride == expected.stride()


SHAPES_OF_IMAGES = [(2, 33, 5, 7), (3, 64, 9, 8), (2, 5, 3, 9, 8)]


@pytest.mark.parametrize("shape", SHAPES_OF_IMAGES)
def test_channels_last_inside_a_storage_has_elements_on_both_sides(shape: tuple[int, ...]) -> None:
    placement, dense = layouts.channels_last_inside(shape), place("channels_last", shape)
    assert placement is not None
    assert dense is not None
    assert (placement.size, placement.stride, placement.layout) == (shape, dense.stride, dense.layout)
    assert min(reached(placement)) == shape[1]
    assert max(reached(placement)) < placement.storage - 1


@pytest.mark.parametrize("shape", SHAPES_OF_IMAGES)
def test_a_channel_slice_has_the_strides_of_a_tensor_with_more_channels(shape: tuple[int, ...]) -> None:
    placement, more = layouts.channel_slice(shape), place("channels_last", (shape[0], shape[1] + 3, *shape[2:]))
    assert placement is not None
    assert more is not None
    assert (placement.size, placement.stride, placement.storage) == (shape, more.stride, more.storage)
    assert reached(placement) <= set(range(placement.storage))
    assert (min(reached(placement)), max(reached(placement))) == (3, placement.storage - 1)


@pytest.mark.parametrize("shape", [(), (2, 3), (2, 1, 4, 5), (2, 8, 1, 1)])
def test_a_shape_without_channels_has_neither_an_offset_nor_a_slice(shape: tuple[int, ...]) -> None:
    assert layouts.channels_last_inside(shape) is None
    assert layouts.channel_slice(shape) is None


def test_a_written_argument_is_never_a_sliding_window_but_may_be_expanded() -> None:
    assert place("overlapping", (2, 3), written=True) is None
    assert place("expanded", (2, 3), written=True) is not None


@pytest.mark.parametrize(("layout", "shape"), [("transposed", (5,)), ("channels_last", (2, 3)), ("zero_dim", ())])
def test_a_layout_that_means_nothing_for_a_shape_is_not_placed(layout: str, shape: tuple[int, ...]) -> None:
    assert place(layout, shape) is None


def test_bits_are_for_the_dtypes_that_can_carry_them() -> None:
    assert layouts.carries("conj", "complex64")
    assert not layouts.carries("conj", "float32")
    assert layouts.carries("neg", "float32")
    assert not layouts.carries("neg", "int64")


def test_the_catalogue_lists_every_placer_and_deals_only_from_it() -> None:
    others = {
        layouts.ALIASED,
        layouts.MIXED,
        layouts.BROADCAST,
        layouts.AS_STRIDED,
        layouts.SEQUENCE,
        *layouts.GENERATED,
        *layouts.CONTEXTS,
    }
    assert set(PLACERS) | others == set(LAYOUTS)
    assert {layout for _, layout in layouts.GENERATED.values()} <= {*PLACERS, layouts.AS_STRIDED, layouts.CHANNEL_SLICE}
    assert set(MIXABLE) <= set(PLACERS)


def draws(shape: tuple[int, ...], written: bool = False, count: int = 200) -> list[Placement]:
    return [p for seed in range(count) if (p := layouts.drawn(shape, Random(seed), written))]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_drawn_placement_stays_within_its_storage(shape: tuple[int, ...]) -> None:
    for placement in draws(shape):
        assert reached(placement) <= set(range(placement.storage))
        assert placement.size == shape


def test_draws_have_every_order_gaps_offsets_and_strides_of_one() -> None:
    found = draws((2, 3, 1, 4))
    dense = [p for p in found if not p.several_indices]
    assert len({tuple(sorted((0, 1, 3), key=lambda d, p=p: p.stride[d])) for p in dense}) == 6  # type: ignore[misc]
    assert any(len(reached(p)) < max(reached(p)) - min(reached(p)) + 1 for p in found)
    assert {p.offset * 4 % 64 for p in found} > {0, 4, 16}
    assert {p.stride[2] for p in found} == {0, 1, 2, 7, 100, 4096}
    assert len({p.storage - max(reached(p)) for p in found}) > 1


def test_a_drawn_placement_of_a_written_argument_has_an_element_for_each_index() -> None:
    assert any(p.several_indices for p in draws((2, 3, 4)))
    for placement in draws((2, 3, 4), written=True):
        assert len(reached(placement)) == 24
        assert not placement.several_indices


def test_a_shape_without_elements_is_not_drawn() -> None:
    assert draws((0, 3)) == []


@pytest.mark.parametrize(("layout", "several"), [("expanded", True), ("overlapping", True), ("step2", False)])
def test_a_placement_knows_whether_indices_share_an_element(layout: str, several: bool) -> None:
    placement = place(layout, (2, 3))
    assert placement is not None
    assert placement.several_indices is several


def test_what_is_said_of_a_layout_holds_for_drawn_placements_that_combine_it() -> None:
    assert layouts.is_among("expanded", ("expanded",))
    assert layouts.is_among(layouts.AS_STRIDED, ("expanded",))
    assert not layouts.is_among(layouts.AS_STRIDED, ("aliased", "zero_size"))
    assert not layouts.is_among("transposed", ("expanded",))
