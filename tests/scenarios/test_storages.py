"""Storages that change their size: a result that cannot grow is found."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import storages
from conformance.scenarios.model import NotOffered


def not_resizable(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(torch.histc(x, bins=8, min=0, max=8).numpy().copy())


def test_a_result_that_cannot_grow_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(isinstance(one, torch.Tensor) for one in storages.results_grow("cpu").values())
    monkeypatch.setitem(storages.NEW_RESULTS, "histogram", not_resizable)
    with pytest.raises(RuntimeError, match="not resizable"):
        storages.results_grow("cpu")


def test_a_result_that_loses_its_elements_when_it_grows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = storages.results_grow("cpu")
    was = torch.Tensor.resize_
    monkeypatch.setattr(torch.Tensor, "resize_", lambda tensor, size: was(tensor, size).zero_())
    found = storages.results_grow("cpu")
    differs = {name for name, one in right.items() if not torch.equal(one, found[name])}
    assert {"clone.resized", "histogram.resized", "cat.resized"} <= differs


def test_a_device_whose_tensors_cannot_be_resized_offers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("no storage")

    monkeypatch.setattr(torch.Tensor, "resize_", refuse)
    with pytest.raises(NotOffered, match="no storage"):
        storages.results_grow("cpu")


def test_changes_that_are_accepted_and_those_that_are_refused_too_late_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = storages.changes_that_are_refused("cpu")
    was = torch.Tensor.resize_

    def late(tensor: torch.Tensor, *size: int, **how: Any) -> torch.Tensor:
        tensor.detach().zero_()
        return was(tensor, *size, **how)

    assert all(torch.equal(one, torch.tensor([True, True])) for one in right.values())
    monkeypatch.setattr(torch.Tensor, "set_", lambda tensor, *_: tensor)
    monkeypatch.setattr(torch.Tensor, "resize_", late)
    found = storages.changes_that_are_refused("cpu")
    differs = {name.partition(".")[0] for name, one in right.items() if not torch.equal(one, found[name])}
    assert differs == {"set_", "resize_"}
