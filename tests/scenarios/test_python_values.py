"""Conversions between Python and a device: a device with a wrong conversion is found."""

from __future__ import annotations

import pytest
import refnpu  # noqa: F401 - the device
import torch

from conformance.scenarios.python_values import arrays_of_the_device


@pytest.mark.forked
def test_an_array_of_a_tensor_on_the_device_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(bool(x) for x in arrays_of_the_device("npu").values())
    numpy = torch.Tensor.numpy
    monkeypatch.setattr(torch.Tensor, "numpy", lambda x, *, force=False: numpy(x.cpu(), force=force))
    assert not any(bool(x) for x in arrays_of_the_device("npu").values())
