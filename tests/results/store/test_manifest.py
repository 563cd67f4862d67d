"""The name of a run."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from conformance.results.store.manifest import began, run_name, series_of

NIGHT = datetime(2026, 1, 31, 4, 0, tzinfo=timezone.utc)


def test_a_run_is_named_by_date_lane_and_something_unique() -> None:
    assert run_name("demo-torch2.8-malloc-release", NIGHT, "3fa9c1") == (
        "20260131T040000Z-demo-torch2.8-malloc-release-3fa9c1"
    )
    assert run_name("demo-torch2.8-malloc-release", NIGHT) != run_name("demo-torch2.8-malloc-release", NIGHT)


def test_names_sort_by_the_date_whatever_the_time_zone() -> None:
    zone = timezone(timedelta(hours=9))
    assert run_name("a", NIGHT.astimezone(zone), "000000") == run_name("a", NIGHT, "000000")
    assert run_name("z", NIGHT) < run_name("a", NIGHT + timedelta(seconds=1))


def test_lane_and_date_are_read_back_from_a_name() -> None:
    name = run_name("demo-torch2.8-malloc-release", NIGHT)
    assert (series_of(name), began(name)) == ("demo-torch2.8-malloc-release", NIGHT)
    assert (series_of("demo"), began("demo")) == (None, None)
