"""Autograd besides gradients: saved tensors that move, anomaly detection, hooks, accumulated gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from conformance.scenarios.model import NotOffered, Results, first_line, offered, on, scenario

_VALUES = torch.arange(12.0).view(3, 4) % 5 - 2
_WEIGHTS = torch.arange(20.0).view(5, 4) % 7 - 3


def _leaves(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a tensor and weights that require gradients. Their values are integers, so every sum is exact."""
    return on(device, _VALUES.clone()).requires_grad_(), on(device, _WEIGHTS.clone()).requires_grad_()


def _loss(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return a sum for which autograd saves views, results and arguments."""
    rows = torch.nn.functional.linear(x.abs(), weights).relu()
    return (rows[:, 1:] * rows[:, :1]).sum() + (x.t()[1:] ** 2).sum()


def _gradients(*leaves: torch.Tensor) -> torch.Tensor:
    return torch.cat([(leaf.grad if leaf.grad is not None else torch.zeros_like(leaf)).flatten() for leaf in leaves])


@scenario(exact=True, area="training")
def saved_tensors_elsewhere(device: str) -> Results:
    """Gradients are the same if saved tensors wait on the host, pinned or not, or in another form."""

    def through(context: Callable[[], Any]) -> torch.Tensor:
        leaves = _leaves(device)
        with context():
            loss = _loss(*leaves)
        loss.backward()
        return _gradients(*leaves)

    def packed() -> Any:
        return torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: (tensor.device, tensor.detach().cpu().clone(memory_format=torch.contiguous_format)),
            lambda kept: kept[1].to(kept[0], non_blocking=True),
        )

    def pinned() -> torch.Tensor:
        if torch.device(device).type == "cpu":
            return through(torch.autograd.graph.save_on_cpu)  # nothing is pinned for CPU
        try:
            torch.ones(2).pin_memory()
        except (RuntimeError, NotImplementedError) as e:
            raise NotOffered(f"pinned memory: {first_line(e)}") from e
        return through(partial(torch.autograd.graph.save_on_cpu, pin_memory=True))

    return {
        "on_the_host": offered(partial(through, torch.autograd.graph.save_on_cpu)),
        "pinned": offered(pinned),
        "packed": offered(partial(through, packed)),
    }


@scenario(exact=True, area="training")
def anomalies(device: str) -> Results:
    """Anomaly detection raises for a gradient that is not a number, and for no other."""

    def raises(numbers: list[float]) -> torch.Tensor:
        x = on(device, torch.tensor(numbers)).requires_grad_()
        try:
            with warnings.catch_warnings(), torch.autograd.set_detect_anomaly(True, check_nan=True):
                warnings.simplefilter("ignore")  # torch warns with the place of the forward call
                (x.sqrt() * 0).sum().backward()
        except RuntimeError as e:
            if "nan values" not in str(e):
                raise
            return torch.tensor(1)
        return torch.tensor(0)

    cases = {"of_nan": [4.0] * 500 + [0.0], "of_infinity": [4.0, torch.inf], "of_numbers": [1.0, 4.0, 9.0]}
    return {name: offered(partial(raises, numbers)) for name, numbers in cases.items()}


@scenario(exact=True, area="training")
def added_gradients(device: str) -> Results:
    """Gradients are added to those that are there, whatever their strides, in the tensor that holds them."""

    def into(grad: torch.Tensor | None, times: int = 1) -> torch.Tensor:
        x, weights = _leaves(device)
        x.grad = grad
        loss = _loss(x, weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a gradient with other strides
            for i in range(times):
                loss.backward(retain_graph=i + 1 < times)
        if grad is not None and x.grad is not grad:
            raise AssertionError("the gradient is another tensor")
        return _gradients(x, weights)

    def given(grad: torch.Tensor) -> torch.Tensor:
        return on(device, grad)

    def zeroed(to_none: bool) -> torch.Tensor:
        x, weights = _leaves(device)
        optimizer = torch.optim.SGD([x, weights], lr=0.5)
        for _ in range(2):
            optimizer.zero_grad(set_to_none=to_none)
            _loss(x, weights).backward()
        return _gradients(x, weights)

    def alone() -> torch.Tensor:
        x, weights = _leaves(device)
        _loss(x, weights).backward(inputs=[weights])
        return _gradients(x, weights)

    def of_expanded() -> torch.Tensor:
        x = on(device, torch.arange(3.0)).requires_grad_()
        y = x.expand(4, 3)
        y.backward(on(device, torch.arange(12.0).view(4, 3)))
        y.sum().backward()
        return _gradients(x)

    return {
        "into_none": offered(partial(into, None)),
        "twice": offered(partial(into, None, 2)),
        "into_a_dense_one": offered(lambda: into(given(torch.ones(3, 4)), 2)),
        "into_a_transposed_one": offered(lambda: into(given(torch.arange(12.0).view(4, 3)).t(), 2)),
        "into_every_second": offered(lambda: into(given(torch.ones(3, 8))[:, ::2])),
        "zeroed": offered(partial(zeroed, False)),
        "set_to_none": offered(partial(zeroed, True)),
        "of_some_inputs": offered(alone),
        "of_expanded": offered(of_expanded),
    }


@scenario(exact=True, area="training")
def hooks(device: str) -> Results:
    """Hooks see the gradients of tensors and modules, and may return others."""
    seen: dict[str, torch.Tensor] = {}

    def see(name: str, gradient: torch.Tensor) -> None:
        seen[name] = gradient.detach().clone()

    def work() -> torch.Tensor:
        x, weights = _leaves(device)
        layer = torch.nn.Linear(4, 5, bias=False)
        layer.weight = torch.nn.Parameter(weights.detach())
        inner = x * 2
        inner.register_hook(partial(see, "of_a_result"))
        inner.register_hook(lambda gradient: gradient * 3)
        x.register_hook(partial(see, "of_a_leaf"))
        layer.weight.register_hook(lambda gradient: gradient.flip(0))
        layer.weight.register_post_accumulate_grad_hook(lambda leaf: see("accumulated", _gradients(leaf)))
        layer.register_full_backward_hook(lambda _, given, got: see("given_to_a_module", given[0] + got[0].sum()))
        several = torch.autograd.graph.register_multi_grad_hook(
            [x, inner], lambda found: see("of_several", torch.cat([g.flatten() for g in found if g is not None]))
        )
        (layer(inner).relu() * 2).sum().backward()
        several.remove()  # the hook and the tensors refer to each other
        return _gradients(x, layer.weight)

    return {"gradients": offered(work), **seen}


class _Moved(torch.autograd.Function):
    """A function that writes to its first argument, saves two tensors, and has a result without a gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        x.mul_(2)
        product, rounded = x * y, y.round()
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(rounded)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(y, product)
        return x, product, rounded

    @staticmethod
    def backward(ctx: Any, of_x: Any, of_product: Any, _: Any) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        y, product = ctx.saved_tensors
        if of_product is None:
            return (None if of_x is None else 2 * of_x), None
        back = of_product * y * 2
        return (back if of_x is None else back + 2 * of_x), of_product * product / y


@scenario(exact=True, area="training")
def functions_of_their_own(device: str) -> Results:
    """A function of its own that writes an argument and saves tensors has the gradients that it says."""

    def through(*chosen: int) -> torch.Tensor:
        x, y = _leaves(device)[0], on(device, torch.tensor([1.0, 2.0, -4.0, 0.5])).requires_grad_()
        results = _Moved.apply(x * 1, y)
        sum((results[i] * (i + 2)).sum() for i in chosen).backward()
        return torch.cat([_gradients(x, y), *(result.detach().flatten() for result in results)])

    return {
        "of_all": offered(partial(through, 0, 1)),
        "of_the_written_one": offered(partial(through, 0)),
        "of_the_product": offered(partial(through, 1)),
    }


def _written_through_a_view(x: torch.Tensor) -> None:
    x[1:].t()[0].fill_(3)


def _written_detached(x: torch.Tensor) -> None:
    x.detach().fill_(3)


def _written_as_data(x: torch.Tensor) -> None:
    x.data.fill_(3)


#: Ways to write to a tensor of three rows and four columns. For autograd, the last two are not writes.
WRITES: dict[str, Callable[[torch.Tensor], Any]] = {
    "fill_": lambda x: x.fill_(3),
    "zero_": lambda x: x.zero_(),
    "add_": lambda x: x.add_(1),
    "mul_": lambda x: x.mul_(x.clone()),
    "copy_": lambda x: x.copy_(x.clone()),
    "copy_from_the_host": lambda x: x.copy_(torch.ones(3, 4)),
    "converted": lambda x: x.copy_(x.double()),
    "masked_fill_": lambda x: x.masked_fill_(x > 0, 5),
    "index_put_": lambda x: x.index_put_((torch.tensor([0, 2], device=x.device),), x[:2].clone()),
    "index_add_": lambda x: x.index_add_(0, torch.tensor([0, 2], device=x.device), x[:2].clone()),
    "scatter_": lambda x: x.scatter_(1, torch.zeros(3, 1, dtype=torch.int64, device=x.device), 7),
    "set_item": lambda x: x.__setitem__(0, 3),
    "clamp_": lambda x: x.clamp_(min=0),
    "relu_": torch.relu_,
    "normal_": lambda x: x.normal_(),
    "bernoulli_": lambda x: x.bernoulli_(0.5),
    "cumsum_": lambda x: x.cumsum_(0),
    "addmm_": lambda x: x.addmm_(x[:, :3].clone(), x.clone()),
    "out": lambda x: torch.add(x.clone(), 1, out=x),
    "out_of_a_sum": lambda x: torch.sum(x.clone().expand(2, 3, 4), 0, out=x),
    "through_a_view": _written_through_a_view,
    "detached": _written_detached,
    "through_a_transposed_handle": lambda x: x.detach().t_().copy_(x.t().clone()),
    "only_read": lambda x: x.add(1),
    "as_data": _written_as_data,
}


@scenario(exact=True, area="training")
def writes_after_saving(device: str) -> Results:
    """``backward`` raises for a saved tensor that something wrote after it was saved, and for no other."""

    def raises(write: Callable[[torch.Tensor], Any]) -> torch.Tensor:
        leaf = on(device, _VALUES.clone()).requires_grad_()
        saved = leaf * 2
        loss = (saved * saved).sum()  # autograd saves the argument
        with torch.no_grad():
            write(saved)
        try:
            loss.backward()
        except RuntimeError as e:
            if "modified by an inplace operation" not in str(e):
                raise
            return torch.tensor(1)
        return torch.tensor(0)

    return {name: offered(partial(raises, write)) for name, write in WRITES.items()}


_f = torch.nn.functional
#: Nonlinear functions of 3 x 4 elements from -2 to 2. The gradient of each needs a saved tensor.
NOT_LINEAR: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "exp": torch.exp,
    "sin": torch.sin,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "square": torch.square,
    "power": lambda x: x**3,
    "product": lambda x: x * x,
    "product of matrices": lambda x: x @ x.t(),
    "batch of products": lambda x: torch.bmm(x[None], x.t()[None]),
    "hypot": lambda x: torch.hypot(x, x + 1),
    "relu": torch.relu,
    "gelu": _f.gelu,
    "silu": _f.silu,
    "elu": _f.elu,
    "softplus": _f.softplus,
    "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(1),
    "logsumexp": lambda x: x.logsumexp(1),
    "norm": lambda x: (x + 3).norm(),
    "variance": lambda x: x.var(1),
    "layer_norm": lambda x: _f.layer_norm(x, (4,)),
    "group_norm": lambda x: _f.group_norm(x[None], 3),
    "mse_loss": lambda x: _f.mse_loss(x, x * 0),
    "smooth_l1_loss": lambda x: _f.smooth_l1_loss(x, x * 0),
    "convolution": lambda x: _f.conv1d(x[None], x[None]),
    "attention": lambda x: _f.scaled_dot_product_attention(*[x[None, None]] * 3),
}


@scenario(exact=True, area="training")
def graphs_are_freed(device: str) -> Results:
    """A second ``backward`` through a graph that the first one freed raises an error: what was saved is gone."""

    def raises(function: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        x = on(device, _VALUES.clone()).requires_grad_()
        total = function(x).sum()
        total.backward()
        try:
            total.backward()
        except RuntimeError:
            return torch.tensor(1)
        return torch.tensor(0)

    return {name: offered(partial(raises, function)) for name, function in NOT_LINEAR.items()}
