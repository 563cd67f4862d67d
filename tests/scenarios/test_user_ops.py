"""Ops that a user defines: a fallback that loses what they write or return is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance.scenarios import user_ops
from tests.scenarios.altered import different


class Ops:
    """The user's ops, of which those in ``wrong`` are replaced."""

    def __init__(self, **wrong: Callable[..., Any]) -> None:
        self._right = getattr(torch.ops, user_ops.NAMESPACE)
        self._wrong = wrong

    def __getattr__(self, name: str) -> Any:
        return self._wrong.get(name) or getattr(self._right, name)


def found(monkeypatch: pytest.MonkeyPatch, **wrong: Callable[..., Any]) -> set[str]:
    return different(user_ops.kernels_of_cpu, lambda: monkeypatch.setattr(torch.ops, user_ops.NAMESPACE, Ops(**wrong)))


def right(name: str) -> Any:
    user_ops.kernels_of_cpu("cpu")
    return getattr(getattr(torch.ops, user_ops.NAMESPACE), name)


def test_the_ops_give_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch) == set()


def test_lists_whose_tensors_stay_unwritten_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    each = right("each")
    lost = found(monkeypatch, each=lambda tensors, by: each([t.clone() for t in tensors], by))
    assert lost == {"tensors_of_a_list_written", "views_of_a_list_written"}


def test_parts_that_are_written_as_if_they_were_dense_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    scaled = right("scaled")

    def dense(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
        result = scaled(x.contiguous(), by)
        x.as_strided(x.shape, result.stride()).copy_(result)
        return x

    assert found(monkeypatch, scaled=dense) == {"part_written"}


def test_a_number_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = right("facts")
    lost = found(monkeypatch, facts=lambda *given: (*facts(*given)[:2], 0.0, facts(*given)[3]))
    assert lost == {"results_of_other_types"}


def test_results_on_the_host_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="the result is on meta"):
        found(monkeypatch, numbered=lambda x, **_: x.to("meta"))
