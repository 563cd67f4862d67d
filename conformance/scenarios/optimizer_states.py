"""Optimizers with further settings, and their states: extended, saved, and moved to another device."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from conformance.scenarios.asking import another
from conformance.scenarios.model import NotOffered, Results, offered, reloaded, scenario

STEPS = 3
#: Optimizers and their settings, besides those of :mod:`conformance.scenarios.training`.
SETTINGS: dict[str, tuple[Callable[..., torch.optim.Optimizer], dict[str, Any]]] = {
    "sgd_nesterov": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "sgd_damped": (torch.optim.SGD, {"momentum": 0.5, "dampening": 0.25, "maximize": True}),
    "adam_amsgrad": (torch.optim.Adam, {"amsgrad": True, "weight_decay": 0.1}),
    "adam_maximized": (torch.optim.Adam, {"maximize": True, "betas": (0.5, 0.7), "eps": 1e-3}),
    "adamw_amsgrad": (torch.optim.AdamW, {"amsgrad": True, "maximize": True}),
    "rmsprop_centered": (torch.optim.RMSprop, {"centered": True, "momentum": 0.5, "weight_decay": 0.1}),
    "adagrad_decayed": (torch.optim.Adagrad, {"lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    "nadam_decoupled": (torch.optim.NAdam, {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    "radam": (torch.optim.RAdam, {"weight_decay": 0.1}),
    "adadelta": (torch.optim.Adadelta, {"rho": 0.7}),
    "asgd": (torch.optim.ASGD, {"lambd": 0.01, "t0": 1.0}),
    "rprop": (torch.optim.Rprop, {"etas": (0.4, 1.3)}),
}
#: Optimizers whose states are moved to another device.
MOVED = ("sgd_nesterov", "adam_amsgrad", "rmsprop_centered", "radam")


def _parameters(device: str) -> list[torch.Tensor]:
    """Return parameters: dense, transposed, of one element, without dimensions, empty, and one without a gradient."""
    made = [torch.arange(12.0).view(3, 4) / 8, (torch.arange(6.0).view(2, 3) / 4 - 0.6).t(), torch.ones(1),
            torch.tensor(0.5), torch.zeros(0), torch.full((3,), 2.0)]  # fmt: skip
    return [x.to(device).requires_grad_() for x in made]


def _step(optimizer: torch.optim.Optimizer, parameters: list[torch.Tensor], number: int) -> None:
    for i, parameter in enumerate(parameters[:-1]):
        gradient = torch.arange(float(parameter.numel())).add(i + number).remainder(5).sub(2.5) / 2
        parameter.grad = gradient.view(parameter.shape).to(parameter.device)
    optimizer.step()


def row_of(optimizer: torch.optim.Optimizer, parameters: list[torch.Tensor]) -> torch.Tensor:
    """Return parameters and their states in a row. Raises AssertionError if a state is elsewhere than its parameter."""
    rows = [parameter.detach() for parameter in parameters]
    for parameter in parameters:
        for name, value in sorted(optimizer.state[parameter].items()):
            if isinstance(value, torch.Tensor) and value.dim() and value.device != parameter.device:
                raise AssertionError(f"{name} is on {value.device}, its parameter on {parameter.device}")
            rows.append(torch.as_tensor(0.0 if value is None else value).detach())
    return torch.cat([row.cpu().float().flatten() for row in rows])


def _made(name: str, parameters: list[torch.Tensor], **how: Any) -> torch.optim.Optimizer:
    kind, settings = SETTINGS[name]
    return kind(parameters, lr=0.1, **settings, **how)


def _stepped(device: str, name: str, foreach: bool) -> torch.Tensor:
    parameters = _parameters(device)
    optimizer = _made(name, parameters, foreach=foreach)
    for number in range(STEPS):
        _step(optimizer, parameters, number)
    return row_of(optimizer, parameters)


def _added_to(device: str, name: str) -> torch.Tensor:
    """Return parameters and their states. Some parameters are added after a step, with a learning rate of their own.

    Raises NotOffered if the optimizer has states only for its first parameters, as ``Adagrad`` does in some versions.
    """
    parameters = _parameters(device)
    optimizer = _made(name, parameters[:2])
    _step(optimizer, parameters, 0)
    optimizer.add_param_group({"params": parameters[2:], "lr": 0.4})
    try:
        _step(optimizer, parameters, 1)
    except KeyError as e:
        raise NotOffered(f"states of parameters that are added: {name}") from e
    return row_of(optimizer, parameters)


@scenario(slow=True, area="training")
def steps_with_settings(device: str) -> Results:
    """Optimizers with further settings make CPU's steps, also of parameters that are added later."""
    ways: dict[str, Callable[..., torch.Tensor]] = {
        "plain": partial(_stepped, foreach=False), "foreach": partial(_stepped, foreach=True), "added": _added_to,
    }  # fmt: skip
    return {f"{name}_{way}": offered(partial(run, device, name)) for name in SETTINGS for way, run in ways.items()}


#: Ways to bring a state to an optimizer of parameters on another device.
WAYS: dict[str, Callable[[Any, str], Any]] = {
    "as_it_is": lambda state, _: state,
    "copied": lambda state, _: copy.deepcopy(state),
    "file_loaded_there": lambda state, where: reloaded(state, map_location=where),
    "file_loaded_on_cpu": lambda state, _: reloaded(state, map_location="cpu"),
}


def _moved(name: str, way: str, ends: Callable[[], tuple[str, str]]) -> torch.Tensor:
    """Return parameters and their states on another device, after a step with the state of the first device."""
    here, there = ends()
    parameters = _parameters(here)
    optimizer = _made(name, parameters)
    _step(optimizer, parameters, 0)
    moved = [parameter.detach().to(there, copy=True).requires_grad_() for parameter in parameters]
    other = _made(name, moved)
    other.load_state_dict(WAYS[way](optimizer.state_dict(), there))
    _step(other, moved, 1)
    return row_of(other, moved)


@scenario(slow=True, area="training")
def states_that_move(device: str) -> Results:
    """An optimizer goes on with a state that was made on another device as if it had made it."""
    places: dict[str, Callable[[], tuple[str, str]]] = {
        "up": lambda: ("cpu", device), "down": lambda: (device, "cpu"), "within": lambda: (device, device),
        "across": lambda: (device, another(device)),
    }  # fmt: skip
    return {
        f"{name}.{way}.{place}": offered(partial(_moved, name, way, ends))
        for name in MOVED
        for way in WAYS
        for place, ends in places.items()
    }
