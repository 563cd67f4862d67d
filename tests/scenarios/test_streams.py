"""Programs of streams: each fails on a device that is late and forgets what a stream still does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.scenarios import catalogue
from conformance.vocabulary import Status
from tests.scenarios.test_scenarios import observe, planned, said

FINDS = {
    "freed_at_once": "streams:memory_in_use",
    "recorded_streams_forgotten": "streams:memory_in_use",
    "pinned_freed_at_once": "streams:memory_in_use",
    "wait_event_ignored": "streams:events_in_order",
    "event_reached_early": "streams:events_in_order",
    "event_recorded_on_default_stream": "streams:events_in_order",
    "event_not_awaited": "streams:events_in_order",
    "stream_not_awaited": "streams:events_in_order",
    "device_waits_for_default_stream": "streams:copies_that_arrive",
    "work_overtakes": "streams:calls_without_a_wait",
    "event_query_says_done": "streams:events_in_order",
    "stream_query_says_done": "streams:events_in_order",
}
OF_STREAMS = [name for name in catalogue.names() if name.startswith("streams:")]


@pytest.fixture
def late() -> Iterator[Any]:
    testing = pytest.importorskip("refnpu.testing")
    with testing.late("random:1"):
        yield testing
    testing.set_fault(None)


@pytest.mark.parametrize("fault", FINDS)
def test_what_a_late_device_forgets_is_found(fault: str, late: Any) -> None:
    late.set_fault(fault)
    found = observe(planned("refnpu"), FINDS[fault])
    assert found.status.is_failure, said(found)


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("name", OF_STREAMS)
def test_a_late_device_that_forgets_nothing_is_right(name: str) -> None:
    found = observe(planned("refnpu"), name)
    assert found.status is Status.PASS, said(found)


@pytest.mark.parametrize("name", OF_STREAMS)
def test_a_device_without_streams_is_asked_for_nothing(name: str) -> None:
    assert observe(planned("torch:cpu"), name).status is Status.PASS
