"""``torch.npu`` and the parts that torch's generic code uses: devices, streams, random states, autocast."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable

import pytest
import refnpu
import torch
from builds import needs_faults


def test_devices_are_counted_and_selected() -> None:
    assert torch.npu.device_count() == 3
    assert torch.npu.is_available()
    with torch.npu.device("npu:1"):
        assert torch.npu.current_device() == 1
        assert torch.empty(1, device="npu").device == torch.device("npu:1")
    assert torch.npu.current_device() == 0
    torch.npu.set_device(1)
    torch.npu.set_device("npu:0")
    assert torch.npu.current_device() == 0


def test_a_device_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RuntimeError, match="npuSetDevice: device 7 of 3"):
        torch.npu.set_device(7)
    with pytest.raises(RuntimeError, match="device 7 of 3"):
        torch.empty(1, device="npu:7")
    with pytest.raises(ValueError, match="expected an npu device, got cpu"):
        torch.npu.set_device("cpu")
    for call in (torch.npu.synchronize, refnpu.mark_step):
        for index in (3, 128, 256):  # torch keeps an index in 8 bits, in which 256 is 0
            with pytest.raises(RuntimeError, match=f"npu:{index} does not exist: there are 3 devices"):
                call(index)


@pytest.mark.skipif(torch.__version__ < "2.8", reason="torch lets no error out of a stream's call before 2.8")
def test_a_stream_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RuntimeError, match="device 7 of 3"):
        torch.npu.current_stream(7)
    nowhere = torch.Stream(stream_id=1, device_index=0, device_type=torch.npu.current_stream().device_type)
    with pytest.raises(RuntimeError, match="is not a live stream"):
        torch.npu.set_stream(nowhere)


def test_a_device_has_name_memory_and_capability() -> None:
    properties = torch.npu.get_device_properties()
    assert (properties.name, torch.npu.get_device_name(1)) == ("Reference NPU", "Reference NPU")
    assert properties.total_memory == torch.npu.mem_get_info()[1]
    assert torch.npu.get_device_capability() == (1, 0)
    assert torch.npu.is_bf16_supported()


def test_npu_is_the_accelerator_of_torch() -> None:
    assert torch.accelerator.current_accelerator().type == "npu"
    assert torch.accelerator.device_count() == 3
    torch.accelerator.synchronize()


def test_each_thread_has_its_own_current_device() -> None:
    seen: list[int] = []
    with torch.npu.device(1):
        thread = threading.Thread(target=lambda: seen.append(torch.npu.current_device()))
        thread.start()
        thread.join()
    assert seen == [0]


def test_a_stream_is_current_inside_its_with_block() -> None:
    default = torch.npu.default_stream()
    assert torch.npu.current_stream() == default
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream != default
        x = torch.ones(3, device="npu")
    assert torch.npu.current_stream() == default
    default.wait_stream(stream)
    x.record_stream(default)
    stream.synchronize()
    assert stream.query()


def test_a_stream_makes_its_device_current() -> None:
    with torch.npu.stream(torch.npu.Stream("npu:1")):
        assert torch.npu.current_device() == 1
    assert torch.npu.current_device() == 0
    assert torch.npu.current_stream(1) == torch.npu.default_stream(1)


def test_events_measure_the_time_between_them() -> None:
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    start.record()
    torch.ones(10, device="npu")
    end.record()
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) >= 0


def test_a_seed_repeats_the_draws_of_the_device() -> None:
    torch.manual_seed(5)
    first = torch.rand(5, device="npu").cpu()
    torch.npu.manual_seed(5)
    assert torch.npu.initial_seed() == 5
    assert torch.equal(torch.rand(5, device="npu").cpu(), first)


def test_a_random_state_can_be_saved_and_restored() -> None:
    state, states = torch.npu.get_rng_state(), torch.npu.get_rng_state_all()
    first = torch.rand(5, device="npu").cpu()
    torch.npu.set_rng_state(state)
    assert torch.equal(torch.rand(5, device="npu").cpu(), first)
    torch.npu.set_rng_state_all(states)
    assert torch.equal(torch.rand(5, device="npu").cpu(), first)
    with pytest.raises(ValueError, match="expected 3 states"):
        torch.npu.set_rng_state_all(states[:1])


def test_each_device_has_its_own_generator() -> None:
    torch.npu.manual_seed_all(3)
    torch.rand(7, device="npu:0")
    second = torch.rand(5, device="npu:1").cpu()
    torch.npu.manual_seed_all(3)
    assert torch.equal(torch.rand(5, device="npu:1").cpu(), second)


@needs_faults
def test_the_fault_of_a_seed_for_all_devices_leaves_out_the_third(
    python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    script = """
