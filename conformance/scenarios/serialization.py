"""Tensors and modules that are saved, loaded, pickled and copied."""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from conformance.scenarios import patience
from conformance.scenarios.asking import accelerator, another, held
from conformance.scenarios.model import NotOffered, Results, broken, conjugated, first_line, offered, reloaded, scenario

SECONDS = 120.0  # limit for a new process, which spends most of it importing torch
#: An environment variable that torch reads. By default torch imports installed backends.
AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"


def _facts(before: torch.Tensor, after: torch.Tensor, place: torch.device | None) -> torch.Tensor:
    """Return whether a copy has each property of a tensor: layout, dtype, device, bits of lazy views, class and others.

    ``place``: the expected device of the copy, None for that of the tensor.
    """
    pairs = (
        (before.shape, after.shape), (before.stride(), after.stride()), (before.dtype, after.dtype),
        (before.storage_offset(), after.storage_offset()), (place or before.device, after.device),
        (before.is_conj(), after.is_conj()), (before.is_neg(), after.is_neg()),
        (before.requires_grad, after.requires_grad), (type(before), type(after)),
    )  # fmt: skip
    return torch.tensor([bool(a == b) for a, b in pairs])


def _tensors(device: str) -> dict[str, torch.Tensor]:
    base = torch.arange(24.0, device=device)
    tensors = {
        "dense": base,
        "equal": base.clone(),
        "transposed": base.view(4, 6).t(),
        "strided": base[1::3],
        "expanded": base[2:3].expand(4),
        "empty": torch.empty(0, 3, device=device),
        "number": torch.tensor(2.5, device=device),
        "integers": torch.arange(5, device=device),
        "bytes": torch.arange(7, dtype=torch.uint8, device=device),
        "bools": torch.arange(5, device=device) > 2,
        "halves": base.half(),
        "bfloats": base.bfloat16(),
        "needs_a_gradient": torch.ones(3, device=device, requires_grad=True),
        "parameter": torch.nn.Parameter(base + 1),
    }
    with contextlib.suppress(NotOffered):
        tensors["conjugated"] = conjugated(torch.view_as_complex(torch.arange(6.0, device=device).view(3, 2)))
    return tensors


def _kept(
    before: dict[str, torch.Tensor], after: dict[str, torch.Tensor], place: torch.device | None = None
) -> Results:
    results: Results = {name: after[name].detach().resolve_conj().cpu().contiguous().clone() for name in before}
    results |= {f"{name}_facts": _facts(before[name], after[name], place) for name in before}
    if "conjugated" not in before:
        results["conjugated"] = broken("conjugate")
    after["dense"][2] = 100.0  # seen by the views of the storage, but not by an equal tensor
    results["shared"] = torch.stack([after["transposed"][2, 0], after["expanded"][3], after["equal"][2]]).cpu()
    return results


@scenario(exact=True, area="serialization")
def saved_and_loaded(device: str) -> Results:
    """``torch.save`` and ``torch.load`` keep values, strides, offsets and sharing, with ``weights_only`` as it is."""
    before = _tensors(device)
    return _kept(before, reloaded(before))


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
        loaded, place = reloaded(tensor, map_location=location), torch.device(wanted)
        results[name] = loaded.cpu()
        is_there = loaded.device.type == place.type and place.index in (None, loaded.device.index)
        results[f"{name}_place"] = torch.tensor(is_there)
    return results | {"to_another": offered(lambda: _loaded_on(another(device)))}


def _loaded_on(device: str) -> torch.Tensor:
    """Return a tensor that is loaded on a device other than the current one, and whether it is there."""
    loaded = reloaded(torch.arange(6.0), map_location=device)
    return torch.cat([loaded.cpu(), torch.tensor([loaded.device == torch.device(device)])])


