"""Models over two devices: gradients that are lost between devices, or seen on one device only, are found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from conformance.scenarios import model_parallel
from tests.scenarios.altered import different

pytestmark = pytest.mark.forked  # it runs `backward`

BOTH = ("idle", "busy")


def moved_without_gradient(to: Callable[..., torch.Tensor], tensor: torch.Tensor, *where: Any) -> torch.Tensor:
    """Move a tensor, but detach a tensor with one dimension, so that its gradient is lost."""
    return to(tensor.detach() if tensor.dim() == 1 else tensor, *where)


def clipped_by_the_first(clip: Callable[..., torch.Tensor], parameters: Any, *how: Any, **more: Any) -> torch.Tensor:
    """Clip only the gradients of the first two parameters, which are on the first device."""
    return clip(list(parameters)[:2], *how, **more)


def stepped_despite_infinities(_: Any, scaler: torch.amp.GradScaler, optimizer: torch.optim.Optimizer) -> None:
    scaler.unscale_(optimizer)
    optimizer.step()


@pytest.mark.parametrize(("owner", "name", "change", "found"), [
    (torch.nn.utils, "clip_grad_norm_", clipped_by_the_first, {"plain", "foreach"}),
    (torch.amp.GradScaler, "step", stepped_despite_infinities, {"scaled"}),
])  # fmt: skip
def test_a_step_that_looks_at_one_device_alone_is_found(
    owner: Any, name: str, change: Callable[..., Any], found: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = partial(change, getattr(owner, name))

    def altered(*given: Any, **more: Any) -> Any:  # unlike a partial, a function binds as a method
        return broken(*given, **more)

    names = different(model_parallel.model_over_two_devices, lambda: monkeypatch.setattr(owner, name, altered))
    assert names == {f"{one}_{how}" for one in found for how in BOTH}


def test_a_gradient_that_does_not_come_back_from_another_device_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    to = torch.Tensor.to
    names = different(
        model_parallel.gradients_of_several_devices,
        lambda: monkeypatch.setattr(torch.Tensor, "to", lambda *given: moved_without_gradient(to, *given)),
    )
    assert names == {"joined_idle", "joined_busy"}
