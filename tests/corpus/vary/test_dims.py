"""Samples of four dimensions, called with some of them."""

from __future__ import annotations

from conformance.corpus.model import Sample
from conformance.corpus.vary.dims import RANK, generate
from tests.generated import made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def test_several_dimensions_are_named_and_kept_and_removed() -> None:
    found = [s for s in made("sum.IntList_out") if s.base == "float32"]
    assert {len(s.tensors[0].shape) for s in found} == {RANK}
    calls = {(s.args[1], s.args[2] if len(s.args) > 2 else dict(s.kwargs)["keepdim"]) for s in found}
    assert {((0, 2), True), ((0, 2), False), ((-1, 1), True), ((-1, 1), False)} <= calls


def test_a_dimension_in_the_middle_is_named() -> None:
    found = made("_softmax.out")
    assert {s.args[1] for s in found} == {1, -2}


def test_a_list_that_goes_along_with_the_dimensions_is_as_long_as_theirs() -> None:
    lists = [[arg for arg in s.args if isinstance(arg, tuple)] for s in made("roll")]
    assert {tuple(map(len, one)) for one in lists} == {(2, 2), (3, 3)}


def test_an_op_without_dimensions_among_its_arguments_has_none() -> None:
    assert not made("neg")


def test_a_memory_format_has_as_many_dimensions_as_it_needs() -> None:
    for overload in ("clone", "empty_like", "empty.memory_format"):
        named = {s.name.partition("rank=")[2] for s in made(overload)}
        assert {"4.memory_format=channels_last", "5.memory_format=channels_last_3d"} <= named, overload
