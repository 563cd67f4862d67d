"""Tensors that share memory: copies that are skipped, and clones that see each other's writes, are found."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import shared_memory
from conformance.scenarios.model import NotOffered, Program
from tests.scenarios.altered import different


@pytest.mark.parametrize(
    "program",
    [shared_memory.copied_within_a_storage, shared_memory.cloned_when_written, shared_memory.made_of_equal_values],
)
def test_a_program_gives_the_same_results_again_whatever_is_drawn(program: Program) -> None:
    assert different(program, lambda: None) == set()


def test_copies_to_where_the_source_lies_that_are_skipped_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = torch.Tensor.copy_

    def skipped(self: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return self if self.data_ptr() == source.data_ptr() else copy(self, source)

    found = different(
        shared_memory.copied_within_a_storage, lambda: monkeypatch.setattr(torch.Tensor, "copy_", skipped)
    )
    assert {"integers_of_floats", "conjugate", "columns"} <= found
    assert not {"itself", "the_first_half", "in_turns"} & found


@pytest.mark.parametrize("name", sorted(shared_memory.VIEWS))
def test_each_copy_writes_what_a_copy_from_elsewhere_writes(name: str) -> None:
    x = torch.arange(32.0) * 3 - 7
    target, source = shared_memory.VIEWS[name](x)
    target.copy_(source.clone())
    assert torch.equal(shared_memory.copied_within_a_storage("cpu")[name], x.view(torch.int32))


def test_clones_that_share_their_memory_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = different(
        shared_memory.cloned_when_written,
        lambda: monkeypatch.setattr(torch.Tensor, "_lazy_clone", lambda self: self.view_as(self)),
    )
    assert {f"{clone}.element" for clone in shared_memory.CLONES} - {"clone_that_is_left.element"} <= found


def test_clones_without_their_last_bytes_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_words(self: torch.Tensor) -> torch.Tensor:
        clone = self.clone()
        clone.view(-1).view(torch.uint8)[clone.nbytes // 4 * 4 :] = 0
        return clone

    found = different(
        shared_memory.cloned_when_written, lambda: monkeypatch.setattr(torch.Tensor, "_lazy_clone", of_words)
    )
    assert found == {f"{size}_bytes" for size in shared_memory.SIZES if size > 1}


def test_a_device_without_lazy_clones_offers_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: Any) -> Any:
        raise RuntimeError("the allocator has no lazy clones")

    monkeypatch.setattr(torch.Tensor, "_lazy_clone", refuses)
    assert all(isinstance(result, NotOffered) for result in shared_memory.cloned_when_written("cpu").values())


def test_numbers_that_are_kept_by_their_value_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[tuple[float, torch.dtype], torch.Tensor] = {}
    make = torch.tensor

    def known(data: Any, **how: Any) -> torch.Tensor:
        made = make(data, **how)
        return kept.setdefault((made.item(), made.dtype), made) if made.dim() == 0 else made

    wrong = different(shared_memory.made_of_equal_values, lambda: monkeypatch.setattr(torch, "tensor", known))
    assert wrong == {"number", "number_sent", "number_copied", "integer", "bool", "half"}
