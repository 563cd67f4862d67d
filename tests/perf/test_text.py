"""Measured runs as text."""

from __future__ import annotations

from conformance.perf import text
from conformance.perf.model import End, Limits, Machine, Record, Work
from conformance.perf.session import counts
from tests.perf.times import ended, record


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
