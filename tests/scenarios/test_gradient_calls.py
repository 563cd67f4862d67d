"""Functions of a graph that are called elsewhere, or whose errors are lost."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import gradient_calls


def wrong(results: dict[str, Any]) -> set[str]:
    return {name for name, one in results.items() if not bool(one.all())}


@pytest.mark.forked
def test_a_function_of_a_graph_that_another_thread_calls_with_other_modes_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("refnpu")
    assert not wrong(gradient_calls.where_gradients_are_computed("npu:0"))
    monkeypatch.setattr(torch.accelerator, "current_device_index", lambda: 1)
    found = wrong(gradient_calls.where_gradients_are_computed("npu:0"))
    assert {name.partition(".")[0] for name in found} == {"device"}


@pytest.mark.forked
def test_an_error_that_loses_its_type_or_text_on_its_way_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not wrong(gradient_calls.errors_of_gradients("cpu"))
    backward = torch.Tensor.backward

    def as_one_type(*given: Any) -> None:
        try:
            backward(*given)
        except Exception as e:
            raise RuntimeError("an error in backward") from e

    monkeypatch.setattr(torch.Tensor, "backward", as_one_type)
    found = wrong(gradient_calls.errors_of_gradients("cpu"))
    assert found == {"of_a_class", "of_python", "not_implemented", "of_an_index"}
