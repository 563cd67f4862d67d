"""The operators that run inside a call, in the order in which they begin."""

from __future__ import annotations

import pytest
import torch

from conformance.judging import kernels

TENSOR = torch.zeros(2, 3)


def test_what_a_kernel_calls_follows_it_and_names_it_as_its_caller() -> None:
    found = kernels.ran(TENSOR.clone)
    assert found[0] == ("clone", "")
    assert ("copy_", "clone") in found


def test_each_operator_is_named_once_at_its_first_place() -> None:
    found = kernels.names(lambda: [TENSOR.abs().neg() for _ in range(9)])
    assert [name for name in found if name in ("abs", "neg")] == ["abs", "neg"]


def test_of_a_long_call_the_first_operators_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MOST", 1)
    assert kernels.names(lambda: TENSOR.neg().abs()) == ["neg"]
