"""Transforms of functions by ``torch.func`` and ``torch.autograd.functional``, alone and nested."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import func, nn
from torch.autograd import functional

from conformance.scenarios.model import Results, offered, on, scenario, tensors_of

_X = torch.tensor([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])
_V = torch.tensor([[1.0, -0.5, 0.25], [0.75, 2.0, -1.0]])


def _f(x: torch.Tensor) -> torch.Tensor:
    """Return a row that is computed by a product, an index, a reduction, and a write into a new tensor."""
    y = torch.sin(x) @ torch.cos(x).t()
    y = y.index_select(0, torch.tensor([1, 0], device=x.device)).tril()
    y[0] = y[0] + torch.logsumexp(x, -1)
    return y.flatten()


def _sum(x: torch.Tensor) -> torch.Tensor:
    return (_f(x) * _f(x)).sum()


def _row(*values: Any) -> torch.Tensor:
    """Return the elements of tensors in one row."""
    return torch.cat([t.detach().flatten() for t in tensors_of(values)])


_Function = Callable[[torch.Tensor, torch.Tensor], Any]
#: Transforms of functions, called with a point and a direction.
TRANSFORMS: dict[str, _Function] = {
    "grad": lambda x, _: func.grad(_sum)(x),
    "grad_and_value": lambda x, _: func.grad_and_value(_sum)(x),
    "vjp": lambda x, _: func.vjp(_f, x)[1](torch.arange(4.0, device=x.device)),
    "jvp": lambda x, v: func.jvp(_f, (x,), (v,)),
    "jacrev": lambda x, _: func.jacrev(_f)(x),
    "jacrev_in_chunks": lambda x, _: func.jacrev(_f, chunk_size=3)(x),
    "jacfwd": lambda x, _: func.jacfwd(_f)(x),
    "hessian": lambda x, _: func.hessian(_sum)(x),
    "grad_of_grad": lambda x, v: func.grad(lambda y: (func.grad(_sum)(y) * v).sum())(x),
    "vmap_of_grad": lambda x, v: func.vmap(func.grad(_sum))(torch.stack([x, v, x * v])),
    "vmap_in_chunks": lambda x, v: func.vmap(_f, chunk_size=2)(torch.stack([x, v, x * v])),
    "vmap_of_vmap": lambda x, v: func.vmap(func.vmap(torch.dot, (None, 0)), (0, None))(x, v * 2),
    "vmap_by_last": lambda x, v: func.vmap(torch.outer, (-1, 1), -1)(x, v * 2),
    "grad_of_vmap": lambda x, v: func.grad(lambda y: func.vmap(torch.dot)(y.exp(), v).prod())(x),
    "jvp_of_vmap": lambda x, v: func.jvp(lambda y: func.vmap(torch.dot)(y.exp(), y), (x,), (v,)),
    "functionalize": lambda x, _: func.functionalize(_f)(x),
    "functionalize_of_grad": lambda x, _: func.functionalize(func.grad(_sum))(x),
    "jacobian": lambda x, _: functional.jacobian(_f, x),
    "jacobian_vectorized": lambda x, _: functional.jacobian(_f, x, vectorize=True),
    "functional_hessian": lambda x, _: functional.hessian(_sum, x),
    "hvp": lambda x, v: functional.hvp(_sum, x, v),
    "vhp": lambda x, v: functional.vhp(_sum, x, v),
}


@scenario(slow=True, area="training")
def of_functions(device: str) -> Results:
    """Gradients, Jacobians, tangents and batches of functions, alone and nested, are those of CPU."""

    def transformed(transform: _Function) -> torch.Tensor:
        return _row(transform(on(device, _X), on(device, _V)))

    return {name: offered(partial(transformed, transform)) for name, transform in TRANSFORMS.items()}


def _module(steps: int = 0) -> nn.Module:
    module = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Tanh(), nn.Linear(4, 2))
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_((torch.arange(parameter.numel()) + steps).view(parameter.shape) % (5 + i) / 4 - 0.5)
    return module


@scenario(slow=True, area="training")
def of_modules(device: str) -> Results:
    """Modules that are called as functions: other parameters, gradients of each sample, several models in one call."""
    module, x = _module().to(device), on(device, _X)
    parameters = {name: parameter.detach() for name, parameter in module.named_parameters()}

    def loss(parameters: dict[str, torch.Tensor], sample: torch.Tensor) -> torch.Tensor:
        return func.functional_call(module, parameters, (sample,)).square().sum()

    def called_with_others() -> torch.Tensor:
        others = {name: parameter * 2 for name, parameter in parameters.items()}
        return _row(func.functional_call(module, others, (x,)), module(x))

    def gradients_of_samples() -> torch.Tensor:
        gradients = func.vmap(func.grad(loss), (None, 0))(parameters, x)
        return _row(*gradients.values())

    def several_models() -> torch.Tensor:
        stacked, buffers = func.stack_module_state([_module(steps).to(device) for steps in range(3)])
        base = copy.deepcopy(module).to("meta")
        call = func.vmap(lambda p, b: func.functional_call(base, (p, b), (x,)))
        return _row(call(stacked, buffers))

    def tangents() -> torch.Tensor:
        directions = {name: torch.ones_like(parameter) for name, parameter in parameters.items()}
        return _row(func.jvp(lambda p: loss(p, x), (parameters,), (directions,)))

    calls = (called_with_others, gradients_of_samples, several_models, tangents)
    return {call.__name__: offered(call) for call in calls}


#: Draws in a batch, as functions of one member.
DRAWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dropout": lambda x: nn.functional.dropout(torch.ones_like(x), 0.5),
    "rand_like": torch.rand_like,
    "normal": lambda x: x.clone().normal_(),
    "bernoulli": lambda x: torch.bernoulli(torch.full((64,), 0.5, device=x.device)),
    "randint": lambda x: torch.randint(0, 1 << 20, (64,), device=x.device),
    "randperm": lambda x: torch.randperm(64, device=x.device),
    "multinomial": lambda x: torch.multinomial(torch.ones(64, device=x.device), 32),
    "exponential": lambda x: x.clone().exponential_(),
}


def _drawn_in_a_batch(device: str, draw: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return for ``randomness`` "same", "different" and "error" of ``vmap`` whether the draws are as it says."""
    batch = torch.ones(3, 64, device=device)

    def drawn(how: str) -> bool:
        members = func.vmap(draw, randomness=how)(batch).cpu()
        return bool((members == members[0]).all())

    alike = drawn("same")
    different = not drawn("different")
    try:
        drawn("error")
    except RuntimeError:
        return torch.tensor([alike, different, True])
    return torch.tensor([alike, different, False])


@scenario(exact=True, slow=True, area="random")
def draws_in_a_batch(device: str) -> Results:
    """With ``vmap``, members of a batch draw the same numbers, or different ones, or drawing raises, as asked."""
    return {name: offered(partial(_drawn_in_a_batch, device, draw)) for name, draw in DRAWS.items()}
