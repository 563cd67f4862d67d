"""The programs about training: what a device need not offer."""

from __future__ import annotations

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
