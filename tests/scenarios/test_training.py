"""The programs about training: features that a device need not offer."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import training
from conformance.scenarios.model import NotOffered, Results


def not_offered(results: Results) -> set[str]:
    return {name for name, found in results.items() if isinstance(found, NotOffered)}


def test_autocast_is_asked_for_where_a_kernel_of_the_op_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not not_offered(training.autocast_of_modules("cpu"))
    monkeypatch.setattr(training, "autocasts", lambda op, _: op == "mm")
    assert not_offered(training.autocast_of_modules("cpu")) == {"linear"}
    assert not_offered(training.autocast_of_written_weights("cpu")) == {"layer_0", "layer_1", "layer_2"}


@pytest.mark.forked
def test_a_fused_optimizer_that_torch_refuses_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: Any, **__: Any) -> None:
        raise RuntimeError("`fused=True` requires all the params to be on another device")

    monkeypatch.setitem(training.OPTIMIZERS, "sgd", refusing)
    found = training.fused_optimizers("cpu")
    assert not_offered(found) == {"sgd_fused", "sgd_fused_scaled"}
    assert len(found) == 2 * len(training.FUSED)


def test_autocast_that_casts_what_is_written_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right, mm, addmm_ = training.autocast_leaves_what_it_is_given("cpu"), torch.mm, torch.Tensor.addmm_

    def to_a_copy(a: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        return mm(a, b, out=out.clone())

    def rounded(y: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return addmm_(y, a.bfloat16().float(), b)

    monkeypatch.setattr(torch, "mm", to_a_copy)
    monkeypatch.setattr(torch.Tensor, "addmm_", rounded)
    found = training.autocast_leaves_what_it_is_given("cpu")
    assert {name for name, one in right.items() if not torch.equal(one, found[name])} == {"mm", "addmm_"}


@pytest.mark.forked
def test_an_infinity_that_the_gradients_of_another_dtype_hide_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right, unscale = training.scaled_gradients("cpu"), torch._amp_foreach_non_finite_check_and_unscale_

    def forgetting(gradients: list[torch.Tensor], found: torch.Tensor, scale: torch.Tensor) -> None:
        unscale(gradients, found.zero_(), scale)

    monkeypatch.setattr(torch, "_amp_foreach_non_finite_check_and_unscale_", forgetting)
    wrong = training.scaled_gradients("cpu")
    differ = {name for name in right if not torch.equal(torch.as_tensor(right[name]), torch.as_tensor(wrong[name]))}
    assert "first_after_infinite_first" in differ
    assert all("_after_infinite_" in name for name in differ)
