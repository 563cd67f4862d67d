"""Walks: scripts without races, their findings on a wrong device, and no findings on a right device."""

from __future__ import annotations

import copy
import math
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance.scenarios import walk_devices, walk_objects, walk_tensors, walks
from conformance.scenarios.model import BROKEN_PRIMITIVES, Broken, NotOffered, Program, Results
from conformance.scenarios.walk_state import HOST, RECORD_STREAM, NotPossible, Order, State, Step
from conformance.vocabulary import Status
from tests.hangs import Hangs
from tests.scenarios.observed import first_failing, observe, planned, said

AREAS = ("devices", "streams", "tensors", "memory", "errors", "generators", "modes", "ops")
OBJECTS = ("objects",)
OTHER_SEEDS = range(1000, 1150)


@pytest.fixture
def testing() -> Iterator[Any]:
    testing = pytest.importorskip("refnpu.testing")
    yield testing
    testing.set_fault(None)


def new_state() -> State:
    state = State("npu", 2)
    walk_devices.begin(state)
    return state


def step(number: int = 0, luck: int = 0) -> Step:
    return Step(number, "", luck)


@pytest.fixture(autouse=True)
def _time_to_reduce(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a busy machine the time to reduce walks as far as an idle machine does."""
    monkeypatch.setattr(walks, "PATIENCE", 60.0)


def broken(results: Results) -> dict[str, Broken]:
    return {name: found for name, found in results.items() if isinstance(found, Broken)}


@pytest.mark.forked
@pytest.mark.parametrize("mode", ["as it is", "late", "recorded"])
def test_150_walks_of_other_seeds_find_nothing_on_a_right_device(mode: str, testing: Any) -> None:
    contexts = {"as it is": nullcontext, "late": lambda: testing.late("random:1"), "recorded": testing.lazy}
    with contexts[mode]():
        assert not broken(walks.walked("npu:0", AREAS, OTHER_SEEDS))


@pytest.mark.forked
def test_20_walks_of_other_seeds_find_no_object_that_tells_something_else_on_a_right_device(testing: Any) -> None:
    with testing.late("random:1"):
        assert not broken(walks.walked("npu:0", OBJECTS, OTHER_SEEDS[:20]))


# Faults that take several steps to show, the program that finds them, and the call in its marked line.
@pytest.mark.forked
@pytest.mark.parametrize(("fault", "program", "asked"), [
    ("stream_block_ends_on_default", walks.devices_and_streams, "current_stream"),
    ("default_stream_of_other_device_is_current", walks.devices_and_streams, "assert d"),
    ("stream_block_keeps_other_device", walks.devices_and_streams, "current_stream"),
    ("set_state_forgets_position", walks.generators_of_devices, "same("),
    ("set_tensor_drops_offset", walks.tensors_as_objects, "x.set_(y"),
])  # fmt: skip
def test_a_wrong_device_is_found_and_the_walk_is_reduced(
    fault: str, program: Program, asked: str, testing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walks, "LIMIT", math.inf)
    testing.set_fault(fault)
    found = broken(program("npu:0"))
    assert found
    shortest = min(found.values(), key=lambda one: len(one.lines))
    assert asked in shortest.lines[shortest.at]
    assert len(shortest.lines) <= 15


def test_a_late_device_that_does_not_wait_is_found_also_if_it_spoils_memory(testing: Any) -> None:
    testing.set_fault("wait_event_ignored")
    with testing.late("random:1"):
        found = first_failing(planned("refnpu"), "walks:tensors_on_streams", timeout=300)
    assert found.status.is_failure, said(found)


@pytest.mark.forked
def test_a_step_that_does_not_hold_alone_is_found(testing: Any) -> None:
    testing.set_fault("peak_reset_to_zero")
    found = broken(walks.walked("npu:0", ("memory", "tensors")))
    assert any("reset_peak_memory_stats" in line for line in found["alone"].lines)


@pytest.mark.forked
def test_a_step_that_the_device_does_not_offer_is_left_out(testing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.npu, "set_stream")
    monkeypatch.delattr(torch.npu, "default_stream")
    results = walks.walked("npu:0", ("devices", "streams"), range(20))
    assert not broken(results)
    assert isinstance(results["default_stream"], NotOffered)
    assert "set_stream" not in results  # its other form works


@pytest.mark.forked
def test_ways_to_copy_a_generator_and_to_free_memory_that_the_device_lacks_are_left_out(
    testing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(*_: object) -> None:
        raise SystemError("no such attribute")

    def not_implemented(*_: object) -> None:
        raise NotImplementedError("record_stream")

    monkeypatch.setattr(copy, "deepcopy", lacking)
    monkeypatch.setattr(pickle, "dumps", lacking)
    monkeypatch.setattr(torch.Tensor, "record_stream", not_implemented)
    assert not broken(walks.walked("npu:0", ("devices", "generators"), range(20)))
    assert not broken(walks.walked("npu:0", ("devices", "streams", "tensors"), range(20)))


@pytest.mark.forked
def test_a_walk_may_meet_what_is_not_implemented(testing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    record = torch.Tensor.record_stream

    def of_few_elements(tensor: Any, stream: Any) -> None:
        if tensor.numel() > 2:
            raise NotImplementedError("record_stream of so many")
        record(tensor, stream)

    monkeypatch.setattr(torch.Tensor, "record_stream", of_few_elements)
    assert not broken(walks.walked("npu:0", ("devices", "streams", "tensors"), range(20)))


@pytest.mark.forked
def test_a_reduced_walk_raises_what_the_whole_one_raised(testing: Any) -> None:
    walker = walks.Walker("npu:0", ("devices",))
    steps = walker.drawn(1, 8)
    whole = Broken(("assert False",), 0, None)

    def run(lines: list[str]) -> Broken:
        few = len(lines) < len(walker.lines(steps))
        return Broken(tuple(lines), 0, ("SystemError", "something else") if few else None)

    assert walker.reduced(steps, whole, run).kind == ""


def dying(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.parametrize("status", [Status.CRASH, Status.TIMEOUT])
def test_a_walk_in_which_the_process_ends_is_known_up_to_that_line(
    status: Status, testing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = Hangs(tmp_path, monkeypatch).hang
    monkeypatch.setattr(torch.npu, "set_device", dying if status is Status.CRASH else hanging)
    found = observe(planned("refnpu"), "walks:devices_and_streams")
    (failure,) = found.failures
    assert found.status is status
    assert failure.death
    assert "torch.npu.set_device(" in failure.death.lines[-1]
    assert failure.death.lines[-1] in said(found)


def test_a_walk_that_leaves_work_without_an_end_is_known(
    testing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walks.Walker, "_restore", Hangs(tmp_path, monkeypatch).hang)  # _restore waits for all devices
    (failure,) = observe(planned("refnpu"), "walks:devices_and_streams").failures
    assert failure.death
    assert "torch.accelerator.set_device_index(0)" in failure.death.lines


@pytest.mark.forked
def test_a_new_process_that_dies_in_a_walk_is_a_failure_with_few_lines(
    testing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walks, "_begun", dying_in_a_stream_block)
    (found,) = broken(walks.first_calls_of_a_process("npu:0")).values()
    assert found.kind == "ProcessDied"
    assert len(found.lines) <= 8


def dying_in_a_stream_block(lines: list[str]) -> Results:
    """Die if the walk has a ``with`` block of a stream. A new process calls this function."""
    if any("torch.npu.stream(" in line for line in lines):
        dying()
    return {"anew": torch.tensor(True)}


@pytest.mark.forked
def test_an_assertion_of_the_backend_is_an_error_and_no_answer(testing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    set_device = torch.npu.set_device

    def of_index(device: object) -> None:
        assert isinstance(device, int)
        set_device(device)

    monkeypatch.setattr(torch.npu, "set_device", of_index)
    assert not broken(walks.walked("npu:0", ("devices",), range(20)))


@pytest.mark.forked
def test_a_program_begins_no_walk_after_its_time(testing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "LIMIT", 0.0)
    testing.set_fault("stream_block_ends_on_default")
    assert not broken(walks.devices_and_streams("npu:0"))


@pytest.mark.forked
def test_what_a_walk_changes_is_restored(testing: Any) -> None:
    before = torch.accelerator.current_stream(1)
    walks.walked("npu:0", ("devices", "streams"), range(20))
    assert torch.accelerator.current_device_index() == 0
    assert torch.accelerator.current_stream(1) == before


MAKE = 'both("o0", "", lambda D: counted((3, 3), 1, D), "npu:0")'


@pytest.mark.forked
@pytest.mark.parametrize(("name", "wrong", "lines"), [
    ("requires_grad_", lambda x, _=True: x, ['both("", "o0", lambda x: x.requires_grad_())']),
    ("detach_", lambda x: x.detach(), ['both("o1", "o0", lambda x: x.clone().requires_grad_() * 1)',
                                       'both("", "o1", lambda x: x.detach_())']),
    ("t_", lambda x: x.copy_(x.clone().t()), ['both("", "o0", lambda x: x.t_())']),
    ("clone", lambda x: x, ['both("o1", "o0", lambda x: x.clone())']),
    ("view", lambda x, *sizes: x.reshape(*sizes).clone(), ['both("o1", "o0", lambda x: x.view(-1))',
                                                           'both("", "o1", lambda x: x.fill_(7), writes=True)']),
    ("add_", lambda x, number: x.detach().sub_(number), ['both("", "o0", lambda x: x.add_(2), writes=True)']),
    ("backward", lambda *_: None, ['both("", "o0", lambda x: x.requires_grad_())',
                                   'both("", "o0", lambda x: (x * x).sum().backward())']),
    ("resize_", lambda x, _: x, ['both("", "o0", lambda x: x.zero_().resize_(12).fill_(1), writes=True, grows=True)']),
    ("diagonal", lambda x, *_: x, ['both("", "o0", lambda x: x.diagonal(0, 5, 6))']),
    ("to", lambda x, *_, **__: x, ['both("o1", "o0", lambda x, D: x.to(D, copy=True), "npu:1")']),
])  # fmt: skip
def test_what_a_call_gives_on_the_device_alone_is_found(
    name: str, wrong: Any, lines: list[str], testing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    walker, script = walks.Walker("npu:0", OBJECTS), [MAKE, *lines, "[check(name) for name in objects]"]
    assert walker.run(script) is None
    right = getattr(torch.Tensor, name)

    def on_the_device(x: torch.Tensor, *given: Any, **named: Any) -> Any:
        return (wrong if x.device.type == "npu" else right)(x, *given, **named)

    monkeypatch.setattr(torch.Tensor, name, on_the_device)
    found = walker.run(script)
    assert found is not None
    assert found.error is None, found.error


def test_a_choice_stays_the_same_if_others_come_and_go() -> None:
    lucky = step(luck=7)
    chosen = lucky.pick("tensor", ["t1", "t2", "t3"])
    assert lucky.pick("tensor", ["t0", chosen]) in (chosen, "t0")
    assert lucky.pick("tensor", [chosen]) == chosen
    with pytest.raises(NotPossible):
        lucky.pick("tensor", [])


def test_calls_of_walks_that_need_a_broken_primitive_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn() -> str:
        state = new_state()
        walk_objects.make_object(state, step())
        walk_objects.make_object(state, step(1))
        for luck in range(200):
            walk_objects.view_object(state, step(2, luck))
            walk_objects.exchange_objects(state, step(2, luck))
            with suppress(NotPossible):
                walk_objects.grow_object(state, step(2, luck))
        return "\n".join(state.lines())

    lazy, growing = ("x.conj()", "x.mH"), ("x.numel() + 3", "resize_as_(y)")
    assert all(call in drawn() for call in (*lazy, *growing))
    monkeypatch.setitem(BROKEN_PRIMITIVES, "npu", frozenset({"conjugate", "grow_storage"}))
    assert not any(call in drawn() for call in (*lazy, *growing))
    assert "x.imag" in drawn()


def test_each_option_is_chosen_by_some_luck() -> None:
    assert {step(luck=luck).pick("device", range(5)) for luck in range(200)} == set(range(5))


def test_work_is_before_what_waits_for_it_also_by_way_of_a_third_stream() -> None:
    order = Order()
    point = order.submit("a")
    assert order.is_before(point, "a")
    assert not order.is_before(point, "b")
    order.wait("c", order.of("a"))
    order.wait("b", order.of("c"))
    assert order.is_before(point, "b")
    assert not order.is_before(order.submit("a"), "b")


def test_work_that_the_host_waited_for_is_before_everything() -> None:
    order = Order()
    point = order.submit("a")
    order.wait(HOST, order.of("a"))
    assert order.is_before(point, "b")


def test_a_stream_waits_before_it_reads_what_another_one_writes_and_not_twice() -> None:
    state = new_state()
    state.write("new = torch.Stream('npu:0')")
    state.streams["new"] = 0
    tensor = state.made(step(1), 0, (3,))
    state.make_current("new")
    before = len(state.blocks[0].lines)
    state.read(step(2), tensor)
    waited = len(state.blocks[0].lines)
    assert waited > before
    state.read(step(3), tensor)
    assert len(state.blocks[0].lines) == waited


def test_memory_that_another_stream_uses_is_not_freed_before() -> None:
    for luck in range(20):
        state = new_state()
        state.streams["new"] = 0
        tensor = state.made(step(1), 0, (3,))
        state.make_current("new")
        state.read(step(2, luck), tensor)
        before = len(state.blocks[0].lines)
        state.forget(step(3, luck), tensor)
        *said, last = state.blocks[0].lines[before:]
        assert last == "del t1"
        assert said  # a record_stream or a wait comes first


@pytest.mark.parametrize("lacks", [(), (RECORD_STREAM,)])
def test_memory_grows_on_another_stream_only_where_that_can_be_recorded(lacks: tuple[str, ...]) -> None:
    state = State("npu", 2, lacks=lacks)
    walk_devices.begin(state)
    state.streams["new"] = 0
    tensor = state.made(step(1), 0, (3,))
    walk_tensors.resize_storage(state, step(2))
    state.make_current("new")
    before = list(state.blocks[0].lines)
    if lacks:
        with pytest.raises(NotPossible):
            walk_tensors.resize_storage(state, step(3))
        assert (state.blocks[0].lines, tensor.storage.nbytes) == (before, 24)
    else:
        walk_tensors.resize_storage(state, step(3))
        assert "t1.record_stream(new)" in state.blocks[0].lines


def test_a_view_keeps_the_memory() -> None:
    state = new_state()
    tensor = state.made(step(1), 1, (3,))
    state.view(step(2), tensor, (3,))
    state.forget(step(3), tensor)
    assert state.held(1) == 12


def test_the_end_of_a_block_restores_what_the_block_changed() -> None:
    state = new_state()
    state.streams["new"] = 1
    state.open_stream("with torch.npu.stream(new):", "new")
    assert (state.thread.device, state.current(1)) == (1, "new")
    state.close(by_error=False)
    assert (state.thread.device, state.current(1)) == (0, "s_1")
    with pytest.raises(NotPossible):
        state.close(by_error=False)


def test_a_thread_has_a_device_of_its_own_and_shares_its_names() -> None:
    state = new_state()
    state.open_thread(1)
    state.write("t1 = torch.ones(3)")
    assert state.thread.device == 1
    state.close(by_error=False)
    assert state.thread.device == 0
    assert state.lines()[-4:] == ["def work() -> None:", "    global t1", "    t1 = torch.ones(3)", "in_a_thread(work)"]


def test_a_block_that_an_error_leaves_raises_it() -> None:
    state = new_state()
    state.open("with torch.no_grad():", "grad")
    state.close(by_error=True)
    assert state.lines()[-2:] == ["with suppress(Left), torch.no_grad():", "    raise Left"]


def test_the_script_of_a_walk_runs_without_the_suite(tmp_path: Path) -> None:
    pytest.importorskip("refnpu")
    from conformance import backends
    from conformance.explain import program_script
    from conformance.scenarios import catalogue

    text = program_script.script(catalogue.find("walks:devices_and_streams"), backends.find("refnpu"), "the case")
    file = tmp_path / "script.py"
    file.write_text(text)
    for fault, code in (("", 0), ("stream_block_ends_on_default", 1)):
        ended = subprocess.run(
            [sys.executable, "-I", str(file)],
            env=os.environ | {"REFNPU_FAULT": fault},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == code, ended.stdout + ended.stderr


@pytest.mark.forked
@pytest.mark.parametrize("name", ["current_stream", "set_stream", "set_device_index"])
def test_a_device_without_streams_offers_no_walks(name: str, testing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object) -> object:
        raise RuntimeError("the device doesn't support streams")

    monkeypatch.setattr(torch.accelerator, name, lacking)
    with pytest.raises(NotOffered, match="doesn't support streams"):
        walks.walked("npu:0", ("devices", "streams"))
