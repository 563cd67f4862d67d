"""Tensors and modules that are saved, loaded, pickled and copied."""

from __future__ import annotations

import copy
import io
import pickle
import tempfile
from pathlib import Path
from typing import Any

import torch

from conformance.scenarios.asking import another
from conformance.scenarios.model import Results, offered, scenario


def _saved(value: Any, **how: Any) -> Any:
    """Return what is loaded of a file of what is given."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **how)


def _facts(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Return what a copy keeps of a tensor: sizes, strides, offset, dtype, device, and bits of lazy views."""
    pairs = (
        (before.shape, after.shape), (before.stride(), after.stride()), (before.dtype, after.dtype),
        (before.storage_offset(), after.storage_offset()), (before.device, after.device),
        (before.is_conj(), after.is_conj()), (before.is_neg(), after.is_neg()),
        (before.requires_grad, after.requires_grad), (type(before), type(after)),
    )  # fmt: skip
    return torch.tensor([bool(a == b) for a, b in pairs])


def _tensors(device: str) -> dict[str, torch.Tensor]:
    base = torch.arange(24.0, device=device)
    return {
        "dense": base,
        "transposed": base.view(4, 6).t(),
        "strided": base[1::3],
        "expanded": base[2:3].expand(4),
        "empty": torch.empty(0, 3, device=device),
        "number": torch.tensor(2.5, device=device),
        "integers": torch.arange(5, device=device),
        "halves": base.half(),
        "bfloats": base.bfloat16(),
        "conjugated": torch.view_as_complex(torch.arange(6.0, device=device).view(3, 2)).conj(),
        "needs_a_gradient": torch.ones(3, device=device, requires_grad=True),
    }


def _kept(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> Results:
    results: Results = {name: after[name].detach().resolve_conj().cpu().contiguous().clone() for name in before}
    results |= {f"{name}_facts": _facts(before[name], after[name]) for name in before}
    after["dense"][2] = 100.0  # seen by the views of the storage
    results["shared"] = torch.stack([after["transposed"][2, 0], after["expanded"][3]]).cpu()
    return results


@scenario(exact=True, area="serialization")
def saved_and_loaded(device: str) -> Results:
    """``torch.save`` and ``torch.load`` keep values, strides, offsets and sharing, with ``weights_only`` as it is."""
    before = _tensors(device)
    return _kept(before, _saved(before))


@scenario(exact=True, area="serialization")
def pickled(device: str) -> Results:
    """``pickle`` keeps what ``torch.save`` keeps."""
    before = _tensors(device)
    return _kept(before, pickle.loads(pickle.dumps(before)))


@scenario(exact=True, area="serialization")
def copied(device: str) -> Results:
    """``copy.deepcopy`` keeps what ``torch.save`` keeps, and the copy shares no memory with the original."""
    before = _tensors(device)
    results = _kept(before, copy.deepcopy(before))
    return {**results, "original": before["dense"].cpu().clone()}


@scenario(exact=True, area="serialization")
def loaded_elsewhere(device: str) -> Results:
    """``map_location`` moves tensors between CPU and the device, as a name, a device, a table and a function."""
    there, here = torch.arange(6.0, device=device), torch.arange(6.0)
    locations: dict[str, tuple[torch.Tensor, Any, str]] = {
        "to_cpu": (there, "cpu", "cpu"),
        "to_device": (here, device, device),
        "to_torch_device": (here, torch.device(device), device),
        "by_table": (there, {str(there.device): "cpu"}, "cpu"),
        "by_function": (there, lambda storage, _: storage.cpu(), "cpu"),
    }
    results: Results = {}
    for name, (tensor, location, wanted) in locations.items():
        loaded, place = _saved(tensor, map_location=location), torch.device(wanted)
        results[name] = loaded.cpu()
        is_there = loaded.device.type == place.type and place.index in (None, loaded.device.index)
        results[f"{name}_place"] = torch.tensor(is_there)
    return results | {"to_another": offered(lambda: _loaded_on(another(device)))}


def _loaded_on(device: str) -> torch.Tensor:
    """Return a tensor that is loaded on a device, which is not the current one, and whether it is there."""
    loaded = _saved(torch.arange(6.0), map_location=device)
    return torch.cat([loaded.cpu(), torch.tensor([loaded.device == torch.device(device)])])


@scenario(exact=True, area="serialization")
def mapped_file(device: str) -> Results:
    """``torch.load(mmap=True)`` of a file of the device's tensors gives them back on the device."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tensors.pt"
        torch.save({"x": torch.arange(100.0, device=device)}, file)
        loaded = torch.load(file, mmap=True)["x"]
        return {"values": loaded.cpu().clone(), "place": torch.tensor(loaded.device.type == torch.device(device).type)}


@scenario(exact=True, slow=True, area="serialization")
def state_of_a_module(device: str) -> Results:
    """A module's state goes through a file into another module, and an optimizer's state with it."""
    results: Results = {}
    torch.manual_seed(0)
    first, second = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    for module in (first, second):
        module.to(device)
    optimizer = torch.optim.SGD(first.parameters(), lr=0.5, momentum=0.5)
    first(torch.ones(1, 3, device=device)).sum().backward()
    optimizer.step()
    second.load_state_dict(_saved(first.state_dict()))
    other = torch.optim.SGD(second.parameters(), lr=0.5, momentum=0.5)
    other.load_state_dict(_saved(optimizer.state_dict()))
    for name, value in second.state_dict().items():
        results[name] = torch.tensor(torch.equal(value, first.state_dict()[name]))
    for i, state in enumerate(other.state.values()):
        results[f"momentum_{i}"] = state["momentum_buffer"].cpu()
        results[f"momentum_{i}_place"] = torch.tensor(state["momentum_buffer"].device.type == torch.device(device).type)
    return results
