"""Values whose dtype differs from the dtype of the tensor to which an op moves them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.corpus.vary import variants
from conformance.corpus.vary.one_dtype import generate
from tests.generated import failing, made_by


@pytest.mark.parametrize(("overload", "operand"), [("index_put", "values"), ("put", "source")])
def test_an_op_that_moves_values_of_one_dtype_refuses_every_other_one(overload: str, operand: str) -> None:
    found = made_by(generate, overload)
    assert all(s.raises for s in found)
    named = {s.name.rpartition(f".{operand}=")[2].removesuffix(".refused") for s in found if s.base == "float32"}
    assert named == {"bool", "uint8", "int32", "float64", "float16", "complex64"}


def test_a_refused_dtype_has_another_name_than_a_call_in_that_dtype() -> None:
    accepted = {s.name for s in made_by(variants.generate, "masked_scatter_") if not s.raises}
    refused = {s.name for s in made_by(generate, "masked_scatter_")}
    assert not accepted & refused
    assert any(f"{name}.refused" in refused for name in accepted)


@pytest.mark.parametrize("overload", ["addmm", "add.Tensor", "cat", "copy_"])
def test_an_op_that_computes_or_converts_has_none(overload: str) -> None:
    assert not made_by(generate, overload)


def test_a_device_that_converts_what_torch_refuses_is_found() -> None:
    def wrong(x: torch.Tensor, indices: Any, values: torch.Tensor, accumulate: bool = False) -> torch.Tensor:
        return torch.index_put(x, indices, values.to(x.dtype), accumulate)

    samples = made_by(generate, "index_put")
    right = torch.ops.aten.index_put.default
    assert failing(right, wrong, samples) == [s.name for s in samples]
    assert not failing(right, right, samples)
