"""Attention with the kernels that a program allows: a wrong kernel is found, and a missing kernel is no failure."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import attention_kernels
from conformance.scenarios.model import NotOffered, Results

pytestmark = pytest.mark.forked  # they run `backward`

# CPU under another name. Its calls get the set of kernels that a program allows.
OTHER = "cpu:0"
REAL = torch.nn.functional.scaled_dot_product_attention


def results(device: str = OTHER) -> Results:
    return attention_kernels.kernels_that_are_allowed(device)


def different(found: Results) -> set[str]:
    right = results("cpu")
    return {
        name for name, one in found.items()
        if isinstance(one, torch.Tensor) and not torch.allclose(one, torch.as_tensor(right[name]), atol=1e-5)
    }  # fmt: skip


def test_each_kernel_of_cpu_gives_what_matrix_products_give() -> None:
    found = results()
    assert different(found) == set()
    assert {name for name, one in found.items() if isinstance(one, NotOffered)} <= {
        f"{form}.{kernel}" for form in attention_kernels.FORMS for kernel in ("flash", "efficient")
    }


def test_a_kernel_that_ignores_a_mask_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def unmasked(*given: torch.Tensor, attn_mask: torch.Tensor | None = None, **how: Any) -> torch.Tensor:
        return REAL(*given, **how)

    monkeypatch.setattr(attention_kernels, "scaled_dot_product_attention", unmasked)
    found = results()
    monkeypatch.undo()
    assert {"mask.math", "bias.math", "mask.flash_or_math", "bias.flash_or_math"} <= different(found)


def test_matrix_products_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any, **__: Any) -> torch.Tensor:
        raise RuntimeError("No available kernel.")

    monkeypatch.setattr(attention_kernels, "scaled_dot_product_attention", none)
    with pytest.raises(RuntimeError, match="No available kernel"):
        results()
