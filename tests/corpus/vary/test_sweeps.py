"""Samples that evaluate pointwise ops at densely spaced values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.corpus.model import DeviceArg, Sample
from conformance.corpus.vary.sweeps import generate
from conformance.inventory import call_of
from conformance.judging.tolerances import criteria_of
from conformance.plan.cases import cases
from conformance.vocabulary import CellId
from tests.generated import corpus, failing, made_by
from tests.two_sides import judge


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def differs(overload: str, dtype: str, low: float, high: float, factor: float) -> bool:
    """Return whether a device that is wrong by ``factor`` between two numbers differs in the sweep of ``self``."""
    right = call_of(overload)

    def wrong(x: torch.Tensor, *more: Any) -> torch.Tensor:
        found = right(x, *more)
        return torch.where((x > low) & (x < high), found * factor, found)

    (sample,) = (s for s in made(overload) if dtype in s.dtypes and s.name.endswith("sweep=self"))
    sample = replace(sample, args=(*sample.args, DeviceArg()), kwargs=())
    (case,) = cases(CellId("hand", "hand", dtype, "values"), [sample])
    return bool(judge(right, wrong, case, criteria_of(overload), values=corpus().value).mismatches)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("overload", "low", "high", "factor"),
    [("lgamma", 0.11, 0.3, 1.5), ("erfinv", 0.012, 0.0195, 2.0), ("sigmoid", -30.0, -10.0, 2.0)],
)
def test_a_function_that_is_wrong_in_a_narrow_band_is_found(
    overload: str, low: float, high: float, factor: float, dtype: str
) -> None:
    assert differs(overload, dtype, low, high, factor)
    assert not differs(overload, dtype, low, high, 1.0)


def test_each_argument_is_swept_and_each_word_chooses_a_function() -> None:
    names = {s.name.rpartition("sweep=")[2].removesuffix(".moderate") for s in made("gelu_backward")}
    assert names == {"grad_output", "grad_output.approximate=tanh", "self", "self.approximate=tanh"}


def test_two_arguments_of_bytes_have_all_pairs() -> None:
    (sample,) = (s for s in made("add.Tensor") if s.name.endswith("sweep=bytes"))
    assert sample.dtypes == ("int8", "uint8")
    for dtype in sample.dtypes:
        pair = [corpus().value(s, dtype).view(-1) for s in sample.tensors]
        assert torch.stack(pair).unique(dim=1).shape[1] == 256 * 256


def test_an_untagged_gradient_of_a_loss_is_swept_in_each_argument_without_reduction() -> None:
    found = [s for s in made("mse_loss_backward") if "float32" in s.dtypes]
    assert {s.name.rpartition("sweep=")[2] for s in found} == {"grad_output", "self", "target"}
    assert all(len({t.shape for t in s.tensors}) == 1 and s.args[-1] == 0 for s in found)


def test_a_loss_is_swept_as_it_is_without_reduction() -> None:
    assert {s.args[-1] for s in made("mse_loss")} == {0}


@pytest.mark.parametrize("overload", ["tril", "amax.out", "_softmax", "flip", "clone.out", "_adaptive_avg_pool2d"])
def test_an_untagged_op_that_reduces_moves_or_copies_is_not_swept(overload: str) -> None:
    assert not made(overload)


def test_a_gradient_that_only_copies_what_was_recorded_is_swept() -> None:
    assert {s.name.rpartition("sweep=")[2] for s in made("hardshrink_backward")} == {"self"}


def test_a_function_is_swept_with_the_number_with_which_it_is_no_copy() -> None:
    (found,) = made("softshrink.out")
    assert found.args[1:] != (0.0,)


@pytest.mark.parametrize("factor", [1.0, -1.0])
def test_a_gradient_that_is_wrong_in_a_narrow_band_is_found(factor: float) -> None:
    right = call_of("elu_backward")

    def wrong(grad: torch.Tensor, alpha: float, scale: float, slope: float, of: bool, x: torch.Tensor) -> torch.Tensor:
        found = right(grad, alpha, scale, slope, of, x)
        return torch.where((x > -4) & (x < -3.5), found * factor, found)

    swept = [s for s in made("elu_backward") if s.name.endswith("sweep=self_or_result")]
    names = [s.name for s in swept] if factor < 0 else []
    assert swept
    assert failing(right, wrong, swept) == names


def test_ops_that_are_not_pointwise_or_draw_are_not_swept() -> None:
    assert not made("sum.dim_IntList")
    assert not made("bernoulli_.float")


def test_a_function_that_cpu_computes_inexactly_is_swept_among_moderate_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = call_of("sin")

    def coarse(x: torch.Tensor) -> torch.Tensor:
        found = right(x)
        return found if x.dtype == torch.float64 else torch.where(x.abs() > 1e6, found * 0.99, found)

    monkeypatch.setattr("conformance.corpus.vary.trial.call_of", lambda _: coarse)
    (sample, _) = made_by.__wrapped__(generate, "sin")  # the other sample has small float dtypes
    assert sample.dtypes == ("float32",)
    assert sample.name.endswith("sweep=self.moderate")
    values = corpus().value(sample.tensors[0], "float32").abs()
    assert 2**-20 <= float(values.min()) < float(values.max()) <= 2**8
