"""The grid of mismatches, which follows from the example inputs."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.aoti.grid import LARGEST, grid, sizes
from conformance.aoti.model import Axis, Call, Dimension, Given, Input, given_from
from conformance.layouts import contiguous_stride

BATCH = Dimension(4, "s0", 2, 64)


def example(index: int, *dimensions: Dimension, dtype: str = "float32", stride: tuple[int, ...] = ()) -> Input:
    size = tuple(d.size for d in dimensions)
    given = Given(index, size, stride or contiguous_stride(size), 0, dtype, "cpu")
    return Input("xyz"[index], given, dimensions, 4)


STATIC = [example(0, Dimension(4), Dimension(16)), example(1, Dimension(4), Dimension(8), dtype="bool")]
DYNAMIC = [example(0, BATCH, Dimension(16)), example(1, BATCH, Dimension(8), dtype="bool")]


def of(axis: Axis, inputs: Sequence[Input] = STATIC, subject: str | None = None) -> list[Call]:
    calls = grid(inputs, ("meta", "cpu", "mydev:0"), ("mydev:1",))
    return [c for c in calls if c.axis is axis and subject in (None, c.subject)]


def test_the_first_call_has_the_example_inputs() -> None:
    assert grid(STATIC)[0] == Call(Axis.NOTHING, "the example inputs", tuple(i.given for i in STATIC))


def test_every_axis_has_calls() -> None:
    assert {c.axis for c in grid(STATIC, ("meta",), ("cpu:1",))} == set(Axis)


def test_every_other_call_differs_from_the_examples() -> None:
    examples = tuple(i.given for i in STATIC)
    assert not [c for c in grid(STATIC, ("cpu",)) if c.inputs == examples and c.axis is not Axis.NOTHING]


def test_no_two_calls_are_the_same() -> None:
    calls = grid(DYNAMIC, ("meta",), ("cpu:1",))
    assert len({(c.axis, c.subject, c.what) for c in calls}) == len(calls)
    assert len({(c.inputs, c.load_device) for c in calls}) == len(calls)


def test_a_call_changes_only_the_inputs_that_it_names() -> None:
    for call in grid(DYNAMIC, ("meta",)):
        if call.axis is not Axis.NUMBER:
            examples = (i.given for i in DYNAMIC)
            differ = tuple(n for n, (a, b) in enumerate(zip(call.inputs, examples, strict=True)) if a != b)
            assert differ == call.changed


def test_a_device_is_no_mismatch_for_an_input_that_is_there() -> None:
    assert [c.inputs[0].device for c in of(Axis.DEVICE, subject="x")] == ["meta", "mydev:0"]


def test_dtypes_are_all_but_the_own_one() -> None:
    assert "bool" not in [c.inputs[1].dtype for c in of(Axis.DTYPE, subject="y")]
    assert "float32" in [c.inputs[1].dtype for c in of(Axis.DTYPE, subject="y")]


def test_the_rank_is_one_more_and_one_less() -> None:
    assert [c.inputs[0].size for c in of(Axis.RANK, subject="x")] == [(1, 4, 16), (16,)]


def test_a_scalar_has_no_rank_below() -> None:
    assert [c.inputs[0].size for c in of(Axis.RANK, [example(0)])] == [(1,)]


def test_static_sizes_are_around_the_size_that_was_compiled() -> None:
    assert sizes(Dimension(4)) == [0, 1, 2, 5, 8, 128]


def test_dynamic_sizes_are_at_the_bounds_and_around_them() -> None:
    assert sizes(BATCH) == [0, 1, 2, 5, 64, 65, 128]


def test_a_dynamic_size_without_an_upper_bound_is_tried_far_from_the_example() -> None:
    assert sizes(Dimension(4, "s0", 2)) == [0, 1, 2, 5, 8, 128]


def test_static_batches_change_together() -> None:
    assert [[g.size for g in c.inputs] for c in of(Axis.SIZES)][:2] == [[(0, 16), (0, 8)], [(1, 16), (1, 8)]]


def test_dynamic_dimensions_of_one_symbol_change_together_wherever_they_are() -> None:
    inputs = [example(0, BATCH, Dimension(16)), example(1, Dimension(8), BATCH)]
    assert [[g.size for g in c.inputs] for c in of(Axis.SIZES, inputs)][:1] == [[(0, 16), (8, 0)]]


def test_batches_of_different_size_do_not_belong_together() -> None:
    assert not of(Axis.SIZES, [example(0, Dimension(4)), example(1, Dimension(5))])


def test_strides_are_other_than_those_of_the_example() -> None:
    transposed = example(0, Dimension(4), Dimension(16), stride=(1, 4))
    given = [c.inputs[0].stride for c in of(Axis.STRIDE, [transposed])]
    assert (16, 1) in given
    assert (1, 4) not in given


def test_strides_that_differ_in_a_dimension_of_size_one_are_the_same() -> None:
    assert not of(Axis.STRIDE, [example(0, Dimension(1))])


def test_an_offset_keeps_the_alignment_and_one_element_breaks_it() -> None:
    assert [c.inputs[0].offset * STATIC[0].itemsize % 64 for c in of(Axis.OFFSET, subject="x")] == [0]
    assert [c.inputs[0].offset * STATIC[0].itemsize % 64 for c in of(Axis.ALIGNMENT, subject="x")] == [4]


def test_there_is_one_input_less_and_one_more() -> None:
    assert [len(c.inputs) for c in of(Axis.NUMBER)] == [1, 3]


def test_inputs_too_large_for_the_machine_are_not_tried() -> None:
    large = [example(0, Dimension(LARGEST // 16), Dimension(16))]
    assert 0 < max(c.inputs[0].size[0] for c in of(Axis.SIZE, large)) <= LARGEST // 16


def test_a_given_tensor_is_read_back_from_json() -> None:
    given = STATIC[0].given
    facts = {"source": 0, "size": [4, 16], "stride": [16, 1], "offset": 0, "dtype": "float32", "device": "cpu"}
    assert given_from(facts) == given
