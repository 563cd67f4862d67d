"""The programs of huge tensors, with sizes small enough for a test."""

from __future__ import annotations

import pytest
import torch

from conformance import backends
from conformance.huge import programs, runner
from conformance.huge.bench import Bench, Difference
from conformance.huge.runner import Needed, Result

ELEMENTS, BYTES, CHUNK = 2**15, 2**16, 2**12
BENCH = Bench(torch.device("cpu"), ELEMENTS, BYTES, CHUNK)


def run(name: str, backend: str = "torch:cpu") -> Result:
    return runner.run(name, backends.find(backend), 60, ELEMENTS, BYTES, CHUNK)


@pytest.mark.parametrize("name", runner.names())
def test_a_program_holds_on_cpu_and_on_the_device(name: str) -> None:
    assert run(name) == Result(name)
    pytest.importorskip("refnpu", reason="the reference NPU is not installed")
    assert run(name, "refnpu") == Result(name)


def test_tensors_are_past_both_limits_and_odd() -> None:
    bench = Bench(torch.device("cpu"))
    lengths = {dtype: bench.length(dtype) for dtype in (torch.int8, torch.float16, torch.int64)}
    assert lengths[torch.int8] > 2**31
    assert all(n % 2 and n * dtype.itemsize > 2**32 for dtype, n in lengths.items() if dtype != torch.int8)
    assert bench.rows(513, torch.int8) * 513 > 2**31


@pytest.mark.parametrize("lost", [2**13, 2**14, 2**15])
def test_an_element_that_an_index_without_its_upper_bits_meets_has_another_value(lost: int) -> None:
    values = BENCH.values(0, BENCH.length(torch.int8), torch.int8)
    assert int((values[:-lost] == values[lost:]).sum()) < len(values) // 4


def test_the_values_of_a_part_are_those_of_the_whole() -> None:
    whole = BENCH.values(0, 40_000, torch.int8)
    for first, count in ((0, 10), (8190, 3), (8191, 20_000), (39_999, 1)):
        assert torch.equal(BENCH.values(first, count, torch.int8), whole[first : first + count])


@pytest.mark.parametrize("at", [0, CHUNK, ELEMENTS + 5])
def test_the_first_wrong_element_is_reported(at: int) -> None:
    tensor = BENCH.tensor(BENCH.length(torch.int8), dtype=torch.int8)
    right = int(tensor[at])
    tensor[at:] = 100
    found = BENCH.compare("it", tensor, lambda first, count: BENCH.values(first, count, torch.int8))
    assert found == Difference("it", (at,), str(right), "100")
    assert Result("p", found).text() == f"p: FAILED: it at {at}, the first that is wrong: 100, expected {right}"


def test_rounding_is_no_difference_and_a_wrong_half_is() -> None:
    exact = torch.full((3, 2), 0.5, dtype=torch.float16)
    assert BENCH.compare("it", exact * 1.001, lambda *_: exact) is None
    wrong = exact.clone()
    wrong[2, 1] = 0.6
    found = BENCH.compare("it", wrong, lambda first, count: exact[first : first + count])
    assert found is not None
    assert found.index == (2, 1)


def test_a_result_of_another_dtype_is_an_error() -> None:
    with pytest.raises(AssertionError, match=r"expected torch.Size\(\[2\]\), torch.int64"):
        BENCH.compare("it", torch.zeros(2), lambda *_: torch.zeros(2, dtype=torch.int64))


def test_a_program_that_finds_a_difference_or_raises_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(bench: Bench) -> programs.Found:
        yield None
        yield Difference("the sum", (0,), "1", "2")

    def raises(bench: Bench) -> programs.Found:
        yield from ()
        raise RuntimeError(f"no kernel for {bench.device}")

    def takes_much(bench: Bench) -> programs.Found:
        yield from ()
        raise torch.OutOfMemoryError(f"{bench.device} is full")

    for name, body in (("wrong", wrong), ("raises", raises), ("takes_much", takes_much)):
        monkeypatch.setitem(programs.PROGRAMS, name, programs.Program(name, torch.int8, 1, body))
    assert run("wrong") == Result("wrong", Difference("the sum", (0,), "1", "2"))
    assert run("raises") == Result("raises", error="the device raised RuntimeError: no kernel for cpu")
    full = run("takes_much")
    assert (full.failed, full.ran) == (False, False)
    assert full.text().endswith("out of memory, the op takes more than its tensors: OutOfMemoryError: cpu is full")


def test_a_program_whose_tensors_do_not_fit_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_free_of_host", lambda: 3 << 30)
    found = runner.run("clone", backends.find("torch:cpu"), 600)
    assert found.lacking == Needed(found.lacking.bytes if found.lacking else 0, 3 << 30, "the host")
    assert not found.ran
    assert found.text() == "clone: NOT RUN: it needs 6.5 GiB of the host's memory, and 3.0 GiB are free"


def test_an_unknown_program_lists_near_names() -> None:
    with pytest.raises(LookupError, match=r"unknown program 'clon'; near: clone"):
        run("clon")
