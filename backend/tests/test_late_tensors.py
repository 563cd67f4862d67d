"""Late work as torch sees it: streams, events, pinned memory, errors, and the end of a process."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import torch
from gate import Gate
from refnpu import testing
from refnpu.conformance import adapter

Python = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def late() -> Iterator[None]:
    """Start each piece of work two milliseconds after its turn."""
    with testing.late("2000"):
        yield
        torch.npu.synchronize()


@pytest.mark.usefixtures("late")
def test_late_work_is_pending_until_an_event_is_synchronized() -> None:
    event, gate = torch.npu.Event(), Gate()
    with gate:
        x = torch.zeros(3, device="npu").add_(1)
        event.record()
        assert not torch.npu.current_stream().query()
        assert not event.query()
    event.synchronize()
    assert event.query()
    assert x.tolist() == [1, 1, 1]


@pytest.mark.usefixtures("late")
def test_a_non_blocking_copy_reads_pinned_memory_late() -> None:
    source = torch.ones(3, pin_memory=True)
    target = torch.zeros(3, device="npu")
    torch.npu.synchronize()
    gate = Gate()
    with gate:
        target.copy_(source, non_blocking=True)
        source.fill_(2)
    assert target.tolist() == [2, 2, 2]
    target.copy_(source)
    source.fill_(3)
    assert target.tolist() == [2, 2, 2]


@pytest.mark.usefixtures("late")
def test_a_cat_of_tensors_of_two_devices_raises_before_it_copies_any() -> None:
    for _ in range(20):
        host = [torch.ones(64), torch.ones(64, device="npu")]
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            torch.cat(host)
        del host
        assert torch.zeros(128).count_nonzero() == 0  # takes the result's memory: a late copy would show
        torch.npu.synchronize()
        assert torch.zeros(128).count_nonzero() == 0


@pytest.mark.parametrize("call", ["synchronize", "empty_cache", "verify_memory"])
def test_other_threads_run_while_one_waits_for_the_device(call: str) -> None:
    wait = adapter.verify_memory if call == "verify_memory" else getattr(torch.npu, call)
    x = torch.ones(3, device="npu")

    def steps() -> int:
        """Return this thread's steps during a wait of 200 milliseconds: few if the machine is busy."""
        with testing.late("200000"):
            x.add_(1)
            thread, found = threading.Thread(target=wait), 0
            thread.start()
            while thread.is_alive():
                time.sleep(0.002)
                found += 1
        return found

    assert any(steps() > 10 for _ in range(20))


@pytest.mark.usefixtures("late")
def test_a_late_error_names_kernel_and_op_and_is_raised_once() -> None:
    x = torch.ones(3, device="npu")
    with testing.fault("kernel_raises"):
        x.masked_fill_(x > 0, 5)
        with pytest.raises(
            RuntimeError, match=r"kernel 'masked_fill', submitted by 'masked_fill_.Scalar', on npu:0: planted"
        ):
            torch.npu.synchronize()
    torch.npu.synchronize()


@pytest.mark.usefixtures("late", "no_garbage")
def test_freed_memory_of_late_work_is_counted_as_free_at_once() -> None:
    torch.npu.synchronize()
    before = torch.npu.memory_allocated()
    x = torch.ones(1000, device="npu")
    del x
    assert torch.npu.memory_allocated() == before


def test_work_is_synchronous_by_default() -> None:
    x = torch.zeros(3, device="npu").add_(1)
    assert torch.npu.current_stream().query()
    assert x.tolist() == [1, 1, 1]


def test_a_device_has_32_streams_besides_the_default_stream() -> None:
    streams = [torch.npu.Stream() for _ in range(33)]
    assert len({stream.stream_id for stream in streams}) == 32
    assert torch.npu.default_stream().stream_id not in {stream.stream_id for stream in streams}


def test_a_process_started_with_late_work_returns_to_it(python: Python) -> None:
    script = """
import refnpu, torch
from refnpu.conformance import adapter
x = torch.zeros(3, device="npu")
print(adapter.environment(), torch.npu.current_stream().query())
adapter.delay_work(1000, seed=3)
adapter.delay_work(None)
x.add_(1)
print(torch.npu.current_stream().query(), x.tolist())
"""
    done = python(script, REFNPU_LATE="1", REFNPU_DELAY_US="1000000", REFNPU_ALLOCATOR="malloc")
    assert done.stdout.split("\n")[:2] == ["malloc_late False", "False [1.0, 1.0, 1.0]"], done.stderr


def test_the_adapter_can_delay_work_of_a_synchronous_process() -> None:
    x = torch.zeros(3, device="npu")
    adapter.delay_work(1_000_000)
    try:
        x.add_(1)
        assert not torch.npu.current_stream().query()
    finally:
        adapter.delay_work(None)
    assert x.add_(1).tolist() == [2, 2, 2]


def test_a_python_process_exits_with_work_queued(python: Python) -> None:
    done = python(
        "import refnpu, torch\nx = torch.zeros(3, device='npu')\nfor _ in range(300): x = x + 1\n",
        REFNPU_LATE="1",
        REFNPU_DELAY_US="1000000",
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_data_loader_workers_can_be_forked_while_work_is_queued(python: Python) -> None:
    done = python(
        """
import refnpu, torch
x = torch.zeros(3, device="npu")
for _ in range(20): x = x + 1
loader = torch.utils.data.DataLoader(torch.arange(4.0), num_workers=1)
print([float(batch) for batch in loader], x.tolist())
""",
        REFNPU_LATE="1",
        REFNPU_DELAY_US="2000",
    )
    assert done.stdout.strip() == "[0.0, 1.0, 2.0, 3.0] [20.0, 20.0, 20.0]", done.stderr


def test_autograd_orders_work_of_a_side_stream() -> None:
    with testing.late("random:4"):
        stream = torch.npu.Stream()
        with torch.npu.stream(stream):
            x = torch.ones(8, device="npu", requires_grad=True)
            y = (x * 3).sum()
        torch.npu.current_stream().wait_stream(stream)
        y.backward()
        torch.npu.synchronize()
        assert x.grad is not None
        assert x.grad.tolist() == [3] * 8
