"""The operators that run inside a call, in the order in which they begin."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from conformance.judging import kernels

TENSOR = torch.zeros(2, 3)


def test_a_called_operator_follows_its_caller_and_names_it() -> None:
    found = kernels.ran(TENSOR.clone)
    assert found[0] == ("clone", "")
    assert ("copy_", "clone") in found


def test_each_operator_is_listed_once_in_order_of_its_first_call() -> None:
    found = kernels.names(lambda: [TENSOR.abs().neg() for _ in range(9)])
    assert [name for name in found if name in ("abs", "neg")] == ["abs", "neg"]


def test_operators_are_those_inside_an_op_alone_in_another_thread_as_well() -> None:
    def call(op: Any) -> None:
        TENSOR.abs()
        thread = threading.Thread(target=lambda: op(TENSOR))
        thread.start()
        thread.join()
        op(TENSOR.exp())

    assert kernels.names_inside(torch.neg, call) == ["neg"]


def test_what_an_op_returns_or_raises_reaches_its_caller() -> None:
    results: list[torch.Tensor] = []
    kernels.names_inside(torch.neg, lambda op: results.append(op(TENSOR)))
    assert torch.equal(results[0], -TENSOR)
    with pytest.raises(RuntimeError, match="shape"):
        kernels.names_inside(torch.reshape, lambda op: op(TENSOR, (7,)))


def test_a_long_list_of_operators_is_cut_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MOST", 1)
    assert kernels.names(lambda: TENSOR.neg().abs()) == ["neg"]
