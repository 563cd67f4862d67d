"""Programs of streams: each fails on a late device that ignores the pending work of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.scenarios import catalogue
from conformance.vocabulary import Status
from tests.scenarios.observed import first_failing, observe, planned, said
from tests.scenarios.planted import FOUND_WHEN_LATE, FOUND_WHEN_RECORDED

OF_STREAMS = [name for name in catalogue.names() if name.startswith("streams:")]


@pytest.fixture
def late() -> Iterator[Any]:
    testing = pytest.importorskip("refnpu.testing")
    with testing.late("random:1"):
        yield testing
    testing.set_fault(None)


@pytest.fixture
def lazy() -> Iterator[Any]:
    testing = pytest.importorskip("refnpu.testing")
    with testing.lazy():
        yield testing
    testing.set_fault(None)


@pytest.mark.parametrize("fault", FOUND_WHEN_LATE)
def test_what_a_late_device_forgets_is_found(fault: str, late: Any) -> None:
    late.set_fault(fault)
    # A write to freed memory may make the process hang, which is a finding too.
    found = first_failing(planned("refnpu", "wide"), FOUND_WHEN_LATE[fault], timeout=60, late=True)
    assert found.status.is_failure, said(found)


@pytest.mark.parametrize("fault", FOUND_WHEN_RECORDED)
def test_what_a_device_that_records_work_forgets_is_found(fault: str, lazy: Any) -> None:
    lazy.set_fault(fault)
    found = observe(planned("refnpu"), FOUND_WHEN_RECORDED[fault])
    assert found.status.is_failure, said(found)


@pytest.mark.usefixtures("lazy")
@pytest.mark.parametrize("name", sorted({*OF_STREAMS, *FOUND_WHEN_RECORDED.values()}))
def test_a_device_that_records_work_and_forgets_nothing_is_right(name: str) -> None:
    found = observe(planned("refnpu"), name)
    assert found.status is Status.PASS, said(found)


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("name", sorted({*OF_STREAMS, *FOUND_WHEN_LATE.values()}))
def test_a_late_device_that_forgets_nothing_is_right(name: str) -> None:
    found = observe(planned("refnpu", "wide"), name, timeout=300)
    assert found.status is Status.PASS, said(found)


@pytest.mark.parametrize("name", OF_STREAMS)
def test_a_device_without_streams_is_asked_for_nothing(name: str) -> None:
    assert observe(planned("torch:cpu"), name).status is Status.PASS
