"""Storages as bytes, and tensors as views over them."""

from __future__ import annotations

import pytest
import torch

from conformance.judging.views import POISON_BOOL, host_copy, poison, torch_dtype


def test_poison_of_bools_is_legal_and_irregular() -> None:
    made = poison(40, "bool").tolist()
    assert set(made) == {0, 1}
    assert made[: len(POISON_BOOL)] == list(POISON_BOOL)


def test_the_host_copy_of_a_cpu_tensor_is_the_tensor_itself() -> None:
    view = torch.arange(12.0).view(3, 4)[1:, 1::2]
    assert host_copy(view) is view, "on the CPU there is nothing to copy"


def test_a_dtype_that_this_torch_lacks_is_a_clear_error() -> None:
    with pytest.raises(LookupError, match="has no dtype 'float3'"):
        torch_dtype("float3")
