"""Tensors through DLPack: a tensor that comes back copied, made dense or on another device differs from CPU's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils import dlpack
from torch.utils.dlpack import from_dlpack, to_dlpack

from conformance.scenarios.exchange import VIEWS, tensors_of_other_libraries, tensors_through_dlpack
from conformance.scenarios.model import NotOffered


def different(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    right = tensors_through_dlpack("cpu")
    monkeypatch.setattr(dlpack, "from_dlpack", lambda capsule: wrong(from_dlpack(capsule)))
    found = tensors_through_dlpack("cpu")
    return {name for name, one in right.items() if not torch.equal(one, found[name])}


def test_memory_that_is_not_shared_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = different(torch.clone, monkeypatch)
    assert {name for name in found if name.startswith("written")} == {
        f"written.{view}" for view in VIEWS if view != "of_nothing"
    }


def test_strides_that_are_lost_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"lies.transposed", "lies.every_second"} <= different(torch.Tensor.contiguous, monkeypatch)


def test_a_view_that_is_refused_where_dense_tensors_are_not_is_no_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_dense(tensor: torch.Tensor) -> Any:
        if not tensor.is_contiguous():
            raise RuntimeError("strides")
        return to_dlpack(tensor)

    monkeypatch.setattr(dlpack, "to_dlpack", of_dense)
    with pytest.raises(RuntimeError, match="strides"):
        tensors_through_dlpack("cpu")


def test_a_device_without_capsules_offers_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: torch.Tensor) -> Any:
        raise BufferError("no such device")

    monkeypatch.setattr(dlpack, "to_dlpack", refuse)
    assert all(isinstance(one, NotOffered) for one in tensors_through_dlpack("cpu").values())


def of_methods(change: Any) -> set[str]:
    """Return the names of the results that differ after a change of a tensor's methods."""
    right = tensors_of_other_libraries("cpu")
    change()
    found = tensors_of_other_libraries("cpu")
    return {name for name, one in right.items() if not torch.equal(one, found[name])}


def test_a_copy_by_the_methods_of_a_tensor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    capsule = torch.Tensor.__dlpack__

    def of_a_copy(tensor: torch.Tensor, *given: Any, **named: Any) -> Any:
        return capsule(tensor.clone(), *given, **named)

    found = of_methods(lambda: monkeypatch.setattr(torch.Tensor, "__dlpack__", of_a_copy))
    assert {f"written.{view}" for view in VIEWS if view != "of_nothing"} <= found


def test_a_gradient_that_is_not_refused_and_a_wrong_place_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def change() -> None:
        capsule, place = torch.Tensor.__dlpack__, torch.Tensor.__dlpack_device__
        monkeypatch.setattr(torch.Tensor, "__dlpack__", lambda x, **how: capsule(x.detach(), **how))
        monkeypatch.setattr(torch.Tensor, "__dlpack_device__", lambda x: (place(x)[0], 3))

    assert {"with_a_gradient", "place", "place_of_another"} <= of_methods(change)


def test_a_capsule_that_is_taken_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dlpack, "to_dlpack", lambda x: x)
    monkeypatch.setattr(dlpack, "from_dlpack", lambda x: x)
    assert not tensors_of_other_libraries("cpu")["taken_twice"]
