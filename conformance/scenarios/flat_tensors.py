"""Tensors that are views of one flat storage and do not overlap, as the parameters of sharded training are.

In the samples of the ops, each written argument has a storage of its own. A backend that copies storages, or compares
them to find what may be written, goes wrong if several arguments share one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial

import torch
from torch import nn, optim

from conformance.scenarios.model import NotOffered, Results, first_line, offered, on, scenario

SHAPES = ((3, 4), (5,), (), (2, 3, 2))

#: Optimizers, and the arguments of each besides the learning rate.
OPTIMIZERS: dict[str, tuple[type[optim.Optimizer], dict[str, object]]] = {
    "sgd": (optim.SGD, {}),
    "momentum": (optim.SGD, {"momentum": 0.9, "weight_decay": 0.01}),
    "adam": (optim.Adam, {}),
    "adamw": (optim.AdamW, {"amsgrad": True}),
    "adagrad": (optim.Adagrad, {}),
    "rmsprop": (optim.RMSprop, {"momentum": 0.9, "centered": True}),
}
#: Implementations of a step. Not every optimizer has each.
HOW = ("foreach", "fused")
#: Part of torch's message at the first step if an implementation supports other devices only.
FOR_OTHER_DEVICES = "`fused=True` requires all the params to be"


def _values(n: int, device: str) -> torch.Tensor:
    """Return ``n`` numbers between -1 and 1, none of which is 0."""
    return on(device, (torch.arange(n) * 37 % 101 - 50).to(torch.float32) / 51 + 1e-3)


def _views(flat: torch.Tensor) -> list[torch.Tensor]:
    """Return consecutive views of a flat tensor, with one element between every two."""
    found, at = [], 0
    for shape in SHAPES:
        n = torch.Size(shape).numel()
        found.append(flat[at : at + n].view(shape))
        at += n + 1
    return found


def _flat(device: str) -> torch.Tensor:
    return _values(sum(torch.Size(shape).numel() + 1 for shape in SHAPES), device)


@scenario()
def optimizer_steps(device: str) -> Results:
    """Take steps with parameters, and with gradients, that are views of one tensor."""

    def stepped(kind: Callable[..., optim.Optimizer], arguments: dict[str, object], how: str) -> torch.Tensor:
        flat, gradients = _flat(device), _flat(device).flip(0)
        parameters = [view.requires_grad_() for view in _views(flat)]
        for parameter, gradient in zip(parameters, _views(gradients), strict=True):
            parameter.grad = gradient
        try:
            optimizer = kind(parameters, lr=0.1, **arguments, **{how: True})
        except RuntimeError as e:  # supported on other devices only
            raise NotOffered(f"{how}: {first_line(e)}") from e
        try:
            for _ in range(3):
                optimizer.step()
        except RuntimeError as e:
            if FOR_OTHER_DEVICES not in str(e):
                raise
            raise NotOffered(f"{how}: {first_line(e)}") from e
        return flat.detach()

    return {
        f"{name}_{how}": offered(partial(stepped, kind, arguments, how))
        for name, (kind, arguments) in OPTIMIZERS.items()
        for how in HOW
        if how in inspect.signature(kind).parameters
    }


@scenario()
def clipped_gradients(device: str) -> Results:
    """Clip gradients that are views of one tensor."""

    def clipped(clip: Callable[[list[nn.Parameter], float], object]) -> torch.Tensor:
        gradients = _flat(device)
        parameters = [nn.Parameter(view.clone()) for view in _views(gradients)]
        for parameter, gradient in zip(parameters, _views(gradients), strict=True):
            parameter.grad = gradient
        clip(parameters, 0.25)
        return gradients

    return {
        "norm": offered(partial(clipped, nn.utils.clip_grad_norm_)),
        "value": offered(partial(clipped, nn.utils.clip_grad_value_)),
    }


Written = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]

#: Writes to ``x`` of values from ``y`` and ``z``, which are in the same storage.
NEIGHBOURS: dict[str, Written] = {
    "copy_": lambda x, y, _: x.copy_(y),
    "add_": lambda x, y, _: x.add_(y, alpha=2),
    "addcmul_": lambda x, y, z: x.addcmul_(y, z),
    "lerp_": lambda x, y, z: x.lerp_(y, z),
    "clamp_": lambda x, y, z: x.clamp_(min=y.abs().neg(), max=z.abs()),
    "masked_fill_": lambda x, y, _: x.masked_fill_(y > 0, 2.0),
    "index_add_": lambda x, y, _: x.index_add_(0, torch.tensor([1, 0, 3, 2], device=x.device), y),
    "addmm_": lambda x, y, z: x.addmm_(y, z),
    "mm": lambda x, y, z: torch.mm(y, z, out=x),
    "cat": lambda x, y, z: torch.cat([y[:2], z[2:]], out=x),
    "where": lambda x, y, z: torch.where(y > z, y, z, out=x),
    "softmax": lambda x, y, _: torch.softmax(y, 1, out=x),
    "cumsum": lambda x, y, _: torch.cumsum(y, 0, out=x),
    "erfinv": lambda x, y, _: torch.erfinv(y, out=x),
    "gather": lambda x, y, _: torch.gather(y, 0, torch.tensor([[3, 2, 1, 0]] * 4, device=x.device), out=x),
    "normalize": lambda x, y, z: x.copy_(nn.functional.layer_norm(y, (4,), z[0], z[1])),
}


@scenario()
def neighbours(device: str) -> Results:
    """Write to a part of a storage what is computed of other parts of it, dense and with gaps."""

    def made(write: Written, dense: bool) -> torch.Tensor:
        flat = _values(48 if dense else 96, device)
        x, y, z = flat.view(3, 4, 4) if dense else flat.view(4, 4, 6)[..., :3].permute(2, 0, 1)
        write(x, y, z)
        return flat

    return {
        f"{name}_{kind}": offered(partial(made, write, kind == "dense"))
        for name, write in NEIGHBOURS.items()
        for kind in ("dense", "gaps")
    }
