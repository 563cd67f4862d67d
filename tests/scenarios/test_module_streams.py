"""Streams and events of a device module: a class that ignores its arguments is found."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import pytest
import torch

from conformance.scenarios import module_streams
from conformance.scenarios.model import NotOffered

pytestmark = pytest.mark.forked


@pytest.fixture
def npu() -> Any:
    pytest.importorskip("refnpu.testing")
    return torch.get_device_module("npu")


def wrong() -> set[str]:
    found = module_streams.streams_and_events_of_the_module("npu:0")
    return {name for name, holds in found.items() if not isinstance(holds, NotOffered) and not holds}


class Event(torch.Event):
    """An event of a class that torch's streams and events do not accept."""

    recorded = 0.0  # seconds

    def __new__(cls, enable_timing: bool = False) -> Event:
        event: Event = super().__new__(cls, "npu", enable_timing=enable_timing)
        return event

    def record(self, *stream: Any) -> None:
        self.recorded = time.perf_counter()
        super().record(*stream)

    def elapsed_time(self, other: Event) -> float:
        return 1000 * (other.recorded - self.recorded)


class Stream(torch.Stream):
    """A stream that takes events of this class."""

    def wait_event(self, event: torch.Event) -> None:
        event.wait(self)

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        event = event or torch.Event("npu")
        event.record(self)
        return event


class OfTheCurrentStream(Event):
    def record(self, *_: object) -> None:
        super().record()


class InSeconds(Event):
    def elapsed_time(self, other: Event) -> float:
        return super().elapsed_time(other) / 1000


class UnreachedAtFirst(Event):
    def query(self) -> bool:
        return self.recorded > 0 and super().query()


def no_block(_: object) -> AbstractContextManager[None]:
    return nullcontext()


def of_default_stream(npu: Any, **_: object) -> torch.Stream:
    stream: torch.Stream = npu.default_stream()
    return stream


@pytest.mark.parametrize(("name", "change", "found"), [
    ("Stream", Stream, set()),
    ("Event", InSeconds, {"timed"}),
    ("Event", UnreachedAtFirst, {"not_recorded"}),
    ("stream", no_block, {"block"}),
    ("Stream", of_default_stream, {"block", "preferred"}),
])  # fmt: skip
def test_a_class_that_does_something_else_than_torchs_is_found(
    name: str, change: Callable[..., Any], found: set[str], npu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npu, "Stream", Stream)
    monkeypatch.setattr(npu, name, partial(change, npu) if change is of_default_stream else change)
    assert wrong() == found


def test_an_event_that_forgets_its_stream_is_found_where_work_is_late(
    npu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refnpu import testing

    monkeypatch.setattr(npu, "Stream", Stream)
    with testing.late("random:1"):
        assert not wrong()
        monkeypatch.setattr(npu, "Event", OfTheCurrentStream)
        found = wrong()
    assert found
    assert {name.partition(".")[0] for name in found} <= {"record", "record_event"}
