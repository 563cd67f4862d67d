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


def test_an_op_without_dimensions_among_its_arguments_has_none() -> None:
    assert not made("neg")
