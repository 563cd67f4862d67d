"""Walks: long random programs over devices, streams, generators, memory and modes, and the checks in them.

Each step of a walk works alone, so a walk finds faults of steps that meet. A failing walk is reduced to the steps that
it needs. CPU has no counterpart. Its results are the expected ones: each property holds.
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

from conformance.scenarios.asking import accelerator
from conformance.scenarios.model import Broken, NotOffered, Results, first_line, scenario
from conformance.scenarios.new_processes import ProcessDied, results_of
from conformance.scenarios.running_script import FILE, running
from conformance.scenarios.walk_devices import DEVICES, STREAMS, begin
from conformance.scenarios.walk_generators import GENERATORS
from conformance.scenarios.walk_kinds import KINDS
from conformance.scenarios.walk_modes import ERRORS, MODES, OPS
from conformance.scenarios.walk_objects import HELPERS, OBJECTS, check_objects
from conformance.scenarios.walk_state import RECORD_STREAM, WAITS, NotPossible, State, Step, wait_lines
from conformance.scenarios.walk_tensors import MEMORY, TENSORS, values
from conformance.support.ddmin import ddmin

SEEDS = range(100)  # seeds of the walks of a program
STEPS = 60  # steps of a walk
PATIENCE = 10.0  # seconds to reduce a walk
LIMIT = 120.0  # seconds of a program, after which no other walk begins
ANEW = range(16)  # the seeds of walks that begin in new processes
FEW_STEPS = 16  # steps of each of these walks
#: The areas of these walks.
MIXES = ((GENERATORS,), (DEVICES, STREAMS, TENSORS), (DEVICES, MEMORY, MODES, ERRORS), (MODES, OPS))
_REDUCED = 3  # failing walks that are reduced
_TRIES = 8  # forms of a step, to find one that works

#: The beginning of each script.
PROLOGUE = '''\
import copy
import io
import pickle
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
        return type(e), str(e).partition("\\n")[0]
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
PROLOGUE += HELPERS
#: Settings of torch that a walk may change: the functions that set and return each.
SETTINGS: tuple[tuple[Callable[[Any], object], Callable[[], Any]], ...] = (
    (torch.set_default_dtype, torch.get_default_dtype),
    (torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled),
    (torch.set_float32_matmul_precision, torch.get_float32_matmul_precision),
)

_COMPILED_PROLOGUE = compile(PROLOGUE, __name__, "exec")


def _written(state: State, steps: Sequence[Step]) -> tuple[list[str], int]:
    """Return the lines of a walk, and the number of lines before the final checks.

    The lines are the steps that are possible, the ends of the blocks, and the final checks: of the state and of all
    values. ``state``: a new one.
    """
    begin(state)
    for step in steps:
        with suppress(NotPossible):
            KINDS[step.kind].write(state, step)
    with suppress(NotPossible):
        while True:
            state.close(by_error=False)
    before = len(state.blocks[0].lines)
    state.write(f"assert torch.accelerator.current_device_index() == {state.thread.device}")
    for index, stream in state.thread.streams.items():
        state.write(f"assert torch.accelerator.current_stream({index}) == {stream}")
    for tensor in list(state.tensors.values()):
        state.fetch(Step(0, values.__name__, 0), tensor)
        state.write(f"assert same({tensor.name}.cpu(), {tensor.twin})")
    with suppress(NotPossible):
        check_objects(state)
    lines = state.lines()
    return lines, len(lines) - (len(state.blocks[0].lines) - before)


class Walker:
    """The source of walks over the devices of a kind. It draws walks, runs them, and restores what they change.

    Raises NotOffered for a device other than the first of torch's accelerator, and for a device without current
    streams.
    """

    def __init__(self, device: str, areas: Sequence[str], *, anew: bool = False) -> None:
        accelerator(device)
        where = torch.device(device)
        if where.index:
            raise NotOffered("walks that begin on another device: they try all devices")
        self.kind, self.devices = where.type, min(2, torch.accelerator.device_count())
        self._anew = anew  # whether the walks run in new processes; single steps run in this one
        self._kinds = [kind.name for kind in KINDS.values() if kind.area in areas for _ in range(kind.weight)]
        self._settings = [(change, ask()) for change, ask in SETTINGS]
        self._alone: dict[str, Broken | None] = {}
        self._wrong: list[Broken] = []  # those that are failures, and not only missing features
        self._works: dict[str, Broken | None] = {}  # the failure of a kind of step, None if a step of the kind works
        self._lacks: list[str] = []
        try:
            self._streams = [torch.accelerator.current_stream(index) for index in range(self.devices)]
            empty = self.run(self.lines([]))
        except (RuntimeError, AttributeError) as e:
            raise NotOffered(f"a current stream: {first_line(e)}") from e
        if empty and empty.error:
            raise NotOffered(f"a current device and stream: {': '.join(empty.error)}")
        streams = f'other = torch.Stream("{self.kind}:0")', "stream = torch.accelerator.current_stream(0)"
        ways = {way: wait_lines(way, "stream", "other", f'"{self.kind}:0"') for way in WAITS}
        ways[RECORD_STREAM] = [f'torch.ones(2, device="{self.kind}:0").record_stream(other)']
        self._lacks += [way for way, lines in ways.items() if self.run([*streams, *lines])]

    def drawn(self, seed: int, count: int) -> list[Step]:
        """Return the steps of a walk, without those that do not work alone."""
        chance = random.Random(seed)
        steps = []
        for number in range(count):
            step = Step(number, self._kinds[int(chance.random() * len(self._kinds))], chance.getrandbits(32))
            found = self.alone(step)
            self._works[step.kind] = found and self._works.get(step.kind, found)
            steps += [step] if found is None else []
        return steps

    @property
    def broken_alone(self) -> Broken | None:
        """A step that fails alone, None if there is none."""
        return next(iter(self._wrong), None)

    @property
    def not_offered(self) -> Results:
        """The kinds of steps of which each step raised, with their errors."""
        return {
            kind: NotOffered(": ".join(found.error))
            for kind, found in self._works.items()
            if found and found.error and found not in self._wrong
        }

    def lines(self, steps: Sequence[Step]) -> list[str]:
        """Return the script of a walk."""
        return _written(self._new_state(anew=self._anew), steps)[0]

    def _new_state(self, *, anew: bool = False) -> State:
        return State(self.kind, self.devices, anew=anew, lacks=self._lacks)

    def run(self, lines: list[str]) -> Broken | None:
        """Run the script of a walk, and restore what it changed. Return its failure, None if it has none."""
        try:
            return _run(lines)
        finally:
            with running(lines):  # work that the script left in a stream may never end
                self._restore()

    def _restore(self) -> None:
        for stream in self._streams:
            torch.accelerator.set_stream(stream)
        torch.accelerator.set_device_index(0)
        for change, value in self._settings:
            change(value)
        for index in range(self.devices):
            torch.accelerator.synchronize(index)

    def alone(self, step: Step) -> Broken | None:
        """Return the failure of a step alone, after the steps that it needs; None if it has none.

        A script that was tried before is not run again.
        """
        needed = [Step(number, kind, self._luck(kind)) for number, kind in enumerate(KINDS[step.kind].needs)]
        steps = [*needed, Step(len(needed), step.kind, step.luck)]
        lines, end = _written(self._new_state(), steps)
        text = "\n".join(lines)
        if text not in self._alone:
            self._alone[text] = found = self.run(lines)
            if found and (found.error is None or found.at >= end):  # else the step raised: it is not offered
                self._wrong.append(found)
        return self._alone[text]

    def _luck(self, kind: str) -> int:
        """Return the first of a few lucks with which a kind of step works alone; 0 if there is none."""
        return next((luck for luck in range(_TRIES) if self.alone(Step(0, kind, luck)) is None), 0)

    def reduced(self, steps: Sequence[Step], found: Broken, run: Callable[[list[str]], Broken | None]) -> Broken:
        """Return the failure of as few steps of a walk as can be found in ``PATIENCE`` seconds. ``run`` runs a script.

        If fewer steps raise another error, or none, they show something else.
        """
        end = time.monotonic() + PATIENCE
        last: dict[tuple[int, ...], Broken] = {}

        def fails(indices: Sequence[int]) -> bool | None:
            if time.monotonic() > end:
                return None
            part = run(self.lines([steps[i] for i in indices]))
            if part is None or part.kind != found.kind:
                return False
            last[tuple(indices)] = part
            return True

        return last.get(ddmin(len(steps), fails).kept, found)


def _run(lines: list[str]) -> Broken | None:
    """Run the script of a walk, and restore nothing. Return its failure, None if it has none."""
    names: dict[str, Any] = {}
    try:
        with warnings.catch_warnings(), running(lines):
            warnings.simplefilter("ignore")  # about ops that are not deterministic
            exec(_COMPILED_PROLOGUE, names)
            exec(compile("\n".join(lines), FILE, "exec"), names)
    except Exception as e:  # noqa: BLE001  # whatever a backend raises
        return _broken(lines, e)
    finally:
        names.clear()
        gc.collect(0)
    return None


def _broken(lines: Sequence[str], e: Exception) -> Broken:
    """Return the failure of a script at the line that raised, without the final checks that did not run."""
    trace, at, own = e.__traceback__, 0, False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        own = file in (FILE, _COMPILED_PROLOGUE.co_filename)
        if file == FILE:
            at = trace.tb_lineno - 1
        trace = trace.tb_next
    end = len(lines)
    while end > at + 1 and lines[end - 1].startswith("assert "):
        end -= 1
    is_answer = own and isinstance(e, AssertionError)  # a backend may use assert for its arguments
    error = None if is_answer else (type(e).__name__, first_line(e))
    return Broken(tuple(lines[:end]), at, error)


def walked(device: str, areas: Sequence[str], seeds: Sequence[int] = SEEDS) -> Results:
    """Return whether several walks over steps of some areas hold on a device, and whether each of the steps does alone.

    The first failing walks are reduced, and the shortest of them is returned.
    """
    results: Results = dict.fromkeys(("alone", "together"), torch.tensor(True))
    if device == "cpu":
        return results
    walker, wrong, end = Walker(device, areas), list[Broken](), time.monotonic() + LIMIT
    for seed in seeds:
        if time.monotonic() > end:
            break
        steps = walker.drawn(seed, STEPS)
        broken = walker.run(walker.lines(steps)) if len(wrong) < _REDUCED else None
        if broken and broken.is_wrong:
            wrong.append(walker.reduced(steps, broken, walker.run))
    results |= {"alone": found} if (found := walker.broken_alone) else {}
    results |= {"together": min(wrong, key=lambda one: len(one.lines))} if wrong else {}
    return {**results, **walker.not_offered}


@scenario(exact=True, area="devices", accelerators=True)
def devices_and_streams(device: str) -> Results:
    """Walks over devices, streams, events and errors."""
    return walked(device, (DEVICES, STREAMS, OPS, ERRORS))


@scenario(exact=True, area="memory", accelerators=True)
def tensors_on_streams(device: str) -> Results:
    """Walks over tensors, copies and memory on several streams and devices."""
    return walked(device, (DEVICES, STREAMS, TENSORS, MEMORY, OPS, ERRORS))


@scenario(exact=True, area="devices", accelerators=True)
def generators_of_devices(device: str) -> Results:
    """Walks over generators, their states and copies, devices and threads."""
    return walked(device, (DEVICES, GENERATORS))


@scenario(exact=True, area="devices", accelerators=True)
def modes_and_ops(device: str) -> Results:
    """Walks over modes and settings of torch, ops, errors, devices and threads."""
    return walked(device, (DEVICES, GENERATORS, MODES, OPS, ERRORS))


@scenario(exact=True, area="memory", accelerators=True)
def tensors_as_objects(device: str) -> Results:
    """Walks over views, copies, writes, modes and gradients: a tensor tells of itself what its twin on CPU tells."""
    if torch.empty((2, 3), device=device).t().stride() != (1, 3):
        raise NotOffered("tensors with strides")
    return walked(device, (OBJECTS,))


@scenario(exact=True, slow=True, area="devices", accelerators=True)
def first_calls_of_a_process(device: str) -> Results:
    """Short walks that begin in new processes, in which nothing was called before."""
    results: Results = {"anew": torch.tensor(True)}
    if device == "cpu":
        return results
    walkers = [Walker(device, areas, anew=True) for areas in MIXES]

    def run(lines: list[str]) -> Broken | None:
        try:
            (found,) = results_of(device, _begun, [(lines,)])
        except ProcessDied as e:
            return Broken(tuple(lines), -1, (type(e).__name__, first_line(e)))
        return found["anew"] if isinstance(found["anew"], Broken) else None

    for seed in ANEW:
        walks = [walker.drawn(seed, FEW_STEPS) for walker in walkers]
        scripts = [walker.lines(steps) for walker, steps in zip(walkers, walks)]
        try:
            found = results_of(device, _begun, [(lines,) for lines in scripts])
            ended = [each["anew"] for each in found]
        except ProcessDied:
            ended = [run(lines) for lines in scripts]
            if not any(ended):  # it dies only by chance
                raise
        for walker, steps, broken in zip(walkers, walks, ended):
            if isinstance(broken, Broken) and broken.is_wrong:
                return {"anew": walker.reduced(steps, broken, run)}
    return results


def _begun(lines: list[str]) -> Results:
    """Run the script of a walk in this process."""
    return {"anew": _run(lines) or torch.tensor(True)}