import refnpu, torch
torch.npu.manual_seed_all(1)
torch.npu.manual_seed_all(2)
for index in range(3):
    with torch.npu.device(index):
        print(torch.npu.initial_seed() == 2)
"""
    done = python(script, REFNPU_DEVICES="3", REFNPU_FAULT="manual_seed_all_of_two_devices")
    assert done.stdout.split() == ["True", "True", "False"], done.stderr


def test_where_there_is_no_device_what_needs_one_raises(
    python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    script = """
import refnpu, torch
torch.manual_seed(1)
torch.npu.seed_all()
print(torch.npu.is_available(), torch.npu.device_count())
calls = [
    lambda: torch.ones(1, device="npu"), lambda: torch.zeros(2, device="npu:0"), lambda: torch.Stream("npu"),
    lambda: torch.ones(1).pin_memory(), torch.npu.mem_get_info, lambda: torch.npu.set_device(0),
]
for call in calls:
    try:
        print("no error", call())
    except RuntimeError as e:
        print("device" in str(e))
"""
    done = python(script, REFNPU_DEVICES="0")
    assert done.stdout.split() == ["False", "0", *["True"] * 6], done.stderr


def test_a_separate_generator_of_the_device_can_be_used() -> None:
    generator = torch.Generator(device="npu")
    generator.manual_seed(11)
    assert (generator.device, generator.initial_seed()) == (torch.device("npu:0"), 11)
    state = generator.get_state()
    first = torch.rand(5, generator=generator, device="npu").cpu()
    generator.set_state(state)
    assert torch.equal(torch.rand(5, generator=generator, device="npu").cpu(), first)


def test_fork_rng_restores_the_state_of_the_device() -> None:
    before = torch.npu.get_rng_state()
    with torch.random.fork_rng(devices=range(2), device_type="npu"):
        torch.rand(5, device="npu")
    assert torch.equal(torch.npu.get_rng_state(), before)


def test_autocast_keeps_norms_and_interpolation_in_float32() -> None:
    x = torch.ones(1, 2, 4, dtype=torch.bfloat16, device="npu")
    with torch.autocast("npu", dtype=torch.bfloat16):
        assert torch.nn.functional.rms_norm(x, (4,)).dtype == torch.float32
        assert torch.nn.functional.interpolate(x, size=8).dtype == torch.float32


def test_deterministic_algorithms_fill_fresh_memory() -> None:
    x = torch.ones(2, device="npu")
    torch.use_deterministic_algorithms(True)
    try:
        fresh = [torch.empty(3, device="npu"), torch.empty_strided((2, 2), (3, 1), device="npu"), x.resize_(4)[2:]]
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(t.cpu().isnan().all() for t in fresh)
    assert x[:2].tolist() == [1, 1]


def test_autocast_runs_products_in_bfloat16_and_softmax_in_float32() -> None:
    x = torch.randn(3, 3, device="npu")
    with torch.autocast("npu", dtype=torch.bfloat16):
        product = x @ x
        assert product.dtype == torch.bfloat16
        assert product.exp().dtype == torch.float32
        assert product.softmax(0).dtype == torch.float32
        assert torch.addcmul(x, product, product).dtype == torch.float32
    assert (x @ x).dtype == torch.float32
    assert torch.npu.get_amp_supported_dtype() == [torch.bfloat16, torch.float16]


def test_calls_are_counted_by_route() -> None:
    import refnpu

    refnpu.reset_counters()
    native, fallback = refnpu.route_totals()
    x = torch.empty(3, device="npu")
    assert refnpu.counters() == {"native": {"empty.memory_format": 1}, "fallback": {}}
    torch.lgamma(x)
    assert refnpu.counters()["fallback"] == {"lgamma.out": 1}
    assert refnpu.route_totals()[1] == fallback + 1
    assert refnpu.route_totals()[0] > native
