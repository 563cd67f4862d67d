"""Attention with the kernels that a program allows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from conformance.scenarios.model import NotOffered, Results, first_line, offered, on, scenario

#: Kernels that a program may allow. Each device has ``math``, which is made of matrix products.
KERNELS = {
    "math": [SDPBackend.MATH],
    "flash": [SDPBackend.FLASH_ATTENTION],
    "efficient": [SDPBackend.EFFICIENT_ATTENTION],
    "flash_or_math": [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH],
}
#: Parts of torch's message if a device has none of the allowed kernels.
_NO_KERNEL = ("No available kernel", "No viable backend")
_ROWS, _COLUMNS = 5, 9


def _mask() -> torch.Tensor:
    """Return a mask in which no row is empty: [5, 9], bool."""
    return (torch.arange(_ROWS * _COLUMNS).view(_ROWS, _COLUMNS) % 4 != 1).contiguous()


#: Further arguments of a call, by their names, made on a device.
FORMS: dict[str, Callable[[str], dict[str, Any]]] = {
    "plain": lambda _: {},
    "causal": lambda _: {"is_causal": True},
    "mask": lambda device: {"attn_mask": on(device, _mask())},
    "bias": lambda device: {"attn_mask": on(device, _mask().float() * 2)},
    "scaled": lambda _: {"scale": 0.3},
    "in_groups": lambda _: {"enable_gqa": True},
}


def _operands(device: str, form: str) -> list[torch.Tensor]:
    """Return queries, keys and values that need gradients: [2, heads, rows, 8], float32."""
    heads = (4, 2, 2) if form == "in_groups" else (2, 2, 2)
    rows = _ROWS, _COLUMNS, _COLUMNS
    shapes = [(2, h, n, 8) for h, n in zip(heads, rows)]
    made = [torch.arange(0.0, torch.Size(shape).numel()).mul(0.37 + i).sin() for i, shape in enumerate(shapes)]
    return [on(device, x.view(shape)).requires_grad_() for x, shape in zip(made, shapes)]


def _attended(device: str, form: str, kernels: list[SDPBackend]) -> torch.Tensor:
    """Return the result and the gradients, on CPU those of ``math``. Raises NotOffered without an allowed kernel."""
    operands, how = _operands(device, form), FORMS[form](device)
    try:
        with sdpa_kernel(kernels if device != "cpu" else [SDPBackend.MATH]):
            found = scaled_dot_product_attention(*operands, **how)
            found.backward(on(device, torch.arange(found.numel()).view(found.shape) % 3 - 1.0))
    except RuntimeError as e:
        if SDPBackend.MATH in kernels or not any(text in str(e) for text in _NO_KERNEL):
            raise
        raise NotOffered(first_line(e)) from e
    return torch.cat([found.detach().flatten(), *(x.grad.flatten() for x in operands if x.grad is not None)])


@scenario(area="training")
def kernels_that_are_allowed(device: str) -> Results:
    """Attention has the same result and gradients with each kernel that ``sdpa_kernel`` allows."""
    return {
        f"{form}.{name}": offered(partial(_attended, device, form, kernels))
        for form in FORMS
        for name, kernels in KERNELS.items()
    }
