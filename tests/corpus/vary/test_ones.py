"""Sizes of 1, combined with flags."""

from __future__ import annotations

from conformance.corpus.model import Sample
from conformance.corpus.vary.ones import generate
from tests.generated import made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def test_each_size_is_one_with_a_flag_that_is_set_the_other_way() -> None:
    found = {(s.tensors[0].shape, s.args[2]) for s in made("upsample_linear1d")}
    assert found == {((1, 3, 4), True), ((2, 1, 4), True), ((2, 3, 1), True)}


def test_an_op_without_flags_has_none() -> None:
    assert not made("neg")


def test_a_size_is_one_with_each_mode_of_an_enumeration_too() -> None:
    modes = {s.args[2:4] for s in made("grid_sampler_2d") if 1 in s.tensors[0].shape[2:]}
    assert {mode for mode, _ in modes} == {padding for _, padding in modes} == {0, 1, 2}
