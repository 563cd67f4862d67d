"""Transfers of data to a device: copies that read wrong elements of pinned memory are found."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.scenarios import loading


def different() -> set[str]:
    """Return the names, without the dtype, of the float32 results that differ from the expected values."""
    found = loading.views_of_pinned_memory("cpu")
    numbers = (torch.arange(100 * 101) % 251).view(100, 101).float()
    wrong = set()
    for name, view in loading.VIEWS.items():
        kept = torch.zeros(100, 101)
        view(kept).copy_(view(numbers))
        for way, wanted in (("from", view(numbers)), ("to", kept)):
            one = found[f"{way}.{name}.{torch.float32}"]
            assert isinstance(one, torch.Tensor)
            if not torch.equal(one, wanted):
                wrong.add(f"{way}.{name}")
    return wrong


def test_views_are_copied_as_they_are() -> None:
    assert different() == set()


def test_an_upload_that_ignores_the_offset_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = torch.Tensor.to

    def upload(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        first = tensor.as_strided(tensor.shape, tensor.stride(), 0) if kwargs.get("non_blocking") else tensor
        return was(first, *args, **kwargs).clone()

    monkeypatch.setattr(torch.Tensor, "to", upload)
    assert different() == {
        "from.behind_an_offset", "from.of_one_row", "from.of_columns", "from.of_one_element",
    }  # fmt: skip


def test_copies_that_do_not_block_are_read_only_after_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, ``to`` and ``copy_`` return tensors that are not written yet, and ``item`` writes them."""
    to, copy, item = torch.Tensor.to, torch.Tensor.copy_, torch.Tensor.item
    late: list[tuple[torch.Tensor, torch.Tensor]] = []

    def submitted(target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        late.append((target, source.clone()))
        return target

    def upload(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if args == ("cpu",) and kwargs == {"non_blocking": True} and tensor.numel() < 10_000:
            return submitted(torch.zeros(tensor.shape), tensor)
        return to(tensor, *args, **kwargs)

    def download(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        return submitted(target, source) if non_blocking else copy(target, source)

    def wait(tensor: torch.Tensor) -> Any:
        while late:
            copy(*late.pop())
        return item(tensor)

    right = loading.copies_that_do_not_block("cpu")
    for name, change in (("to", upload), ("copy_", download), ("item", wait)):
        monkeypatch.setattr(torch.Tensor, name, change)
    found = loading.copies_that_do_not_block("cpu")
    assert not late
    for name, one in right.items():
        assert isinstance(one, torch.Tensor)
        other = found[name]
        assert isinstance(other, torch.Tensor)
        assert torch.equal(one, other), name


def test_a_download_that_fills_the_gaps_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = torch.Tensor.copy_

    def download(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        if non_blocking and target.dim() == 2 and target.stride(1) == 2:
            whole = target.as_strided((100, 101), (101, 1))
            was(whole, torch.full((100, 101), 9))
        return was(target, source)

    right = loading.views_of_pinned_memory("cpu")["to.of_every_second.torch.float32"]
    monkeypatch.setattr(torch.Tensor, "copy_", download)
    found = loading.views_of_pinned_memory("cpu")["to.of_every_second.torch.float32"]
    assert isinstance(right, torch.Tensor)
    assert isinstance(found, torch.Tensor)
    assert not torch.equal(found, right)


@pytest.mark.forked
@pytest.mark.parametrize(("answer", "found"), [
    (True, {"not_clone", "not_sum", "not_on_device", "not_from_device", "not_sent"}),
    (False, {"view", "last", "detached", "array", "of_a_view", "like_device", "new", "parameter"}),
])  # fmt: skip
def test_a_device_that_calls_all_memory_pinned_or_none_is_found(
    answer: bool, found: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("refnpu")
    assert all(loading.what_is_pinned("npu:0").values())
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda _: answer)
    assert {name for name, holds in loading.what_is_pinned("npu:0").items() if not holds} == found


@pytest.mark.forked
def test_a_device_that_makes_pinned_tensors_of_its_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("refnpu")
    for name in ("empty", "empty_strided"):
        monkeypatch.setattr(torch, name, lambda *_, **__: torch.ones(2))
    found = loading.what_is_pinned("npu:0")
    wrong = {name for name, holds in found.items() if not holds}
    assert {"made_on_device_is_refused", "made_strided_on_device_is_refused"} <= wrong
