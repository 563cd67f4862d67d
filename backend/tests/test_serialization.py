"""torch.save and torch.load, to and from the device."""

from __future__ import annotations

import io
import pickle

import torch


def saved(value: object) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


def test_a_saved_tensor_is_loaded_to_its_device_with_its_strides() -> None:
    x = torch.arange(6.0, device="npu:1").view(2, 3).t()
    y = torch.load(saved(x))
    assert (y.device, y.stride()) == (x.device, x.stride())
    assert y.tolist() == x.tolist()


def test_map_location_loads_a_tensor_to_another_device() -> None:
    x = torch.arange(3.0, device="npu")
    assert torch.load(saved(x), map_location="cpu").device.type == "cpu"
    assert torch.load(saved(x.cpu()), map_location="npu:1").device == torch.device("npu:1")
    assert torch.load(saved(x), map_location={"npu:0": "npu:1"}).device == torch.device("npu:1")


def test_saved_tensors_that_share_a_storage_share_it_after_loading() -> None:
    x = torch.arange(4.0, device="npu")
    y, tail = torch.load(saved([x, x[2:]]))
    tail.fill_(9)
    assert y.tolist() == [0.0, 1.0, 9.0, 9.0]


def test_the_state_of_a_module_can_be_saved_and_loaded() -> None:
    layer = torch.nn.Linear(3, 2).npu()
    other = torch.nn.Linear(3, 2)
    other.load_state_dict(torch.load(saved(layer.state_dict()), map_location="cpu"))
    assert torch.equal(other.weight, layer.weight.cpu())


def test_a_pickled_tensor_keeps_device_and_values() -> None:
    x = torch.arange(3.0, device="npu")
    y = pickle.loads(pickle.dumps(x))
    assert y.device == x.device
    assert y.tolist() == x.tolist()
