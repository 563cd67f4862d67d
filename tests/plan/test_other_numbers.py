"""Samples with further numbers and strings, in the contexts of derivatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.contexts.backward import Backward
from conformance.corpus import reader
from conformance.corpus.model import Arg, ComplexArg, DeviceArg, Sample, TensorSlot
from conformance.ops import facts
from conformance.plan.cases import cases
from conformance.plan.context_cases import OF_DERIVATIVES, VARIANTS
from conformance.plan.other_numbers import MOST, MOST_OF_INTEGERS, with_other_numbers
from conformance.vocabulary import CellId
from tests.two_sides import judge

DTYPES = ("float32", "complex64")


def sample(name: str, axis: str = "", **kwargs: Arg) -> Sample:
    slot = TensorSlot(0, "self", (3, 4), None, False, "float32", 0)
    return Sample(name, "celu", "float32", DTYPES, (slot,), tuple(kwargs.items()), (slot,), axis=axis)


PLAIN = sample("opinfo.celu.1")


def chosen(*others: Sample, taken: tuple[Sample, ...] = (PLAIN,)) -> list[str]:
    found = with_other_numbers(taken, [*taken, *others], "float32")
    return [one.name.removeprefix("opinfo.celu.1.") for one in found]


def variant(**kwargs: Arg) -> Sample:
    name = ".".join(f"{k}={v}" for k, v in kwargs.items())
    return sample(f"opinfo.celu.1.{name}", "variants", **kwargs)


def test_each_argument_has_one_fraction_near_to_1() -> None:
    alphas = [variant(alpha=a) for a in (1.0, 0.0, -1.5, 0.1, 0.5, 1e30, float("inf"), float("nan"), 2, True)]
    assert chosen(*alphas) == ["alpha=0.5"]
    assert chosen(*alphas, variant(beta=2.5), variant(beta=-0.5)) == ["alpha=0.5", "beta=2.5"]
    assert chosen(variant(alpha=2), variant(alpha=1.0)) == []


def test_an_argument_of_complex_samples_is_complex() -> None:
    real, other = variant(alpha=0.5), variant(alpha=ComplexArg(1.5, -0.5))
    assert with_other_numbers([PLAIN], [PLAIN, real, other], "complex64") == [other]
    assert with_other_numbers([PLAIN], [PLAIN, real, other], "float32") == [real]


def test_every_further_word_is_tried() -> None:
    words = [variant(approximate=word) for word in ("none", "tanh", "erf")]
    assert chosen(*words, taken=(PLAIN, sample("opinfo.celu.2", approximate="none"))) == [
        "approximate=erf", "approximate=tanh",
    ]  # fmt: skip


def test_what_the_recorded_samples_have_is_not_tried_again() -> None:
    one, two = sample("opinfo.celu.2", alpha=0.5), sample("opinfo.celu.3", alpha=2.5)
    assert chosen(variant(alpha=0.5), variant(alpha=0.1), taken=(PLAIN, one)) == ["alpha=0.1"]
    assert chosen(variant(alpha=0.5), variant(alpha=0.1), taken=(one, two)) == []


def test_each_argument_of_integers_has_a_second_small_value_a_negative_one_first() -> None:
    diagonals = [variant(diagonal=d) for d in (0, 1, -1, 2, 3, 2**40)]
    assert chosen(*diagonals, taken=(sample("opinfo.celu.2", diagonal=0),)) == ["diagonal=-1"]
    assert chosen(*diagonals[3:], taken=(sample("opinfo.celu.2", diagonal=0),)) == ["diagonal=2"]
    assert chosen(variant(diagonal=2**40), variant(diagonal=True)) == []
    two = (sample("opinfo.celu.2", diagonal=0), sample("opinfo.celu.3", diagonal=1))
    assert chosen(*diagonals, taken=two) == []


def test_a_list_of_integers_has_a_second_value_and_a_number_that_may_be_a_fraction_has_no_integer() -> None:
    pads = [variant(pad=p) for p in ((1, 1), (2, -1), (0, 0))]
    assert chosen(*pads, taken=(sample("opinfo.celu.2", pad=(1, 1)),)) == ["pad=(2, -1)"]
    assert chosen(variant(alpha=3), variant(alpha=1.0)) == []


def test_a_cell_has_few_of_integers() -> None:
    assert len(chosen(*(variant(**{f"a{i}": 2}) for i in range(20)))) == MOST_OF_INTEGERS


def test_tensors_stay_as_they_are_and_calls_return() -> None:
    good = variant(alpha=0.5)
    narrow = replace(good, tensors=tuple(replace(t, dtype="float16") for t in good.tensors))
    on_host = replace(good, tensors=tuple(replace(t, on_host=True) for t in good.tensors))
    refused, large = replace(good, raises=True), replace(good, axis="sizes")
    others = [narrow, on_host, refused, large, replace(good, dtypes=("int64",))]
    assert chosen(*others) == []
    assert chosen(*others, good) == ["alpha=0.5"]


def test_a_cell_has_few_of_them() -> None:
    assert len(chosen(*(variant(**{f"a{i}": 0.5}) for i in range(20)))) == MOST


def test_derivatives_alone_are_tried_with_them_once() -> None:
    def of(context: str) -> list[str]:
        found = cases(CellId("activation", "celu", "float32", context), [PLAIN, variant(alpha=0.5)])
        return [c.variant for c in found if c.sample != PLAIN]

    assert {context: of(context) for context in OF_DERIVATIVES} == {
        context: [VARIANTS.get(context, ("",))[0]] for context in OF_DERIVATIVES
    }
    assert not of("thread")
    assert not of("vmap")


class OfAlphaOne(torch.autograd.Function):
    """``celu`` with the derivative for the default ``alpha``, whatever ``alpha`` is."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, alpha: float) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.celu(x, alpha)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grads[0] * x.clamp(max=0).exp(), None