@scenario(exact=True, area="serialization")
def mapped_file(device: str) -> Results:
    """``torch.load(mmap=True)`` of a file of the device's tensors gives them back on the device."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tensors.pt"
        torch.save({"x": torch.arange(100.0, device=device)}, file)
        loaded = torch.load(file, mmap=True)["x"]
        return {"values": loaded.cpu().clone(), "place": torch.tensor(loaded.device.type == torch.device(device).type)}


#: Forms of a file, and ways to read it: arguments of :func:`torch.save` and :func:`torch.load`, and the expected
#: device; None for that of the tensors.
FILES: dict[str, tuple[dict[str, Any], Callable[[str], dict[str, Any]], str | None]] = {
    "older": ({"_use_new_zipfile_serialization": False}, lambda _: {}, None),
    "older_to_cpu": ({"_use_new_zipfile_serialization": False}, lambda _: {"map_location": "cpu"}, "cpu"),
    "protocol_3": ({"pickle_protocol": 3}, lambda _: {"weights_only": False}, None),
    "protocol_5": ({"pickle_protocol": 5}, lambda _: {"weights_only": False}, None),
    "mapped": ({}, lambda _: {"mmap": True}, None),
    "mapped_to_cpu": ({}, lambda _: {"mmap": True, "map_location": "cpu"}, "cpu"),
    "mapped_to_the_device": ({}, lambda device: {"mmap": True, "map_location": device}, None),
    "without_weights_only": ({}, lambda _: {"weights_only": False}, None),
    "function_of_none": ({}, lambda _: {"map_location": lambda *_: None}, None),
    "table_of_others": ({}, lambda _: {"map_location": {"nothing:7": "meta"}}, None),
    "to_torch_device": ({}, lambda device: {"map_location": torch.device(device)}, None),
}


@scenario(exact=True, area="serialization")
def files_of_other_forms(device: str) -> Results:
    """Files of other forms, and tensors that are read in other ways, keep what ``torch.save`` and ``load`` keep."""
    before = _tensors(device)
    results: Results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (saving, reading, where) in FILES.items():
            file = Path(folder) / name
            try:
                torch.save(before, file, **saving)
                found = torch.load(file, **reading(device))
            except NotImplementedError as e:
                results[name] = NotOffered(first_line(e))
                continue
            kept = _kept(before, found, torch.device(where) if where else None)
            results |= {f"{name}.{key}": value for key, value in kept.items()}
    for protocol in (2, 4, 5):
        kept = _kept(before, pickle.loads(pickle.dumps(before, protocol)))
        results |= {f"pickled_{protocol}.{key}": value for key, value in kept.items()}
    return results


@scenario(exact=True, area="serialization", accelerators=True)
def places_of_files(device: str) -> Results:
    """What was saved returns to its device, whichever is current; what names a device that is not there is refused."""
    kind = torch.device(device).type

    def returns() -> bool:
        accelerator(device)
        there = another(device)
        values = torch.arange(5.0, device=there)
        before = torch.accelerator.current_device_index()
        found = reloaded({"x": values, "row": values[1:]})
        ways = found["x"], found["row"], pickle.loads(pickle.dumps(values)), copy.deepcopy(values)
        left = torch.accelerator.current_device_index() == before
        return left and all(x.device == values.device for x in ways) and torch.equal(ways[1].cpu(), values[1:].cpu())

    def goes_to_the_current_one() -> bool:
        accelerator(device)
        found = reloaded(torch.arange(5.0), map_location=kind)
        return bool(found.device == torch.zeros(1, device=kind).device)

    def to_meta() -> bool:
        values = torch.arange(6.0, device=device).view(2, 3).t()
        found = reloaded(values, map_location="meta")
        return (found.device.type, found.shape, found.stride()) == ("meta", values.shape, values.stride())

    def refused(location: Callable[[], str]) -> bool:
        accelerator(device)
        before, where = torch.accelerator.current_device_index(), location()
        try:
            reloaded(torch.ones(2), map_location=where)
        except Exception:  # noqa: BLE001  # the type of the error is up to the backend
            here = torch.accelerator.current_device_index() == before
            return here and bool(torch.equal(reloaded(torch.ones(2, device=device)).cpu(), torch.ones(2)))
        return False

    return held(device, {
        "returns": returns, "to_the_current_one": goes_to_the_current_one, "to_meta": to_meta,
        "none_there": partial(refused, lambda: f"{kind}:{torch.accelerator.device_count()}"),
        "none_far": partial(refused, lambda: f"{kind}:{torch.accelerator.device_count() + 40}"),
        "unknown": partial(refused, lambda: "nothing:0"),
    })  # fmt: skip


@scenario(exact=True, slow=True, area="serialization")
def state_of_a_module(device: str) -> Results:
    """A module's state goes through a file into another module, and an optimizer's state with it."""
    results: Results = {}
    first, optimizer = _trained(device)
    second = torch.nn.Linear(3, 2).to(device)
    second.load_state_dict(reloaded(first.state_dict()))
    other = torch.optim.SGD(second.parameters(), lr=0.5, momentum=0.5)
    other.load_state_dict(reloaded(optimizer.state_dict()))
    for name, value in second.state_dict().items():
        results[name] = torch.tensor(torch.equal(value, first.state_dict()[name]))
    for i, state in enumerate(other.state.values()):
        results[f"momentum_{i}"] = state["momentum_buffer"].cpu()
        results[f"momentum_{i}_place"] = torch.tensor(state["momentum_buffer"].device.type == torch.device(device).type)
    return results


def _trained(device: str) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """Return a module and its optimizer after one step."""
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 2).to(device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5, momentum=0.5)
    module(torch.ones(1, 3, device=device)).sum().backward()
    optimizer.step()
    return module, optimizer


@scenario(exact=True, slow=True, area="serialization")
def loaded_without_the_device(device: str) -> Results:
    """A process that has not imported the device's module loads tensors, states and modules of the device on CPU."""
    before, place = _tensors(device), torch.device("cpu")
    module, optimizer = _trained(device)
    states = {"weights": module.state_dict(), "optimizer": optimizer.state_dict()}
    with tempfile.TemporaryDirectory() as folder:
        torch.save(before, f"{folder}/newer")
        torch.save(before, f"{folder}/older", _use_new_zipfile_serialization=False)
        torch.save(states, f"{folder}/states")
        torch.save(module, f"{folder}/module")
        _load_in_another(folder, str(before["dense"].device), is_new=device != "cpu")
        found = {
            file.suffix[1:]: torch.load(file, weights_only=False) for file in sorted(Path(folder).glob("loaded.*"))
        }
        older = _kept(before, torch.load(f"{folder}/older"))
    states, module = found.pop("states"), found.pop("module")
    momenta = {str(i): one["momentum_buffer"] for i, one in states["optimizer"]["state"].items()}
    alone = {"state": states["weights"], "momenta": momenta, "module": module.state_dict()}
    results = {f"here.{name}": one for name, one in older.items()}
    for file, tensors in found.items():
        results |= {f"{file}.{name}": one for name, one in _kept(before, tensors, place).items()}
    for file, tensors in alone.items():
        results |= {f"{file}.{name}": one for name, one in tensors.items()}
        results[f"{file}.places"] = torch.tensor([one.device == place for one in tensors.values()])
    return results


