"""The answers slow, not slow and not known, for invented times of two sides, most of them with seeded noise."""

from __future__ import annotations

import pytest

from conformance.bisect.slowness import Pace, judge, key_of, parse
from conformance.perf.model import Key, Round, Size
from tests.perf.times import rounds


@pytest.mark.parametrize(("factor", "pace"), [(2.0, Pace.SLOW), (1.0, Pace.NOT_SLOW), (0.5, Pace.NOT_SLOW)])
@pytest.mark.parametrize("seed", range(10))
def test_a_factor_far_from_the_bound_is_known_on_a_busy_machine(factor: float, pace: Pace, seed: int) -> None:
    good, here = rounds(1e-3, seed=seed), rounds(factor * 1e-3, seed=100 + seed)
    assert judge(good, here, 0.3, same_torch=True).pace is pace


@pytest.mark.parametrize("seed", range(20))
def test_equal_times_are_never_called_slow(seed: int) -> None:
    good, here = rounds(1e-3, seed=seed, noise=0.05), rounds(1e-3, seed=100 + seed, noise=0.05)
    for same_torch in (True, False):
        assert judge(good, here, 0.1, same_torch=same_torch).pace is not Pace.SLOW


@pytest.mark.parametrize("seed", range(20))
def test_twice_the_time_is_never_called_not_slow(seed: int) -> None:
    good, here = rounds(1e-3, seed=seed, noise=0.05), rounds(2e-3, seed=100 + seed, noise=0.05)
    assert judge(good, here, 0.1, same_torch=True).pace is not Pace.NOT_SLOW


def test_a_factor_at_the_bound_cannot_be_told() -> None:
    found = judge(rounds(1e-3), rounds(1.1e-3, seed=1), 0.1, same_torch=True)
    assert found.pace is Pace.CANNOT_TELL
    assert found.interval.low < 1.1 < found.interval.high


@pytest.mark.parametrize(("same_torch", "pace"), [(True, Pace.SLOW), (False, Pace.NOT_SLOW)])
def test_a_faster_cpu_makes_no_call_slow_between_versions_of_torch(same_torch: bool, pace: Pace) -> None:
    quiet = {"noise": 0.0, "busy": 1.0}
    good, here = rounds(1e-3, 1e-3, **quiet), rounds(1e-3, 2e-4, **quiet)  # type: ignore[arg-type]
    assert judge(good, here, 0.1, same_torch=same_torch).pace is pace


def test_a_busy_machine_is_no_reason_to_call_a_build_of_the_same_torch_slow() -> None:
    alike = {"host": (1e-4,) * 5, "calls": 10}
    good = [Round(**alike, device=(1e-3,) * 5, cpu=(1e-3,) * 5)] * 5  # type: ignore[arg-type]
    busy = [Round(**alike, device=(3e-3,) * 5, cpu=(3e-3,) * 5)] * 5  # type: ignore[arg-type]
    assert judge(good, busy, 0.1, same_torch=True).pace is Pace.NOT_SLOW
    assert judge(good, busy, 0.1, same_torch=False).pace is Pace.SLOW


def test_a_case_is_read_as_perf_diff_prints_it() -> None:
    key = Key("_softmax.out", "float32", Size.MEDIUM)
    assert key_of(str(key)) == key
    assert parse("ops/masking.py::neg[float32-contiguous]#a") is None
    with pytest.raises(ValueError, match="not a case of `conformance perf`"):
        key_of("mm")
