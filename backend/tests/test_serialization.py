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


def test_a_tensor_comes_back_to_its_device_with_its_strides() -> None:
    x = torch.arange(6.0, device="npu:1").view(2, 3).t()
    y = torch.load(saved(x))
    assert (y.device, y.stride()) == (x.device, x.stride())
    assert y.tolist() == x.tolist()


def test_map_location_brings_it_to_the_cpu_and_back() -> None:
    x = torch.arange(3.0, device="npu")
    assert torch.load(saved(x), map_location="cpu").device.type == "cpu"
    assert torch.load(saved(x.cpu()), map_location="npu:1").device == torch.device("npu:1")
    assert torch.load(saved(x), map_location={"npu:0": "npu:1"}).device == torch.device("npu:1")


def test_tensors_that_shared_a_storage_still_share_it() -> None:
    x = torch.arange(4.0, device="npu")
    y, tail = torch.load(saved([x, x[2:]]))
    tail.fill_(9)
    assert y.tolist() == [0.0, 1.0, 9.0, 9.0]


def test_a_module_keeps_its_state() -> None:
    layer = torch.nn.Linear(3, 2).npu()
    other = torch.nn.Linear(3, 2)
    other.load_state_dict(torch.load(saved(layer.state_dict()), map_location="cpu"))
    assert torch.equal(other.weight, layer.weight.cpu())


def test_pickle_works_too() -> None:
    x = torch.arange(3.0, device="npu")
    y = pickle.loads(pickle.dumps(x))
    assert y.device == x.device
    assert y.tolist() == x.tolist()
