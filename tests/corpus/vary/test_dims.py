"""Samples of four and more dimensions, called with some of them."""

from __future__ import annotations

from conformance.corpus.model import Sample
from conformance.corpus.vary.dims import RANK, generate
from tests.generated import corpus, made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def of_rank(rank: int, overload: str) -> list[Sample]:
    return [s for s in made(overload) if f".rank={rank}." in s.name]


def test_several_dimensions_are_named_and_kept_and_removed() -> None:
    found = [s for s in of_rank(RANK, "sum.IntList_out") if s.base == "float32"]
    calls = {(s.args[1], s.args[2] if len(s.args) > 2 else dict(s.kwargs)["keepdim"]) for s in found}
    assert {((0, 2), True), ((0, 2), False), ((-1, 1), True), ((-1, 1), False)} <= calls


def test_a_dimension_in_the_middle_is_named() -> None:
    assert {s.args[1] for s in of_rank(RANK, "_softmax.out")} == {1, -2}


def test_dimensions_in_front_of_many_are_named() -> None:
    assert {s.args[1] for s in of_rank(6, "_softmax.out")} == {0, 2}
    assert {s.args[1] for s in of_rank(9, "_softmax.out")} == {0}
    assert {s.args[1] for s in of_rank(6, "sum.IntList_out")} == {(0,), (0, 2, 4), (1, 3)}


def test_values_are_those_of_the_recorded_sample() -> None:
    for sample in (s for s in made("topk") if s.base == "int64"):
        (source,) = (s for s in corpus().samples("topk") if sample.name.startswith(f"{s.name}."))
        drawn, stored = (corpus().value(s.tensors[0], "int64").unique() for s in (sample, source))
        assert {*drawn.tolist()} <= {*stored.tolist()}


def test_a_list_that_goes_along_with_the_dimensions_is_as_long_as_theirs() -> None:
    lists = [[arg for arg in s.args if isinstance(arg, tuple)] for s in of_rank(RANK, "roll")]
    assert {tuple(map(len, one)) for one in lists} == {(2, 2), (3, 3)}


def test_an_op_without_dimensions_among_its_arguments_has_none() -> None:
    assert not made("neg")


def test_a_memory_format_has_as_many_dimensions_as_it_needs() -> None:
    for overload in ("clone", "empty_like", "empty.memory_format"):
        named = {s.name.partition("rank=")[2] for s in made(overload)}
        assert {"4.memory_format=channels_last", "5.memory_format=channels_last_3d"} <= named, overload


def test_dimensions_of_size_one_are_named_from_the_end() -> None:
    found = of_rank(5, "sum.IntList_out")
    assert any(s.tensors[0].shape[-5] == s.tensors[0].shape[-3] == 1 for s in found)
    assert {s.args[1] for s in found} == {(-5,), (-3,), (-5, 1)}
