"""The times of a profile: times in another unit are found, and times that only vary pass."""

from __future__ import annotations

import pytest

from conformance.scenarios.profiling import have_one_unit

WORK = [2759.0, 3277.0, 8100.0]  # microseconds of one op on a busy machine


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_times_in_another_unit_are_found(unit: float) -> None:
    assert have_one_unit(WORK, WORK)
    assert not have_one_unit([one * unit for one in WORK], WORK)


@pytest.mark.parametrize("shortest", [1.5, 23875.0])
def test_times_between_events_that_vary_by_more_than_a_unit_tell_nothing(shortest: float) -> None:
    assert have_one_unit([shortest], [2.0, *WORK])
    assert have_one_unit([2.0, *WORK], [shortest])
