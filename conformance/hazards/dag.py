"""Random programs with known data flow on one or more streams, and the dependency that the shortest wrong one lacks.

A step waits only for what its data flow needs: the writers of the tensors that it reads, and the readers and writers
of the tensor that it overwrites. The expected values come from the same steps on CPU, one after the other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import torch

from conformance.hazards.bench import Bench, Difference, difference

TENSORS, STREAMS, STEPS = 4, 3, 24
PRIME = 97  # values stay below it, so that float32 is exact
TRIES = 4  # runs without a failure before a shortened program counts as right


class Kind(Enum):
    COMBINE = "combine"  # target = (first + second + amount) % PRIME, in place
    UPLOAD = "upload"  # copy from pageable memory that is overwritten at once
    RENEW = "renew"  # the target becomes a new tensor, and its old memory is free
    DOWNLOAD = "download"  # the host reads the target, while other work is queued


@dataclass(frozen=True, slots=True)
class Step:
    kind: Kind
    stream: int
    target: int
    sources: tuple[int, ...]
    amount: int

    def text(self) -> str:
        what = {
            Kind.COMBINE: f"t{self.target} = ({' + '.join(f't{s}' for s in self.sources)} + {self.amount}) % {PRIME}",
            Kind.UPLOAD: f"t{self.target}.copy_(host, non_blocking=True)",
            Kind.RENEW: f"t{self.target} = torch.full(..., {self.amount})",
            Kind.DOWNLOAD: f"t{self.target}.to('cpu')",
        }[self.kind]
        return f"`{what}` on stream {self.stream}"


Program = tuple[Step, ...]


def draw(seed: int) -> Program:
    """Return the program of a seed."""
    generator = random.Random(seed)
    kinds = [Kind.COMBINE] * 8 + [Kind.UPLOAD, Kind.RENEW] * 2 + [Kind.DOWNLOAD]

    streams = generator.choice((1, STREAMS, STREAMS))  # one stream needs no events, which may act as barriers
    steps: list[Step] = []
    for _ in range(STEPS):
        kind = generator.choice(kinds)
        sources = tuple(generator.randrange(TENSORS) for _ in range(2)) if kind is Kind.COMBINE else ()
        stream, target, amount = (generator.randrange(n) for n in (streams, TENSORS, PRIME))
        if kind is Kind.DOWNLOAD and steps:  # of the latest target, while its old value has yet to be read
            stream, target = steps[-1].stream, steps[-1].target
        steps.append(Step(kind, stream, target, sources, amount))
    return tuple(steps)


def dependencies(program: Program) -> list[set[int]]:
    """Return for each step the earlier steps on other streams that it must wait for."""
    writer: dict[int, int] = {}  # of each tensor
    readers: dict[int, list[int]] = {}
    needed: list[set[int]] = []
    for number, step in enumerate(program):
        read = (step.target,) if step.kind is Kind.DOWNLOAD else step.sources
        earlier = {writer[s] for s in read if s in writer}
        if step.kind in (Kind.COMBINE, Kind.UPLOAD):  # RENEW needs no wait: users of the old memory keep it alive
            earlier |= {*readers.get(step.target, ()), *((writer[step.target],) if step.target in writer else ())}
        needed.append({e for e in earlier if program[e].stream != step.stream})
        for source in read:
            readers.setdefault(source, []).append(number)
        if step.kind is not Kind.DOWNLOAD:
            writer[step.target], readers[step.target] = number, []
    return needed


def serial(program: Program, elements: int) -> list[torch.Tensor]:
    """Return the tensors after the program, then the values that it read, computed on CPU step by step."""
    tensors = [torch.full((elements,), float(t)) for t in range(TENSORS)]
    read: list[torch.Tensor] = []
    for step in program:
        read += _compute(step, tensors, torch.device("cpu"), elements)
    return tensors + read


def on_device(program: Program, bench: Bench, waiting: int | None = None) -> list[torch.Tensor]:
    """Run a program on a device, and return host tensors as :func:`serial` does.

    Before the step ``waiting`` the device is idle.
    """
    tensors = [bench.full(float(t)) for t in range(TENSORS)]
    read: list[torch.Tensor] = []
    users = [set[int]() for _ in range(TENSORS)]  # the streams that use each tensor
    streams = [bench.stream() for _ in range(STREAMS)]
    needed = dependencies(program)
    events = {number: bench.event() for number in set[int]().union(*needed)}  # a further event may act as a barrier
    for number, step in enumerate(program):
        if number == waiting:
            bench.wait()
        stream = streams[step.stream]
        with bench.on(stream):
            for earlier in sorted(needed[number]):
                stream.wait_event(events[earlier])
            if step.kind is Kind.RENEW:
                for user in users[step.target]:
                    tensors[step.target].record_stream(streams[user])
                users[step.target] = set()
            read += _compute(step, tensors, bench.device, bench.elements)
            if number in events:
                events[number].record(stream)
        for used in (step.target, *step.sources):
            users[used].add(step.stream)
    bench.wait()
    return [tensor.cpu() for tensor in tensors] + read


def _compute(step: Step, tensors: list[torch.Tensor], device: torch.device, elements: int) -> list[torch.Tensor]:
    """Carry out a step. Return the values that it read."""
    if step.kind is Kind.DOWNLOAD:
        return [tensors[step.target].to("cpu", copy=True)]
    if step.kind is Kind.RENEW:
        tensors[step.target] = torch.full((elements,), float(step.amount), device=device)
    elif step.kind is Kind.UPLOAD:
        host = torch.full((elements,), float(step.amount))
        tensors[step.target].copy_(host, non_blocking=True)
        host.fill_(-1)
    else:
        first, second = (tensors[s] for s in step.sources)
        tensors[step.target].copy_((first + second + step.amount).remainder_(PRIME))
    return []


def check(program: Program, bench: Bench, waiting: int | None = None) -> Difference | None:
    """Run a program once, and return the first difference from its data flow."""
    names = [f"t{t}" for t in range(TENSORS)]
    names += [f"what step {n} read" for n, step in enumerate(program) if step.kind is Kind.DOWNLOAD]
    each = zip(names, on_device(program, bench, waiting), serial(program, bench.elements), strict=True)
    return next((found for name, got, wanted in each if (found := difference(name, got, wanted))), None)


def shortened(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Return a program that still fails, and that passes if any one step is left out."""
    size = max(1, len(program) // 2)
    while True:
        start, before = 0, len(program)
        while start < len(program):
            shorter = program[:start] + program[start + size :]
            if shorter and fails(shorter):
                program = shorter
            else:
                start += size
        if size == 1 and len(program) == before:
            return program
        size = max(1, size // 2)


def lacking(program: Program, bench: Bench) -> str:
    """Return the missing dependency of a wrong program, after leaving out all steps that are not needed."""

    def fails(shorter: Program, waiting: int | None = None) -> bool:
        return any(check(shorter, bench, waiting) for _ in range(TRIES))

    shortest = shortened(program, fails)
    return describe(shortest, [n for n in range(len(shortest)) if not fails(shortest, n)])


def describe(program: Program, helped: Sequence[int]) -> str:
    """Return the missing dependency in words. ``helped``: the steps before which an idle device made it right."""
    steps = "\n".join(f"  {number}: {step.text()}" for number, step in enumerate(program))
    if len(program) == 1:
        return f"missing dependency: within step 0 ({program[0].text()}), between its calls or their arguments"
    if not helped:
        return f"some dependency among these steps is missing:\n{steps}"
    later = helped[0]
    earlier = max(dependencies(program)[later], default=max(later - 1, 0))
    return (
        f"missing dependency: step {later} ({program[later].text()}) did not wait for "
        f"step {earlier} ({program[earlier].text()}):\n{steps}"
    )
