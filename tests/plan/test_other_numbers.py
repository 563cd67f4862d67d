"""Samples with further numbers and words, in contexts of derivatives."""

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
from conformance.plan.other_numbers import MOST, with_other_numbers
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
    """``celu`` with the derivative that it has by the default ``alpha``."""

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
