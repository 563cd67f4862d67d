"""Storages as objects: wrong construction, copies and writes are found."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import UntypedStorage as Storage

from conformance.scenarios import storage_objects
from conformance.scenarios.model import NotOffered
from tests.scenarios.altered import different


def found(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, wrong: Any) -> set[str]:
    return different(storage_objects.storages_as_objects, lambda: monkeypatch.setattr(owner, name, wrong))


def test_a_copy_that_shares_its_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, copy, "deepcopy", lambda storage: storage) == {"deepcopy.apart"}


def test_a_fill_of_the_first_half_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    fill = Storage.fill_

    def half(storage: Storage, value: int) -> Storage:
        fill(storage[: len(storage) // 2], value)  # a slice shares the memory
        return storage

    assert {"filled", "new", "clone.apart"} > found(monkeypatch, Storage, "fill_", half) >= {"filled"}


def test_a_storage_that_is_read_in_reverse_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Storage.tolist
    wrong = found(monkeypatch, Storage, "tolist", lambda storage: read(storage)[::-1])
    assert {"list.read", "on_host.read"} <= wrong
    assert "by_a_tensor.read" not in wrong


def test_a_device_that_torch_gives_no_storages_offers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(device: str) -> Storage:
        raise RuntimeError(f"UntypedStorage(): Storage device not recognized: {device}")

    monkeypatch.setattr(storage_objects, "_new", refuse)
    with pytest.raises(NotOffered, match="not recognized"):
        storage_objects.storages_as_objects("cpu")


@pytest.mark.forked  # it uses the device
def test_a_storage_on_the_current_device_in_place_of_the_named_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("refnpu")
    monkeypatch.setattr(storage_objects, "_new", lambda _: Storage(storage_objects.SIZE, device="npu"))
    result = storage_objects.storages_as_objects("npu:1")["new"]
    assert isinstance(result, torch.Tensor)
    assert result.tolist() == [False, 12, *[3] * 12]


@pytest.mark.forked  # it computes a gradient
def test_storages_that_may_not_grow_and_those_that_only_say_so_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    program = storage_objects.storages_that_may_grow
    assert not different(program, lambda: None)
    assert different(program, lambda: monkeypatch.setattr(Storage, "resizable", lambda _: False)) == {
        *storage_objects.OWNERS
    } - {"exchanged"}
    monkeypatch.undo()
    assert "computed" in different(program, lambda: monkeypatch.setattr(Storage, "resize_", lambda *_: None))
