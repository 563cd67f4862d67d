"""Walks: long random programs over devices, streams, generators, memory and modes, and what has to hold in them.

Each step of a walk is known to work alone, so what a walk finds is about steps that meet. It is reduced to the steps
that are needed. CPU has none of it. Its results are what is promised: that each property holds.
"""

from __future__ import annotations

import gc
import random
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch

from conformance.scenarios.devices import accelerator
from conformance.scenarios.model import Broken, NotOffered, Results, first_line, scenario
from conformance.scenarios.walk_state import NotPossible, State, Step
from conformance.scenarios.walk_steps import KINDS, begin, values
from conformance.support.ddmin import ddmin

SEEDS = range(60)  # of the walks of a program
STEPS = 60  # of a walk
PATIENCE = 10.0  # seconds to reduce a walk
_REDUCED = 3  # walks
_TRIES = 8  # forms of a step, to find one that works

#: What each script begins with.
PROLOGUE = '''\
import io
import re
import threading
from contextlib import suppress

import torch

CPU, default = "cpu", {}


class Left(Exception):
    """Leaves a block."""


def counted(shape, first, device):
    numel = torch.Size(shape).numel()
    return torch.arange(first, first + numel, dtype=torch.float32, device=device).remainder_(7).view(shape)


def same(a, b):
    return a.dtype == b.dtype and torch.equal(a, b)


def keep_busy(device):
    x = torch.ones(4096, device=device)
    for _ in range(20):
        x.mul_(2).div_(2)


def reloaded(tensor, where=None):
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    return torch.load(file, map_location=where)


def gradient_of_square(tensor):
    x = tensor.detach().clone().requires_grad_()
    (x * x).sum().backward()
    return x.grad


def error_of(call):
    try:
        call()
    except Exception as e:
        return type(e), re.sub(r"\\d+", "", str(e).partition("\\n")[0])
    raise AssertionError("an error")


def in_a_thread(work):
    errors = []

    def run():
        try:
            work()
        except BaseException as e:
            errors.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


'''
#: What a walk may change of torch: how it is changed, and how it is asked.
SETTINGS: tuple[tuple[Callable[[Any], object], Callable[[], Any]], ...] = (
    (torch.set_num_threads, torch.get_num_threads),
    (torch.set_default_dtype, torch.get_default_dtype),
    (torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled),
    (torch.set_float32_matmul_precision, torch.get_float32_matmul_precision),
)

_BEFORE = PROLOGUE.count("\n")


def _written(kind: str, devices: int, steps: Sequence[Step]) -> list[str]:
    """Return the lines of a walk: its steps where they are possible, the ends of its blocks, and all values."""
    state = State(kind, devices)
    begin(state)
    for step in steps:
        with suppress(NotPossible):
            KINDS[step.kind].write(state, step)
    with suppress(NotPossible):
        while True:
            state.close(by_error=False)
    state.write(f"assert torch.accelerator.current_device_index() == {state.thread.device}")
    for index, stream in state.thread.streams.items():
        state.write(f"assert torch.accelerator.current_stream({index}) == {stream}")
    for tensor in list(state.tensors.values()):
        state.fetch(Step(0, values.__name__, 0), tensor)
        state.write(f"assert same({tensor.name}.cpu(), {tensor.twin})")
    return state.lines()


