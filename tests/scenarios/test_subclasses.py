"""Subclasses and modes: ops that bypass them, and results that lose their class, are found."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import subclasses
from conformance.scenarios.model import Program
from tests.scenarios.altered import different

pytestmark = pytest.mark.forked  # they run `backward`


@pytest.mark.parametrize("program", [subclasses.kept_as_another, subclasses.with_a_label, subclasses.under_a_mode])
def test_a_program_gives_the_same_results_again_whatever_is_drawn(program: Program) -> None:
    assert different(program, lambda: None) == set()


def test_an_op_that_takes_the_memory_of_what_it_is_given_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    mm = torch.mm

    def of_memory(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return mm(*(t.half if isinstance(t, subclasses.Halved) else t for t in (a, b)))

    found = different(subclasses.kept_as_another, lambda: monkeypatch.setattr(torch, "mm", of_memory))
    assert {"computed", "sent_to_the_device"} <= found


def test_a_mode_that_an_op_passes_by_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    mm = torch.mm

    def alone(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        with torch._C._DisableTorchDispatch():  # noqa: SLF001
            return mm(a, b)

    found = different(subclasses.under_a_mode, lambda: monkeypatch.setattr(torch, "mm", alone))
    assert "products" in found


def test_a_result_that_loses_its_class_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    clamp = torch.Tensor.half

    def plain(self: torch.Tensor, *given: Any) -> torch.Tensor:
        return clamp(self.as_subclass(torch.Tensor), *given)

    monkeypatch.setattr(torch.Tensor, "half", plain)
    with pytest.raises(AssertionError, match="the result is Tensor"):
        subclasses.with_a_label("cpu")


def test_a_gradient_of_another_class_is_an_error() -> None:
    class Plain(torch.Tensor):
        pass

    x = torch.ones(2, 2).as_subclass(Plain)
    with pytest.raises(AssertionError, match="the gradient of a Plain is Tensor"):
        subclasses.gradient_of(x)
