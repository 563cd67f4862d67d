"""Files that a device saves: files that only a process with the device can load are found."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import torch

from conformance.scenarios.serialization import (
    files_of_other_forms,
    loaded_without_the_device,
    places_of_files,
    saved_and_loaded,
)

pytestmark = pytest.mark.forked  # it runs `backward`

# CPU under another name. A new process loads its files.
OTHER = "cpu:0"


def rebuilt(values: list[float]) -> torch.Tensor:
    return torch.tensor(values)


@pytest.fixture
def of_a_device(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module with the function ``rebuilt``, which only this process can import."""
    module = ModuleType("of_a_device")
    monkeypatch.setattr(rebuilt, "__module__", module.__name__)
    monkeypatch.setattr(module, "rebuilt", rebuilt, raising=False)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.__name__


def test_a_new_process_loads_what_this_one_loads() -> None:
    here, there = loaded_without_the_device("cpu"), loaded_without_the_device(OTHER)
    assert here.keys() == there.keys()
    for name, one in here.items():
        assert isinstance(one, torch.Tensor)
        assert torch.equal(one, there[name]), name


def test_a_file_that_names_a_module_of_the_device_is_found(of_a_device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = torch.Tensor.__reduce_ex__

    def of_the_device(tensor: torch.Tensor, protocol: Any) -> Any:
        return (rebuilt, (tensor.tolist(),)) if tensor.dtype == torch.bfloat16 else written(tensor, protocol)

    monkeypatch.setattr(torch.Tensor, "__reduce_ex__", of_the_device)
    with pytest.raises(RuntimeError, match=f"a process without the device: .*{of_a_device}"):
        loaded_without_the_device(OTHER)


def test_a_file_that_loses_bytes_behind_the_last_whole_word_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right, load = saved_and_loaded("cpu"), torch.load

    def in_words(file: Any, **how: Any) -> Any:
        found = load(file, **how)
        for one in found.values():
            storage = one.untyped_storage()
            storage[storage.nbytes() // 4 * 4 :] = 0
        return found

    monkeypatch.setattr(torch, "load", in_words)
    found = saved_and_loaded("cpu")
    assert {name for name, one in right.items() if not torch.equal(one, found[name])} >= {"bytes", "bools"}


def test_a_file_that_loses_strides_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right, load = loaded_without_the_device("cpu"), torch.load

    def dense(file: Any, **how: Any) -> Any:
        found = load(file, **how)
        if isinstance(found, dict) and "transposed" in found and str(file).endswith("older"):
            found["transposed"] = found["transposed"].contiguous()
        return found

    monkeypatch.setattr(torch, "load", dense)
    wrong = loaded_without_the_device("cpu")
    found = {name for name, one in right.items() if not torch.equal(one, wrong[name])}
    assert found == {"here.transposed_facts", "here.shared", "older.transposed_facts", "older.shared"}


def test_an_older_file_that_loses_strides_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    load = torch.load

    def forgetful(file: Any, **how: Any) -> Any:
        found = load(file, **how)
        if str(file).endswith("older"):
            found["transposed"] = found["transposed"].contiguous()
        return found

    right = files_of_other_forms("cpu")
    monkeypatch.setattr(torch, "load", forgetful)
    found = files_of_other_forms("cpu")
    wrong = {name for name, one in right.items() if not torch.equal(torch.as_tensor(one), torch.as_tensor(found[name]))}
    assert wrong == {"older.transposed_facts", "older.shared"}


def test_files_return_to_their_devices() -> None:
    pytest.importorskip("refnpu")
    assert all(isinstance(one, torch.Tensor) and one for one in places_of_files("npu:0").values())


@pytest.mark.parametrize(("wrong", "names"), [
    (lambda storage, _: storage.to(device="npu:0"), {"returns"}),
    (lambda storage, _: storage, {"returns", "to_the_current_one", "none_there", "none_far"}),
])  # fmt: skip
def test_files_that_return_elsewhere_are_found(wrong: Any, names: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("refnpu")
    restore = torch.serialization.default_restore_location
    monkeypatch.setattr(
        torch.serialization,
        "default_restore_location",
        lambda storage, where: wrong(storage, where) if where.startswith("npu") else restore(storage, where),
    )
    assert names <= {name for name, one in places_of_files("npu:0").items() if not one}


def test_storages_of_equal_bytes_that_are_loaded_as_one_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right, load = saved_and_loaded("cpu"), torch.load

    def as_one(file: Any, **how: Any) -> Any:
        found = load(file, **how)
        one, other = found["dense"], found["equal"]
        assert one.tolist() == other.tolist()
        other.set_(one.untyped_storage(), 0, one.shape, one.stride())
        return found

    monkeypatch.setattr(torch, "load", as_one)
    found = saved_and_loaded("cpu")
    assert {name for name, one in right.items() if not torch.equal(one, found[name])} == {"shared"}
