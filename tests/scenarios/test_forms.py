"""The forms of one op after each other, on a device that refuses some."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios.forms import OPS, results_after_results
from conformance.scenarios.model import NotOffered


class Refusing:
    """An op of torch that raises in its call number ``at``. The first call is the reference's."""

    def __init__(self, op: Any, at: int) -> None:
        self._op = op
        self._left = at

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._left -= 1
        if not self._left:
            raise RuntimeError("not today\nnor tomorrow")
        return self._op(*args, **kwargs)


def test_an_op_that_raises_at_once_is_left_out_and_the_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "erf", Refusing(torch.erf, at=2))
    results = results_after_results("cpu")
    left_out = {name: str(found) for name, found in results.items() if isinstance(found, NotOffered)}
    assert left_out == {"erf": "not today"}
    assert {name.rsplit("_", 2)[0] for name in results} == set(OPS)


def test_a_form_that_raises_behind_another_one_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "erf", Refusing(torch.erf, at=3))
    with pytest.raises(RuntimeError, match="not today"):
        results_after_results("cpu")
