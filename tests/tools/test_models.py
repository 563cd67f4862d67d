"""The calls that torch's kernels for all devices make, as the tool for recorded models sees them."""

from __future__ import annotations

import torch

from conformance.torch_versions import versions
from tools.models.below import Finder


def below(call: str) -> dict[str, tuple[str, ...]]:
    """Return the overloads below each overload that an expression calls, with tensors ``x`` and ``w`` on meta."""
    x, w = torch.empty(1, 3, 8, 8, device="meta"), torch.empty(4, 3, 3, 3, device="meta")
    finder = Finder()
    with finder:
        eval(call, {"x": x, "w": w, "torch": torch})
    return dict(finder.found)


def test_a_structured_operator_ends_in_its_out_form() -> None:
    assert "add.out" in below("x + x")["add.Tensor"]


def test_a_convolution_ends_in_the_overload_that_backends_register() -> None:
    found = below("torch.conv2d(x, w)")
    assert "_convolution" in found["convolution"]
    assert "convolution_overrideable" in found["_convolution"]


def test_kernels_below_kernels_are_found() -> None:
    found = below("torch.ops.aten._safe_softmax(x, -1)")
    assert "softmax.int" in found["_safe_softmax"]
    assert "_softmax" in found["softmax.int"]
    assert "_softmax.out" in found["_softmax"]


def test_the_program_s_own_call_is_made_as_without_it() -> None:
    x = torch.empty(2, device="meta")
    with Finder():
        made = x.add_(1)
    assert made is x
    assert versions([x]) == [1]
