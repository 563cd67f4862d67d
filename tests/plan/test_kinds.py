"""The first few generated samples of an overload vary different things."""

from __future__ import annotations

from dataclasses import replace

from conformance.corpus.model import Sample, TensorSlot
from conformance.plan.kinds import kind_of, spread


def sample(
    name: str, axis: str, *shapes: tuple[int, ...], fill: str = "", raises: bool = False, **kwargs: object
) -> Sample:
    slots = tuple(TensorSlot(i, f"t{i}", shape, None, False, "pool", fill=fill) for i, shape in enumerate(shapes))
    return Sample(name, "op", "float32", ("float32",), slots, tuple(kwargs.items()), slots, raises, axis)  # type: ignore[arg-type]


SIZES = [
    *(sample(f"small.{i}", "sizes", (i, 3)) for i in range(1, 9)),
    sample("large", "sizes", (3, 65_537)),
    sample("long", "sizes", (1025, 2)),
    sample("many dimensions", "sizes", (2, 2, 2, 2, 2, 2)),
    sample("empty", "sizes", (0, 3)),
]


def test_each_kind_of_size_comes_before_a_second_one_of_the_same_kind() -> None:
    first = spread(SIZES)[:5]
    assert len({kind_of(s) for s in SIZES}) == 5
    assert {s.name for s in first} > {"large", "long", "many dimensions", "empty"}


def test_the_order_does_not_depend_on_that_of_the_samples() -> None:
    assert spread(SIZES) == spread(SIZES[::-1])
    assert sorted(s.name for s in spread(SIZES)) == sorted(s.name for s in SIZES)


def test_sizes_of_one_class_are_of_one_kind() -> None:
    assert kind_of(sample("a", "sizes", (17, 2))) == kind_of(sample("b", "sizes", (2, 1024)))
    assert kind_of(sample("a", "sizes", (1024,))) != kind_of(sample("b", "sizes", (1025,)))


def of_list(name: str, *shapes: tuple[int, ...]) -> Sample:
    one = sample(name, "sizes", *shapes)
    return replace(one, args=(one.args,))


def test_an_empty_tensor_at_the_end_of_a_list_is_told_apart_from_another_one() -> None:
    end, first = of_list("end", (3,), (2,), (0,)), of_list("first", (0,), (2,), (3,))
    assert len({kind_of(s) for s in (end, first, of_list("full", (3,), (2,), (1,)))}) == 3
    assert kind_of(end) == kind_of(of_list("both", (0,), (2,), (0,)))
    assert kind_of(first) == kind_of(of_list("nothing else", (0,))) == kind_of(sample("empty", "sizes", (0, 3)))


def test_values_are_told_apart_by_argument_fill_and_refusal() -> None:
    hard = sample("a", "values", (3,), fill="hard/0")
    assert kind_of(hard) == kind_of(sample("b", "values", (9,), fill="hard/0"))
    assert kind_of(hard) != kind_of(sample("b", "values", (3,), fill="hard/sparse"))
    assert kind_of(hard) != kind_of(sample("b", "values", (3,), fill="hard/0", raises=True))


def test_arguments_are_told_apart_by_flag_and_type_and_sign_and_not_by_the_number() -> None:
    kinds = [kind_of(sample("a", "variants", (3,), x=x)) for x in (True, False, None, 1, -1, 1.0, (1, -1), "sum")]
    assert len(set(kinds)) == len(kinds)
    assert kind_of(sample("a", "variants", (3,), x=3)) == kind_of(sample("b", "variants", (3,), x=300))


def test_numbers_that_float32_does_not_hold_are_of_a_kind_of_their_own() -> None:
    assert kind_of(sample("a", "variants", (3,), x=3)) != kind_of(sample("b", "variants", (3,), x=2**24 + 1))
