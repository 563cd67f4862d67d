"""Device modules whose import changes the behaviour of a program on CPU."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from conformance.scenarios import importing
from conformance.scenarios.importing import importing_changes_nothing_else
from conformance.scenarios.model import Broken, NotOffered

SETTINGS = """
import logging, os, signal, warnings
import torch
torch.use_deterministic_algorithms(True)
torch.rand(1)
logging.basicConfig()
warnings.simplefilter("ignore")
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.umask(0o77)
print("loaded")
"""
FUNCTIONS = """
import functools, torch

def rebuild(*given):
    return torch._utils._rebuild_tensor_v2(*given)

reduce, index = torch.Tensor.__reduce_ex__, torch.Tensor.__getitem__
def pickled(tensor, protocol):
    made, given = reduce(tensor, protocol)
    return (rebuild, given) if made is torch._utils._rebuild_tensor_v2 else (made, given)

def indexed(tensor, i):
    try:
        return index(tensor, i)
    except IndexError as e:
        raise RuntimeError("no such element") from e

torch.Tensor.__reduce_ex__, torch.Tensor.__getitem__ = pickled, indexed
torch.load = functools.partial(torch.load, weights_only=False)
"""

NAMES = {"names_in_a_pickle", "names_in_a_pickled_module", "names_in_a_file"}


@functools.cache
def facts_without_the_module() -> dict[str, str]:
    return importing.facts_of("torch")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the module that a new process imports to know the device."""
    monkeypatch.setattr(importing, "SECONDS", 600.0)  # the limit of a cell is too short for a busy machine
    wanted, facts = facts_without_the_module(), importing.facts_of
    monkeypatch.setattr(importing, "facts_of", lambda name: wanted if name == "torch" else facts(name))
    monkeypatch.setattr(importing, "loaded_by", lambda _: "of_a_device")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "of_a_device.py"


@pytest.mark.parametrize(("code", "changed"), [
    (SETTINGS, {"determinism", "draws", "logging", "warnings", "interrupt", "umask", "output"}),
    (FUNCTIONS, {*NAMES, "error_of_an_index", "unsafe"}),
])  # fmt: skip
def test_what_an_import_changes_is_found_and_nothing_else(code: str, changed: set[str], module: Path) -> None:
    module.write_text(code)
    found = importing_changes_nothing_else("meta")
    assert found.keys() == importing_changes_nothing_else("cpu").keys()
    broken = {name: one.lines[1] for name, one in found.items() if isinstance(one, Broken)}
    assert broken.keys() == changed
    if "output" in changed:
        assert broken["output"] == "sys.stdout  # 'loaded\\n', without the import ''"


def test_an_import_that_fails_offers_nothing_and_one_that_ends_the_process_is_found(module: Path) -> None:
    module.write_text("raise ImportError('no driver')\n")
    with pytest.raises(NotOffered, match="import of of_a_device"):
        importing_changes_nothing_else("meta")
    module.write_text("import os\nos.abort()\n")
    with pytest.raises(AssertionError, match="ended with -6"):
        importing_changes_nothing_else("meta")