class Walker:
    """Runs walks on the devices of a kind. What a walk changes is restored. Raises NotOffered if there are too few."""

    def __init__(self, device: str) -> None:
        accelerator(device)
        where = torch.device(device)
        if where.index:
            raise NotOffered("walks that begin on another device: they try all devices")
        self.kind, self.devices = where.type, min(2, torch.accelerator.device_count())
        self._streams = [torch.accelerator.current_stream(index) for index in range(self.devices)]
        self._settings = [(change, ask()) for change, ask in SETTINGS]
        self._alone: dict[str, Broken | None] = {}

    def found(self, steps: Sequence[Step]) -> Broken | None:
        """Return what is wrong in a walk, None if nothing is."""
        lines = _written(self.kind, self.devices, steps)
        names: dict[str, Any] = {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of ops that are not deterministic
                exec(compile(PROLOGUE + "\n".join(lines), __name__, "exec"), names)
        except Exception as e:  # noqa: BLE001  # whatever a backend raises
            return _broken(lines, e)
        finally:
            self._restore()
            names.clear()
            gc.collect(0)
        return None

    def _restore(self) -> None:
        for stream in self._streams:
            torch.accelerator.set_stream(stream)
        torch.accelerator.set_device_index(0)
        for change, value in self._settings:
            change(value)
        for index in range(self.devices):
            torch.accelerator.synchronize(index)

    def alone(self, step: Step) -> Broken | None:
        """Return what is wrong in a step alone, behind what it needs; not tried again if its text was tried before."""
        needed = [Step(number, kind, self._luck(kind)) for number, kind in enumerate(KINDS[step.kind].needs)]
        steps = [*needed, Step(len(needed), step.kind, step.luck)]
        text = "\n".join(_written(self.kind, self.devices, steps))
        if text not in self._alone:
            self._alone[text] = self.found(steps)
        return self._alone[text]

    def _luck(self, kind: str) -> int:
        """Return a luck with which a kind of step works alone, of a few; the first if none does."""
        return next((luck for luck in range(_TRIES) if self.alone(Step(0, kind, luck)) is None), 0)

    def reduced(self, steps: Sequence[Step], found: Broken) -> Broken:
        """Return what is wrong in the fewest steps of a walk, as far as there is time."""
        end = time.monotonic() + PATIENCE
        last: dict[tuple[int, ...], Broken] = {}

        def fails(indices: Sequence[int]) -> bool | None:
            if time.monotonic() > end:
                return None
            part = self.found([steps[i] for i in indices])
            if part is not None:
                last[tuple(indices)] = part
            return part is not None

        return last.get(ddmin(len(steps), fails).kept, found)


def _broken(lines: Sequence[str], e: Exception) -> Broken:
    trace, at = e.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == __name__ and trace.tb_lineno > _BEFORE:
            at = trace.tb_lineno - _BEFORE - 1
        trace = trace.tb_next
    end = len(lines)
    while end > at + 1 and lines[end - 1].startswith("assert "):  # what was to be asked at the end
        end -= 1
    error = None if isinstance(e, AssertionError) else (type(e).__name__, first_line(e))
    return Broken(tuple(lines[:end]), at, error)


def walked(device: str, areas: Sequence[str], seeds: Sequence[int] = SEEDS) -> Results:
    """Return whether several walks over steps of some areas hold on a device, and each of their steps alone.

    Of the walks that do not, the first ones are reduced, and the shortest is returned.
    """
    results: Results = dict.fromkeys(("alone", "together"), torch.tensor(True))
    if device == "cpu":
        return results
    walker, wrong = Walker(device), list[Broken]()
    kinds = [kind.name for kind in KINDS.values() if kind.area in areas for _ in range(kind.weight)]
    raised: dict[str, NotOffered] = {}
    offered: set[str] = set()
    for seed in seeds:
        chance = random.Random(seed)
        drawn = [
            Step(number, kinds[int(chance.random() * len(kinds))], chance.getrandbits(32)) for number in range(STEPS)
        ]
        steps = []
        for step in drawn:
            found = walker.alone(step)
            if found is None:
                steps.append(step)
                offered.add(step.kind)
            elif found.error is None:
                results["alone"] = found
            else:
                raised[step.kind] = NotOffered(": ".join(found.error))
        if len(wrong) < _REDUCED and (broken := walker.found(steps)) is not None:
            wrong.append(walker.reduced(steps, broken))
    if wrong:
        results["together"] = min(wrong, key=lambda one: len(one.lines))
    return {**results, **{kind: why for kind, why in raised.items() if kind not in offered}}


@scenario(exact=True, area="devices", accelerators=True)
def devices_and_streams(device: str) -> Results:
    """Walks over devices, streams, events and errors."""
    return walked(device, ("devices", "streams", "ops", "errors"))


@scenario(exact=True, area="memory", accelerators=True)
def tensors_on_streams(device: str) -> Results:
    """Walks over tensors, copies and memory on several streams and devices."""
    return walked(device, ("devices", "streams", "tensors", "memory", "ops", "errors"))


@scenario(exact=True, area="devices", accelerators=True)
def generators_and_modes(device: str) -> Results:
    """Walks over generators, their states, modes, devices and threads."""
    return walked(device, ("devices", "generators", "modes", "ops", "errors"))
