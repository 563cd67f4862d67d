"""Samples with hard values."""

from __future__ import annotations

import torch

from conformance.corpus import fills
from conformance.corpus.model import Sample
from conformance.corpus.vary.hard_values import generate
from tests.generated import corpus, made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def values(sample: Sample, name: str, dtype: str) -> torch.Tensor:
    (slot,) = (t for t in sample.tensors if t.name == name)
    return corpus().value(slot, dtype)


def test_a_pointwise_op_gets_every_pair_of_hard_values() -> None:
    (pairs,) = (s for s in made("add.Tensor") if s.name.endswith("hard=selfxother") and s.base == "float32")
    for dtype in pairs.dtypes:
        a, b = (values(pairs, name, dtype).view(-1, 1) for name in ("self", "other"))
        a, b = (t.view(torch.uint8).view(t.numel(), -1) for t in (a, b))
        n = fills.hard(dtype).numel()
        assert torch.cat((a, b), 1).unique(dim=0).shape[0] == n * n


def test_a_reduction_keeps_most_rows_free_of_nan() -> None:
    (sample, *_) = (s for s in made("sum.dim_IntList") if s.base == "float32")
    (slot,) = sample.tensors
    assert slot.fill == "hard/sparse"
    assert 0 < float(values(sample, "self", "float32").isnan().float().mean()) < 0.01


def test_a_divisor_of_integers_is_never_zero() -> None:
    found = [s for s in made("div.Tensor_mode") if s.base == "int64" and "other" in s.name.rpartition("=")[2]]
    assert found
    assert all((values(s, "other", d) != 0).all() for s in found for d in s.dtypes)


def test_floats_that_an_integer_cannot_hold_are_not_converted_to_it() -> None:
    for s in made("_to_copy"):
        dtype = dict(s.kwargs).get("dtype")
        if s.base == "float32" and getattr(dtype, "name", None) in ("int8", "int32", "int64", "uint8"):
            assert all(values(s, "self", d).abs().max() < 2**63 for d in s.dtypes)


def test_every_dtype_has_limits_of_its_own() -> None:
    (sample,) = (s for s in made("neg") if s.base == "float32")
    assert float(values(sample, "self", "float16").nan_to_num(0, 0, 0).max()) == 65504.0
    assert torch.isfinite(values(sample, "self", "float64")).any()
