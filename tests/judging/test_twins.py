"""Twins: the same bytes on both sides, in separate storages, with poison in the bytes that hold no value."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from conformance import layouts
from conformance.corpus.model import TensorSlot
from conformance.judging import twins, views
from conformance.judging.twins import CPU, DeviceLacks, Twins
from conformance.judging.views import POISON, torch_dtype
from conformance.plan.case import Case
from conformance.plan.cases import cases
from conformance.vocabulary import CellId
from tests.samples import sample, slot
from tests.two_sides import value_of

SHAPE = (2, 3, 2, 2)
SINGLE = [*(name for name in layouts.PLACERS if name != "conj"), layouts.AS_STRIDED]


def one_argument(layout: str, dtype: str = "float32", written: bool = False) -> Case:
    one = sample("neg_" if written else "neg", slot(0, "self", SHAPE, written=written), dtypes=(dtype,))
    return cases(CellId("f", one.overload, dtype, layout), [one])[0]


def two_arguments(layout: str, variant: str) -> Case:
    one = sample("add.Tensor", slot(0, "self", (4,)), slot(1, "other", (4,)))
    return next(c for c in cases(CellId("f", "add.Tensor", "float32", layout), [one]) if c.variant == variant)


@pytest.mark.parametrize("layout", SINGLE)
def test_an_argument_has_the_placement_of_its_layout_and_the_sample_values(layout: str) -> None:
    case = one_argument(layout)
    (made,) = Twins(value_of).side(case, CPU).arguments
    placement = case.placements[0]
    assert (tuple(made.tensor.shape), made.tensor.stride()) == (placement.size, placement.stride)
    assert made.tensor.storage_offset() == placement.offset
    assert made.base.numel() == placement.storage * 4
    if layout not in ("expanded", "overlapping", "zero_dim", "zero_size"):
        assert torch.equal(made.tensor, value_of(made.slot, "float32"))


def test_an_argument_with_the_conj_bit_reads_as_the_sample_values() -> None:
    (made,) = Twins(value_of).side(one_argument("conj", "complex64"), CPU).arguments
    assert made.tensor.is_conj()
    assert torch.equal(made.tensor, value_of(made.slot, "complex64"))


def test_bytes_outside_of_an_argument_are_poison() -> None:
    case = one_argument("offset_gap")
    (made,) = Twins(value_of).side(case, CPU).arguments
    assert torch.all(made.base[: case.placements[0].offset * 4] == POISON)
    assert torch.isnan(made.base.view(torch.float32)[-1])


def test_twins_have_equal_bytes_in_separate_storages() -> None:
    twins = Twins(value_of)
    case = one_argument("step2", written=True)
    a, b = (twins.side(case, CPU).arguments[0] for _ in range(2))
    assert torch.equal(a.base, b.base)
    a.tensor.zero_()
    assert not torch.equal(a.base, b.base)
    assert torch.equal(b.base, a.before), "what a call writes must not reach the template"


def test_a_tensor_given_twice_is_one_object() -> None:
    a, b = Twins(value_of).side(two_arguments("aliased", "self=other"), CPU).args
    assert a is b


def test_overlapping_arguments_are_one_element_apart_in_one_storage() -> None:
    a, b = Twins(value_of).side(two_arguments("aliased", "self~other"), CPU).args
    assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    assert (a.storage_offset(), b.storage_offset()) == (0, 1)


def test_arguments_in_other_strides_are_views_of_one_storage() -> None:
    a, b = Twins(value_of).side(two_arguments("aliased", "self^other"), CPU).args
    assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    assert a.shape == b.shape
    assert a.stride() != b.stride()


@pytest.mark.parametrize(("variant", "elements"), [("self[0]+self[1]", (2, 3)), ("self[0]&self[1]", (1, 3))])
def test_of_two_written_arguments_in_one_storage_the_second_has_values_of_the_first(
    variant: str, elements: tuple[int, int]
) -> None:
    two = sample("hand", *(slot(i, f"self[{i}]", (2,), written=True) for i in range(2)))
    (case,) = [c for c in cases(CellId("f", "hand", "float32", "aliased"), [two]) if c.variant == variant]
    side = Twins(value_of).side(case, CPU)
    a, b = side.args
    assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    whole = side.arguments[0].base.view(torch.float32)
    values = value_of(two.tensors[0], "float32")
    assert torch.equal(a, values)
    assert torch.isin(b, values).all()
    a.fill_(7)
    b.fill_(8)
    assert (whole[0].item(), whole[elements[0]].item(), whole[elements[1]].item()) == (7, 8, 8)


def test_a_widened_side_has_the_same_numbers_in_the_wider_dtype() -> None:
    case = one_argument("transposed")
    (narrow,) = Twins(value_of).side(case, CPU).arguments
    (wide,) = Twins(value_of).side(case, CPU, lambda _: "float64").arguments
    assert wide.tensor.dtype == torch.float64
    assert wide.tensor.stride() == narrow.tensor.stride()
    assert torch.equal(wide.tensor, narrow.tensor.double())


@pytest.mark.parametrize(("layout", "parts"), [("conj", (1,)), ("neg", (0, 1))])
def test_zeros_under_a_conj_or_neg_bit_read_as_positive_zeros(layout: str, parts: tuple[int, ...]) -> None:
    def zeros(slot: TensorSlot, dtype: str) -> torch.Tensor:
        return torch.zeros(slot.shape, dtype=torch_dtype(dtype))

    (made,) = Twins(zeros).side(one_argument(layout, "complex64"), CPU).arguments
    stored = torch.view_as_real(made.base.view(torch.complex64))
    for part in (0, 1):
        reached = stored[..., part][stored[..., part] == 0]
        assert reached.numel()
        assert bool(reached.signbit().all()) is (part in parts)


def made_templates(limit: int, monkeypatch: pytest.MonkeyPatch, *shapes: tuple[int, ...]) -> list[str]:
    """Return the arguments whose templates are filled if the side of each shape is made three times.

    ``limit``: the bytes that templates may take.
    """
    monkeypatch.setattr(twins, "TEMPLATE_BYTES", limit)
    filled: list[str] = []

    def noting(slot: TensorSlot, dtype: str) -> torch.Tensor:
        filled.append(slot.name)
        return value_of(slot, dtype)

    made = Twins(noting)
    ones = [sample("neg", slot(0, f"x{i}", shape)) for i, shape in enumerate(shapes)]
    tried = [cases(CellId("f", "neg", "float32", "contiguous"), [one])[0] for one in ones]
    for case in tried:
        for _ in range(3):
            before = made.side(case, CPU).arguments[0]
            assert torch.equal(before.tensor, value_of(before.slot, "float32"))
    made.side(tried[0], CPU)
    return filled


def test_a_template_is_filled_once_while_all_templates_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made_templates(1 << 20, monkeypatch, (2, 3), (100,)) == ["x0", "x1"]


def test_all_templates_are_dropped_when_their_bytes_exceed_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    room = 2 * twins.TEMPLATE_COST + 400
    assert made_templates(room, monkeypatch, (2, 3), (80,)) == ["x0", "x1"]
    assert made_templates(room, monkeypatch, (2, 3), (100,)) == ["x0", "x1", "x0"]


def test_a_template_larger_than_the_limit_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made_templates(twins.TEMPLATE_COST + 100, monkeypatch, (200,)) == ["x0"] * 4


def test_samples_with_equal_slots_keep_their_own_values() -> None:
    made = Twins(lambda slot, dtype: torch.full(slot.shape, float(slot.start)))
    for start in range(50):  # a sample's objects are freed before the next sample is made
        one = sample("neg", TensorSlot(0, "self", (2,), None, written=False, pool="p", start=start))
        (argument,) = made.side(cases(CellId("f", "neg", "float32", "contiguous"), [one])[0], CPU).arguments
        assert argument.tensor.tolist() == [start, start]


@pytest.fixture
def without_as_strided() -> Iterator[None]:
    views.do_without(frozenset({"as_strided"}))
    yield
    views.do_without(frozenset())


def is_view(tensor: torch.Tensor) -> bool:
    return bool(tensor._is_view())  # noqa: SLF001  # torch has no public name for it


DEVICE = torch.device("cpu", 0)  # not equal to the CPU of the reference


@pytest.mark.usefixtures("without_as_strided")
def test_without_as_strided_a_contiguous_argument_is_no_view_but_its_storage_is() -> None:
    (made,) = Twins(value_of).side(one_argument("contiguous"), DEVICE).arguments
    assert not is_view(made.tensor)
    assert torch.equal(made.tensor, value_of(made.slot, "float32"))
    assert made.base.shape == (made.slot.numel,)
    made.tensor.zero_()
    assert not made.base.any()


@pytest.mark.usefixtures("without_as_strided")
@pytest.mark.parametrize("layout", ["transposed", "expanded", "channels_last"])
def test_without_as_strided_another_argument_is_a_view_of_its_storage(layout: str) -> None:
    (made,) = Twins(value_of).side(one_argument(layout), DEVICE).arguments
    assert is_view(made.tensor)


@pytest.mark.usefixtures("without_as_strided")
def test_without_as_strided_the_device_has_no_channels_innermost_behind_an_offset() -> None:
    one = sample("neg", slot(0, "self", (2, 3, 2, 2)))
    dense, inside = cases(CellId("f", "neg", "float32", "channels_last"), [one])
    made = Twins(value_of)
    assert made.side(dense, DEVICE).arguments[0].tensor.stride() == (12, 1, 6, 3)
    assert made.side(inside, CPU).arguments[0].tensor.storage_offset() == 3
    with pytest.raises(DeviceLacks, match="offset"):
        made.side(inside, DEVICE)


@pytest.mark.usefixtures("without_as_strided")
def test_without_as_strided_cpus_argument_is_no_view_either() -> None:
    (made,) = Twins(value_of).side(one_argument("contiguous"), CPU).arguments
    assert not is_view(made.tensor)
    made.tensor.zero_()
    assert not made.base.any()


def test_with_as_strided_a_contiguous_argument_is_a_view_of_its_bytes() -> None:
    (made,) = Twins(value_of).side(one_argument("contiguous"), DEVICE).arguments
    assert (is_view(made.tensor), made.base.dtype) == (True, torch.uint8)