def celu(x: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
    return torch.celu(x, alpha)


def wrong(x: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
    found: torch.Tensor = OfAlphaOne.apply(x, alpha)
    return found


@pytest.mark.forked  # autograd starts threads
def test_a_derivative_for_the_default_number_alone_is_found_by_these_alone() -> None:
    corpus = reader.load()
    samples = [replace(s, args=(*s.args, DeviceArg())) for s in corpus.samples("celu")]

    def failing(op: Any, of: list[Sample]) -> set[str]:
        tried = cases(CellId("activation", "celu", "float32", "backward"), of)
        results = [(c, judge(celu, op, c, facts("celu"), values=corpus.value, context=Backward())) for c in tried]
        return {c.sample.name.rpartition(".alpha")[2] for c, result in results if result.mismatches}

    assert failing(wrong, samples) == {"=0.5"}
    assert not failing(wrong, [s for s in samples if not s.axis])
    assert not failing(celu, samples)


class OfMainDiagonal(torch.autograd.Function):
    """``tril`` with the derivative for the default diagonal, whatever ``diagonal`` is."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, diagonal: int) -> torch.Tensor:
        return torch.tril(x, diagonal)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return grads[0].tril(), None


@pytest.mark.forked  # autograd starts threads
def test_a_derivative_for_the_default_diagonal_alone_is_found_by_further_integers() -> None:
    corpus = reader.load()
    samples = [replace(s, args=(*s.args, DeviceArg())) for s in corpus.samples("tril")]
    plain = [s for s in samples if not s.axis and not any(value for key, value in s.kwargs if key == "diagonal")]
    plain = [s for s in plain if len(s.args) < 3 or not s.args[1]]
    further = [*plain, *(s for s in samples if s.axis)]

    def failing(op: Any, of: list[Sample]) -> set[str]:
        tried = cases(CellId("misc", "tril", "float32", "backward"), of)
        results = [(c, judge(torch.tril, op, c, facts("tril"), values=corpus.value, context=Backward())) for c in tried]
        return {c.sample.name for c, result in results if result.mismatches}

    def wrong(x: torch.Tensor, diagonal: int = 0) -> torch.Tensor:
        found: torch.Tensor = OfMainDiagonal.apply(x, diagonal)
        return found

    assert len(plain) > 1
    assert not failing(wrong, plain)
    assert failing(wrong, further)
    assert not failing(torch.tril, further)
