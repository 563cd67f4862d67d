"""``with`` blocks of no device or no stream: a block that makes a device or a stream current is found."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch

from conformance.scenarios import blocks
from conformance.scenarios.model import NotOffered, Program


@pytest.mark.forked
def test_blocks_that_take_nothing_for_the_first_device_or_the_default_stream_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("refnpu.testing")
    module: Any = torch.get_device_module("npu")
    device, stream, default = module.device, module.stream, module.default_stream

    def of_first(given: Any) -> AbstractContextManager[Any]:
        block: AbstractContextManager[Any] = device(given if isinstance(given, int) and given >= 0 else 0)
        return block

    def of_default(given: Any) -> AbstractContextManager[Any]:
        block: AbstractContextManager[Any] = stream(given or default())
        return block

    assert not wrong()
    monkeypatch.setattr(module, "device", of_first)
    assert wrong() == {"no_device", "device_below_zero", "first_of_the_host"}
    monkeypatch.setattr(module, "stream", of_default)
    assert wrong() == {"no_device", "device_below_zero", "first_of_the_host", "no_stream"}


def wrong(program: Program = blocks.of_nothing) -> set[str]:
    found = program("npu:0")
    return {name for name, holds in found.items() if not isinstance(holds, NotOffered) and not holds}


@pytest.mark.forked
def test_a_block_that_remembers_where_it_was_made_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("refnpu.testing")
    module: Any = torch.get_device_module("npu")

    class MadeHere(module.device):
        def __init__(self, given: Any) -> None:
            super().__init__(given)
            self._here = torch.accelerator.current_device_index()

        def __exit__(self, *_: object) -> None:
            torch.accelerator.set_device_index(self._here)

    assert not wrong(blocks.made_before_they_begin)
    monkeypatch.setattr(module, "device", MadeHere)
    assert wrong(blocks.made_before_they_begin) == {"device_used_once", "device_used_again"}