def _load_in_another(folder: str, device: str, is_new: bool) -> None:
    """Call :func:`_load_each` in a new process that imports only torch if ``is_new``, else in this process.

    Raises RuntimeError with the last line of the process's stderr if it fails, and AssertionError if it does not end.
    """
    if not is_new:
        _load_each(folder, device)
        return
    program = f"import torch\n{inspect.getsource(_load_each)}\n_load_each({folder!r}, {device!r})"
    command = [sys.executable, "-c", program]
    environment = {**os.environ, AUTOLOAD: "0"}
    try:
        code, _, errors = patience.run(command, SECONDS, environment)
    except subprocess.TimeoutExpired as e:
        raise AssertionError(f"a process without the device has not ended within {SECONDS:.0f} s") from e
    if code:
        said = errors.strip().splitlines() or [f"exit code {code}"]
        raise RuntimeError(f"a process without the device: {said[-1]}")


def _load_each(folder: str, device: str) -> None:
    """Load files of a device's tensors on CPU in several ways. Save the result of each in a file named after it."""
    ways: dict[str, tuple[str, dict[str, Any]]] = {
        "weights": ("newer", {"map_location": "cpu"}),
        "whole": ("newer", {"map_location": torch.device("cpu"), "weights_only": False}),
        "mapped": ("newer", {"map_location": "cpu", "mmap": True}),
        "by_table": ("newer", {"map_location": {device: "cpu"}}),
        "by_function": ("newer", {"map_location": lambda storage, _: storage}),
        "older": ("older", {"map_location": "cpu"}),
        "states": ("states", {"map_location": "cpu"}),
        "module": ("module", {"map_location": "cpu", "weights_only": False}),
    }
    for name, (file, how) in ways.items():
        try:
            torch.save(torch.load(f"{folder}/{file}", **how), f"{folder}/loaded.{name}")
        except Exception as e:
            raise RuntimeError(" ".join([f"{name}:", type(e).__name__, *str(e).split()])) from e  # in one line
