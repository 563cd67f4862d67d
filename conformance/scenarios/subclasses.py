"""Subclasses of tensors and modes of Python, which see and change calls of ops on the device as on CPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from conformance.scenarios.model import Results, offered, on, reloaded, scenario

_X = torch.tensor([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])


class Halved(torch.Tensor):
    """A tensor that computes with another tensor, which is half of it. Its own memory holds NaN."""

    half: torch.Tensor

    @classmethod
    def of(cls, half: torch.Tensor) -> Halved:
        made: Halved = torch.full_like(half, torch.nan).as_subclass(cls)
        made.half = half
        return made

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        whole = tree_map_only(Halved, lambda t: t.half * 2, (args, kwargs or {}))
        result = op(*whole[0], **whole[1])
        return tree_map_only(torch.Tensor, lambda t: cls.of(t / 2) if t.is_floating_point() else t, result)


class Labelled(torch.Tensor):
    """A tensor with a label. Results that are computed from it keep the label."""

    label: str = ""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(function, types, args, kwargs or {})
        if isinstance(result, Labelled):
            result.label = next((a.label for a in args if isinstance(a, Labelled)), "")
        return result


class Doubled(TorchDispatchMode):
    """A mode that doubles the results of matrix products."""

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        return result * 2 if op.overloadpacket is torch.ops.aten.mm else result


class InFloat64(TorchFunctionMode):
    """A mode that makes ones and zeros in float64."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        dtype = {"dtype": torch.float64} if function in (torch.ones, torch.zeros) else {}
        return function(*args, **(kwargs or {}), **dtype)


def _computed(x: torch.Tensor) -> torch.Tensor:
    y = torch.softmax(torch.mm(x, x.t()), -1)
    y = y.masked_fill(y < 0.25, 0.0)
    return (y.sum(0) * x.sum(1)).relu()


def _halved(device: str) -> Halved:
    return Halved.of(on(device, _X / 2))


def gradient_of(x: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a tensor. Raises AssertionError unless it is of the tensor's class and on its device."""
    x = x.detach().requires_grad_()
    _computed(x).sum().backward()
    if type(x.grad) is not type(x) or x.grad.device != x.device:
        raise AssertionError(f"the gradient of a {type(x).__name__} is {type(x.grad).__name__}, on {x.grad.device}")
    return x.grad


#: Calls with a tensor that is stored as another tensor of the device.
OF_HALVED: dict[str, Callable[[str], torch.Tensor]] = {
    "computed": lambda device: _computed(_halved(device)),
    "gradient": lambda device: gradient_of(_halved(device)),
    "with_a_plain_one": lambda device: _halved(device) * on(device, _X) + 1,
    "copied": lambda device: _halved(device).detach().clone(),
    "view": lambda device: _halved(device).t()[1:],
    "sent_to_the_host": lambda device: _halved(device).to("cpu"),
    "sent_to_the_device": lambda device: _computed(Halved.of(_X / 2).to(device)),
    "made_alike": lambda device: torch.ones_like(_halved(device)),
    "converted": lambda device: _halved(device).double(),
    "written": lambda device: on(device, torch.zeros(2, 3)).copy_(_halved(device)),
    "joined": lambda device: torch.cat([_halved(device), on(device, _X)]),
    "by_a_mask": lambda device: _halved(device)[on(device, _X) > 0],
    "drawn_alike": lambda device: torch.zeros_like(torch.rand_like(_halved(device))),
}


def _plain(call: Callable[[str], torch.Tensor], device: str) -> torch.Tensor:
    result = call(device)
    return (result.half * 2 if isinstance(result, Halved) else result).detach()


@scenario(area="training", slow=True)
def kept_as_another(device: str) -> Results:
    """A subclass that computes by another tensor of the device gives the results and gradients that it does on CPU."""
    return {name: offered(partial(_plain, call, device)) for name, call in OF_HALVED.items()}


def _labelled(device: str) -> Labelled:
    tensor: Labelled = on(device, _X.clone()).as_subclass(Labelled)
    tensor.label = "a label"
    return tensor


OF_LABELLED: dict[str, Callable[[str], torch.Tensor]] = {
    "computed": lambda device: _computed(_labelled(device)),
    "sent_to_the_host": lambda device: _labelled(device).to("cpu"),
    "sent_to_the_device": lambda device: _labelled("cpu").to(device),
    "detached": lambda device: _labelled(device).detach(),
    "view": lambda device: _labelled(device)[:, 1],
    "saved": lambda device: reloaded(_labelled(device), weights_only=False),
    "added_to": lambda device: _labelled(device).add_(1),
    "converted": lambda device: _labelled(device).half().float(),
    "of_a_form_of_an_index": lambda device: _labelled(device)[torch.tensor([1, 0], device=device)],
}


@scenario(exact=False, area="training", slow=True)
def with_a_label(device: str) -> Results:
    """What is computed of a subclass of the device's tensors is of the subclass, and has what its class gave it."""

    def labelled(call: Callable[[str], torch.Tensor]) -> torch.Tensor:
        result = call(device)
        if not isinstance(result, Labelled) or result.label != "a label":
            raise AssertionError(f"the result is {type(result).__name__} without the label")
        return result.detach().as_subclass(torch.Tensor)

    return {name: offered(partial(labelled, call)) for name, call in OF_LABELLED.items()}


@scenario(area="training", slow=True)
def under_a_mode(device: str) -> Results:
    """A mode that changes what some calls return changes it on the device, in the forward and in the backward pass."""

    def doubled(call: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        with Doubled():
            return call(on(device, _X)).detach()

    def widened(make: Callable[[], torch.Tensor]) -> torch.Tensor:
        with InFloat64():
            made = make()
        if made.dtype != torch.float64 or made.device.type != torch.device(device).type:
            raise AssertionError(f"what was made is {made.dtype} on {made.device}")
        return made

    return {
        "products": offered(lambda: doubled(_computed)),
        "gradients": offered(lambda: doubled(gradient_of)),
        "factories": offered(lambda: widened(lambda: torch.ones(3, device=device))),
        "factories_of_the_default_device": offered(lambda: widened(lambda: _made_on(device))),
    }


def _made_on(device: str) -> torch.Tensor:
    with torch.device(device):
        return torch.zeros(3)
