"""Operations on modules besides calls: moves, materialization, initialization, parametrizations."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from functools import partial

import torch
from torch import nn
from torch.nn.utils import prune

from conformance.scenarios.model import Results, offered, on, scenario

_X = torch.arange(24.0).view(3, 8) % 7 - 3


class _Block(nn.Module):
    """A module with a buffer of integers, a buffer that is not saved, and a frozen weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8, bias=False)
        self.scale = nn.Parameter(torch.arange(8.0), requires_grad=False)
        self.register_buffer("steps", torch.tensor([3, 5]))
        self.register_buffer("cached", torch.ones(8), persistent=False)
        self.norm = nn.BatchNorm1d(8)
        with torch.no_grad():
            for i, parameter in enumerate(self.parameters()):
                parameter.copy_(torch.arange(parameter.numel()).view(parameter.shape) % (5 + i) / 4 - 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(self.norm(x)))
        result: torch.Tensor = self.second(hidden) * self.scale + self.cached * self.steps.sum()
        return result


def _computed(module: nn.Module, device: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return the result of a module, the gradients of its parameters, and its buffers, in one row."""
    module.zero_grad()
    result = module(on(device, _X).to(dtype))
    (result * on(device, _X.abs()).to(dtype)).sum().backward()
    gradients = [p.grad.flatten() for p in module.parameters() if p.grad is not None]
    return torch.cat([result.detach().flatten(), *gradients, *(b.flatten().to(dtype) for b in module.buffers())])


def _is_whole(module: nn.Module, device: str) -> None:
    """Raise AssertionError unless all of a moved module is on the device, and only frozen weights are frozen.

    Whether two layers still share a weight is up to torch, which makes new parameters for some devices.
    """
    tensors = [*module.parameters(), *module.buffers()]
    if any(t.device.type != torch.device(device).type for t in tensors):
        raise AssertionError(f"devices of a moved module: {sorted({str(t.device) for t in tensors})}")
    if module.scale.requires_grad or not module.first.weight.requires_grad:
        raise AssertionError("requires_grad of a moved module differs")


@scenario(exact=False)
def moved(device: str) -> Results:
    """A module that is moved, converted or copied has all of its parts on the device, and computes the same."""

    def after(move: Callable[[nn.Module], nn.Module], dtype: torch.dtype = torch.float32) -> torch.Tensor:
        module = move(_Block())
        _is_whole(module, device)
        if module.steps.dtype != torch.int64:
            raise AssertionError(f"a buffer of int64 became {module.steps.dtype}")
        return _computed(module, device, dtype)

    def twice(module: nn.Module) -> nn.Module:
        module = module.to(device)
        _computed(module, device)
        return module.to("cpu").to(device)

    return {
        "to": offered(lambda: after(lambda m: m.to(device))),
        "to_without_blocking": offered(lambda: after(lambda m: m.to(device, non_blocking=True))),
        "to_in_float64": offered(lambda: after(lambda m: m.to(device, torch.float64), torch.float64)),
        "there_and_back": offered(lambda: after(twice)),
        "double": offered(lambda: after(lambda m: m.to(device).double(), torch.float64)),
        "deepcopy": offered(lambda: after(lambda m: copy.deepcopy(m.to(device)))),
    }


@scenario(exact=True, slow=True)  # torch imports modules for seconds when it first makes a module without memory
def materialized(device: str) -> Results:
    """A module that was made without memory gets it on the device, and its values from a state."""
    state = {name: tensor.clone() for name, tensor in _Block().state_dict().items()}
    there = {name: on(device, tensor) for name, tensor in state.items()}

    def made(fill: Callable[[nn.Module], nn.Module]) -> torch.Tensor:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = _Block()
        module = fill(module)
        found = module.state_dict()
        if any(tensor.device.type != torch.device(device).type for tensor in found.values()):
            raise AssertionError("a part of the state is elsewhere")
        return torch.cat([found[name].flatten().float() for name in sorted(found)])

    def filled(module: nn.Module) -> nn.Module:
        module = module.to_empty(device=device)
        module.load_state_dict(state)
        return module

    def assigned(module: nn.Module) -> nn.Module:
        module.load_state_dict(there, assign=True)
        return module

    def on_the_device(module: nn.Module) -> nn.Module:
        with torch.device(device):
            made_there = type(module)()
        made_there.load_state_dict(state)
        return made_there

    return {
        "emptied_and_loaded": offered(partial(made, filled)),
        "assigned": offered(partial(made, assigned)),
        "made_there": offered(partial(made, on_the_device)),
        "skip_init": offered(lambda: torch.tensor(nn.utils.skip_init(nn.Linear, 3, 5, device=device).weight.shape)),
    }


@scenario(exact=True, slow=True)
def initialized(device: str) -> Results:
    """Weights that ``torch.nn.init`` writes have the values, the range or the spread that it says."""

    def weight(*shape: int) -> torch.Tensor:
        return torch.full(shape, torch.nan, device=device)

    def spread(draw: Callable[[torch.Tensor], torch.Tensor], expected: float) -> torch.Tensor:
        drawn = draw(weight(300, 500)).cpu()
        return torch.tensor(abs(float(drawn.std()) / expected - 1) < 0.05)

    def inside(draw: Callable[[torch.Tensor], torch.Tensor], least: float, most: float) -> torch.Tensor:
        drawn = draw(weight(300, 500)).cpu()
        reach = (drawn.max() - drawn.min()) / (most - least)
        return torch.tensor(bool((drawn >= least).all() and (drawn <= most).all() and reach > 0.98))

    def orthogonal() -> torch.Tensor:
        rows = nn.init.orthogonal_(weight(30, 50)).cpu().double()
        return torch.tensor(bool(torch.allclose(rows @ rows.t(), torch.eye(30).double(), atol=1e-5)))

    def sparse() -> torch.Tensor:
        return (nn.init.sparse_(weight(40, 20), sparsity=0.25).cpu() == 0).sum(0)

    init = nn.init
    calls: dict[str, Callable[[], torch.Tensor]] = {
        "constant_": lambda: init.constant_(weight(3, 5), 0.25),
        "ones_": lambda: init.ones_(weight(3, 5)),
        "zeros_": lambda: init.zeros_(weight(3, 5)),
        "eye_": lambda: init.eye_(weight(5, 3)),
        "dirac_": lambda: init.dirac_(weight(6, 3, 3, 3), groups=2),
        "uniform_": lambda: inside(lambda w: init.uniform_(w, -2, 3), -2, 3),
        "normal_": lambda: spread(lambda w: init.normal_(w, 1, 3), 3),
        "trunc_normal_": lambda: inside(lambda w: init.trunc_normal_(w, 0, 1, -0.5, 1.5), -0.5, 1.5),
        "xavier_uniform_": lambda: inside(init.xavier_uniform_, -((6 / 800) ** 0.5), (6 / 800) ** 0.5),
        "xavier_normal_": lambda: spread(init.xavier_normal_, (2 / 800) ** 0.5),
        "kaiming_uniform_": lambda: inside(init.kaiming_uniform_, -((6 / 500) ** 0.5), (6 / 500) ** 0.5),
        "kaiming_normal_": lambda: spread(lambda w: init.kaiming_normal_(w, mode="fan_out"), (2 / 300) ** 0.5),
        "orthogonal_": orthogonal,
        "sparse_": sparse,
    }
    return {name: offered(call) for name, call in calls.items()}


@scenario(exact=False)
def parametrized(device: str) -> Results:
    """Weights that are computed from others, pruned, averaged or put into a vector are those of CPU."""

    def layer() -> nn.Module:
        return _Block().first.to(device)

    def pruned() -> torch.Tensor:
        module = layer()
        with torch.no_grad():
            module.weight.copy_((torch.arange(64) * 37 % 64).view(8, 8) - 31.75)  # no two have the same magnitude
        module = prune.l1_unstructured(module, "weight", amount=0.3)
        module = prune.random_unstructured(module, "bias", amount=3)
        kept = module.bias_mask.sum().view(1)
        return torch.cat([module.weight.detach().flatten(), kept])

    def vector() -> torch.Tensor:
        module = _Block().to(device)
        numbers = nn.utils.parameters_to_vector(module.parameters()).detach()
        nn.utils.vector_to_parameters(numbers * 2, module.parameters())
        return _computed(module, device)

    def clipped() -> torch.Tensor:
        module = _Block().to(device)
        _computed(module, device)
        nn.utils.clip_grad_value_(module.parameters(), 0.01)
        return torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])

    of = nn.utils.parametrizations
    calls: dict[str, Callable[[], torch.Tensor]] = {
        "weight_norm": lambda: _computed(of.weight_norm(layer()), device),
        "orthogonal": lambda: _computed(of.orthogonal(layer(), orthogonal_map="cayley"), device),
        "pruned": pruned,
        "averaged": partial(_averaged, device),
        "vector": vector,
        "fused": partial(_fused, device),
        "clipped": clipped,
    }
    return {name: offered(call) for name, call in calls.items()}


def _averaged(device: str) -> torch.Tensor:
    """Return weights that are averaged over a few steps."""
    module = _Block().to(device)
    average = torch.optim.swa_utils.AveragedModel(module)
    for step in range(3):
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(step)
        average.update_parameters(module)
    return torch.cat([parameter.detach().flatten() for parameter in average.parameters()])


def _fused(device: str) -> torch.Tensor:
    """Return the result of a convolution that is fused with a batch norm."""
    convolution = nn.Conv1d(3, 4, 3)
    norm = nn.BatchNorm1d(4)
    with torch.no_grad():
        for i, tensor in enumerate([*convolution.parameters(), *norm.parameters(), *norm.buffers()]):
            tensor.copy_(torch.arange(tensor.numel()).view(tensor.shape) % (4 + i) / 2 + 0.5)
    module = nn.utils.fuse_conv_bn_eval(convolution.to(device).eval(), norm.to(device).eval())
    result: torch.Tensor = module(on(device, _X.view(1, 3, 8)))
    return result.detach()
