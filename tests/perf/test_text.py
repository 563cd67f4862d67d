"""Measured runs as text."""

from __future__ import annotations

import pytest

from conformance.perf import text
from conformance.perf.model import End, Limits, Machine, Record, Work
from conformance.perf.session import counts
from tests.perf.times import ended, record


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 s"), (2.5, "2.5 s"), (9.9996e-4, "1 ms"), (1.234e-5, "12.3 us"), (5e-9, "5 ns"), (3e-12, "0.003 ns")],
)
def test_seconds_have_three_digits_and_a_unit(number: float, said: str) -> None:
    assert text.seconds(number) == said


@pytest.mark.parametrize(("number", "said"), [(None, "-"), (999.9, "1 kB"), (8.19e9, "8.19 GB"), (12, "12 B")])
def test_amounts_have_three_digits_and_a_prefix(number: float | None, said: str) -> None:
    assert text.amount(number, "B") == said


def test_the_end_of_a_run_adds_up_and_names_what_ended_badly() -> None:
    records: list[Record] = [record(), ended(End.CRASH, "abs", "SIGSEGV"), ended(End.UNSUITABLE, "erf")]
    *bad, total = text.ending(records, counts(records))
    assert bad == ["abs[float32-large]: crash: SIGSEGV"]
    assert total.startswith("cases: 3 = 1 measured + 0 unsupported + 1 unsuitable + 1 crash + ")


def test_a_measured_case_has_its_traffic_and_what_its_fallbacks_copy() -> None:
    work = Work(10, 4000, 4000, 2_000_000, copied=8000, native_calls=0, fallback_calls=2)
    line = text.measured(record(work=work))
    assert "device 1 ms [1 ms, 1 ms], returns after 500 us, CPU 1 ms, 1 times CPU" in line
    assert line.endswith("8 MB/s, 2 GFLOP/s, 2 fallback calls, a fallback copies 8 kB")


def test_a_limit_that_was_not_measured_is_a_dash() -> None:
    device, cpu = text.limits(Machine(Limits(), Limits(1e9, 2e9, 1e-6)))
    assert device == "limits of the device: -, -, copy of one element -"
    assert cpu == "limits of CPU: 1 GB/s, 2 GFLOP/s, copy of one element 1 us"
