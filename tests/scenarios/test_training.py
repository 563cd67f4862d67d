"""The programs about training: what a device need not offer."""

from __future__ import annotations

from typing import Any

import pytest

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
