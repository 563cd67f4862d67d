"""The model that a user gives: ``file.py``, ``file.py:function`` or ``module:function``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from conformance.support.lines import error_line
from conformance.support.suggestions import unknown
from conformance.torch_versions import compilers

SEED = 0
DEFAULT_FUNCTION = "model"


class SpecError(ValueError):
    """A specification or a file of the user that cannot be used. The message says what was expected."""


@dataclass(frozen=True, slots=True)
class Model:
    """A module in evaluation mode with example inputs, on one device, and the dynamic shapes of ``torch.export``."""

    module: torch.nn.Module
    inputs: tuple[Any, ...]
    dynamic_shapes: Any = None

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The inputs' tensors, in the order of the compiled model's inputs."""
        return [leaf for leaf in compilers.leaves_of(self.inputs) if isinstance(leaf, torch.Tensor)]

    def with_tensors(self, tensors: list[torch.Tensor]) -> tuple[Any, ...]:
        """Return the inputs with these tensors in place of their own. Further tensors are added at the end.

        With too few tensors, return the inputs with their own tensors, and leave out the last ones.
        """
        expected = len(self.tensors)
        if len(tensors) < expected:
            return self.inputs[: len(self.inputs) - (expected - len(tensors))]
        replaced = compilers.with_tensors(self.inputs, tensors[:expected])
        return (*replaced, *tensors[expected:])


def parts(spec: str) -> tuple[str, str]:
    """Return the file or module of a specification, and the function. Raises SpecError if there is none."""
    name = spec if spec.endswith(".py") else spec.rpartition(":")[0]
    function = DEFAULT_FUNCTION if name == spec else spec.rpartition(":")[2]
    if not name or not function:
        raise SpecError(f"{spec!r} is no model: expected file.py, file.py:function or module:function")
    if name.endswith(".py") and not Path(name).is_file():
        raise SpecError(f"no file {name}; expected file.py, file.py:function or module:function")
    return name, function


def load(spec: str, device: str) -> Model:
    """Return the model of a specification on a device, with equal weights in all processes. Raises SpecError."""
    name, function = parts(spec)
    module = _file(Path(name)) if name.endswith(".py") else _module(name)
    make = getattr(module, function, None)
    if not callable(make):
        known = sorted(n for n, v in vars(module).items() if callable(v) and not n.startswith("_"))
        raise SpecError(f"{name}: {unknown('function', function, known)}; expected {name}:FUNCTION")
    torch.manual_seed(SEED)
    return _checked(spec, make, device)


def inputs_from(file: Path, model: Model, device: str) -> list[torch.Tensor]:
    """Return the tensors of a file to which ``torch.save`` wrote a list or tuple of tensors. Raises SpecError.

    The file is loaded with ``weights_only=True``: it cannot run code.
    """
    try:
        found = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as e:  # torch.load raises many types for a file of another kind
        raise SpecError(f"{file} cannot be loaded as tensors: {error_line(e)}") from e
    expected = len(model.tensors)
    if not isinstance(found, (list, tuple)) or not all(isinstance(t, torch.Tensor) for t in found):
        raise SpecError(f"{file} has a {type(found).__name__}; expected a list or tuple of {expected} tensors")
    if len(found) != expected:
        raise SpecError(f"{file} has {len(found)} tensors; the model has {expected} inputs")
    return [_moved(t, device) for t in found]


def _file(path: Path) -> Any:
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # the model's classes are looked up there
    spec.loader.exec_module(module)
    return module


def _module(name: str) -> Any:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        raise SpecError(f"no module {e.name!r}") from e


def _checked(spec: str, make: Callable[[], Any], device: str) -> Model:
    made = make()
    if not isinstance(made, tuple) or len(made) not in (2, 3) or not isinstance(made[0], torch.nn.Module):
        raise SpecError(
            f"{spec} returns {type(made).__name__}; expected (module, example inputs, dynamic shapes or None)"
        )
    module, inputs, *shapes = made
    if not isinstance(inputs, tuple) or not any(isinstance(v, torch.Tensor) for v in compilers.leaves_of(inputs)):
        raise SpecError(f"the example inputs of {spec} are no tuple with a tensor in it")
    strided = [leaf for leaf in compilers.leaves_of(inputs) if isinstance(leaf, torch.Tensor)]
    if any(leaf.layout is not torch.strided for leaf in strided):
        raise SpecError(f"an example input of {spec} is not strided; compiled models take strided tensors")
    moved = [_moved(leaf, device) for leaf in strided]
    return Model(module.eval().to(device), compilers.with_tensors(inputs, moved), shapes[0] if shapes else None)


def _moved(tensor: torch.Tensor, device: str) -> torch.Tensor:
    return tensor.detach().to(device)
