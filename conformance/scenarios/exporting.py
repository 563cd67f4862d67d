"""Programs of ``torch.export``: exported on the device, saved and loaded, and moved to the device."""

from __future__ import annotations

import io

import torch
from torch import nn
from torch.export import Dim, ExportedProgram, export, load, save

from conformance.scenarios.model import NotOffered, Results, scenario

SIZES = (5, 2)  # sizes of a batch; the program is exported with the first
FEATURES = 131


class Model(nn.Module):
    """A module with parameters, a buffer, and a tensor that is made on the device of its argument."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(FEATURES, 3)
        self.scale: torch.Tensor
        self.register_buffer("scale", torch.tensor([1.0, -2.0, 0.5]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(3, device=x.device, dtype=x.dtype)
        return nn.functional.gelu(self.linear(x)) * self.scale + positions


def _model(device: str) -> Model:
    torch.manual_seed(0)
    model = Model()
    model.to(device)
    return model


def _batch(device: str, size: int) -> torch.Tensor:
    return torch.linspace(-1, 1, size * FEATURES).view(size, FEATURES).to(device)


def _exported(model: Model, device: str) -> ExportedProgram:
    return export(model, (_batch(device, SIZES[0]),), dynamic_shapes=({0: Dim("batch", min=2, max=64)},))


def _computed(program: ExportedProgram, device: str) -> Results:
    """Return the results of a program for several batches, and whether its parameters and buffers are on the device."""
    kind = torch.device(device).type
    module = program.module()
    results: Results = {f"batch of {size}": module(_batch(device, size)).detach().cpu() for size in SIZES}
    places = [tensor.device.type == kind for tensor in program.state_dict.values()]
    return {**results, "places": torch.tensor(places)}


@scenario(slow=True, compiles=True, area="export")
def exported(device: str) -> Results:
    """A module that is exported on the device computes what it does eagerly, for batches of other sizes too."""
    model = _model(device)
    eager: Results = {f"eager, batch of {size}": model(_batch(device, size)).detach().cpu() for size in SIZES}
    return {**eager, **_computed(_exported(model, device), device)}


@scenario(slow=True, compiles=True, area="export")
def exported_and_decomposed(device: str) -> Results:
    """An exported program computes the same after ``run_decompositions``."""
    return _computed(_exported(_model(device), device).run_decompositions(), device)


@scenario(slow=True, compiles=True, area="export")
def exported_through_a_file(device: str) -> Results:
    """An exported program goes through a file, and its parameters are on the device again."""
    file = io.BytesIO()
    save(_exported(_model(device), device), file)
    file.seek(0)
    return _computed(load(file), device)


@scenario(slow=True, compiles=True, area="export")
def exported_on_cpu_and_moved(device: str) -> Results:
    """``move_to_device_pass`` moves a program that was exported on CPU, with the tensors that it makes."""
    try:
        from torch.export.passes import move_to_device_pass
    except ImportError:
        raise NotOffered(f"torch {torch.__version__} has no move_to_device_pass") from None
    return _computed(move_to_device_pass(_exported(_model("cpu"), "cpu"), device), device)
