"""The state of a walk while it writes its script: devices, streams and their order, tensors, generators and modes.

The state gives the answer that the device must give at each place. A script has no race: if work of one stream needs
work of another stream, the script waits for that.
"""

from __future__ import annotations

import ast
import hashlib
import math
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

T = TypeVar("T")
HOST = "the host"
#: Ways to wait for a stream. In the lines, A is the stream that waits, B is the other one, and D is the device of B.
WAITS = {
    "wait_stream": ("A.wait_stream(B)",),
    "event": ("e = torch.Event(D)", "e.record(B)", "A.wait_event(e)"),
    "event_synchronize": ("e = torch.Event(D)", "e.record(B)", "e.synchronize()"),
    "synchronize": ("B.synchronize()",),
    "device": ("torch.accelerator.synchronize(D)",),
}
_OF_STREAMS = ("wait_stream", "event")  # the ways in which the host does not wait
RECORD_STREAM = "record_stream"
_INDENT = "    "
_DEPTH = 8  # blocks within each other; Python allows 20


def wait_lines(way: str, waiting: str, other: str, device: str) -> list[str]:
    """Return the lines in which a stream, or the host, waits for another stream of a device in one of the ``WAITS``."""
    names = {"A": waiting, "B": other, "D": device}
    return [re.sub(r"\b[ABD]\b", lambda name: names[name[0]], line) for line in WAITS[way]]


class NotPossible(Exception):
    """The error of a step that has nothing to act on at this place. The step is left out."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a walk. ``luck`` decides its choices, ``number`` names its results."""

    number: int
    kind: str
    luck: int

    def pick(self, what: str, options: Iterable[T]) -> T:
        """Return the option with the largest hash. Raises NotPossible if there is none.

        If other options are added or removed, the choice mostly stays the same.
        """
        listed = list(options)
        if not listed:
            raise NotPossible(what)
        return max(listed, key=lambda option: hashlib.blake2b(f"{self.luck} {what} {option}".encode()).digest())


@dataclass(slots=True)
class Block:
    """A header that ends with a colon, and the lines under it. The block of a thread is a function."""

    header: str
    restored: dict[str, object] = field(default_factory=dict)  # attributes of the thread that its end restores, by name
    stream: str = ""  # the stream that it makes current
    stream_before: str = ""  # the stream that was current before on the same device
    forked: dict[str, Source] | None = None  # states of generators that its end restores
    is_thread: bool = False
    by_error: bool = False  # whether an exception leaves it
    lines: list[str | Block] = field(default_factory=list)

    def text(self, depth: int = 0) -> Iterator[str]:
        """Yield the lines of the block, indented by ``depth`` levels."""
        body = [*self.lines, "raise Left"] if self.by_error else self.lines
        if self.header:
            header = self.header.replace("with ", "with suppress(Left), ", 1) if self.by_error else self.header
            yield _INDENT * depth + header
            depth += 1
        within: list[str] = []
        for line in body or ["pass"]:
            within += line.text(depth) if isinstance(line, Block) else [_INDENT * depth + line]
        if self.is_thread and (names := _assigned(within)):
            yield _INDENT * depth + f"global {', '.join(names)}"
        yield from within
        if self.is_thread:
            yield _INDENT * (depth - 1) + "in_a_thread(work)"


def _assigned(lines: Sequence[str]) -> list[str]:
    """Return the names that lines of a script assign or delete."""
    nodes = ast.walk(ast.parse(textwrap.dedent("\n".join(lines))))
    return sorted({n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)})


#: Work that was submitted to a stream: the stream, and the number of the work there, from 1.
Point = tuple[str, int]
#: Work that is done for all streams.
DONE: Point = HOST, 0
#: For each stream, how much of its work is done before something else.
Clock = dict[str, int]


class Order:
    """The order of work: a vector clock of each stream, and one of the host."""

    def __init__(self) -> None:
        self._clocks: dict[str, Clock] = {HOST: {}}

    def submit(self, stream: str) -> Point:
        """Return the point of new work of a stream. The work comes after all that the host has waited for."""
        clock = self.of(stream)
        self.wait(stream, self.of(HOST))
        clock[stream] = clock.get(stream, 0) + 1
        return stream, clock[stream]

    def of(self, waiting: str) -> Clock:
        """Return the clock of a stream, or of the host: the work that is done before its next work."""
        return self._clocks.setdefault(waiting, {})

    def wait(self, waiting: str, clock: Clock) -> None:
        """Let a stream, or the host, wait for the work that a clock contains."""
        mine = self.of(waiting)
        for stream, count in clock.items():
            mine[stream] = max(mine.get(stream, 0), count)

    def is_before(self, point: Point, stream: str) -> bool:
        """Return whether work is done before the next work of a stream."""
        name, count = point
        return point == DONE or name == stream or max(self.of(w).get(name, 0) for w in (stream, HOST)) >= count


@dataclass(slots=True)
class Storage:
    """Memory of a device, and the last work that wrote or read it."""

    device: int
    nbytes: int
    made_on: str  # the stream that it was made on
    written: Point
    reads: list[Point] = field(default_factory=list)

    @property
    def uses(self) -> list[Point]:
        """All work that must be done before the memory is written or freed."""
        return [self.written, *self.reads]


@dataclass(slots=True)
class Tensor:
    """A tensor of the script. The name of its twin on CPU has ``c`` in place of ``t``."""

    name: str
    storage: Storage
    shape: tuple[int, ...]

    @property
    def twin(self) -> str:
        """The name of the twin on CPU."""
        return "c" + self.name[1:]


#: A draw: the call, and how many numbers it draws.
Draw = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Source:
    """The state of a generator. ``own``: whether it is not the default generator of its device."""

    device: int
    seed: int
    own: bool = False
    drawn: tuple[Draw, ...] = ()  # the draws since it was seeded

    def behind(self, draw: Draw) -> Source:
        """Return the state after a draw."""
        return replace(self, drawn=(*self.drawn, draw))

    def differs_from(self, other: Source) -> bool:
        """Return whether two states of generators of one device and kind certainly give different draws.

        They do if their seeds differ, or if one state comes after the other. After different draws from one state they
        may give the same draws, since a generator may advance in steps.
        """
        shorter, longer = sorted((self.drawn, other.drawn), key=len)
        comparable = (self.device, self.own) == (other.device, other.own)
        return comparable and self != other and (self.seed != other.seed or longer[: len(shorter)] == shorter)


@dataclass(slots=True)
class Thread:
    """The state of one thread: its current device and streams, and its modes."""

    device: int
    streams: dict[int, str]
    grad: bool = True
    autocast: str = ""  # the dtype, "" if it is off
    default_device: int | None = None


class State:
    """The results of all steps so far, and the script.

    ``kind``: the type of the devices. ``anew``: whether the script runs in a new process. ``lacks``: the ways to wait
    that the device does not offer, and ``record_stream`` if it does not offer that.
    """

    def __init__(self, kind: str, devices: int, *, anew: bool = False, lacks: Collection[str] = ()) -> None:
        self.kind, self.devices, self.anew = kind, range(devices), anew
        self.lacks = lacks
        self.order = Order()
        self.streams: dict[str, int] = {}  # the device of each stream
        self.events: dict[str, tuple[int, Clock]] = {}
        self.tensors: dict[str, Tensor] = {}
        self.objects: list[str] = []  # names of tensors that must report what their twins report
        self.default_generators: dict[str, Source] = {}
        self.generators: dict[str, Source] = {}
        self.saved: dict[str, Source] = {}
        self.saved_of_all: dict[str, dict[str, Source]] = {}
        self.settings: dict[str, str] = {}
        self.errors: dict[str, str] = {}  # the name of the error of each call
        self.drawn: dict[tuple[Source, Draw], str] = {}  # the name of each draw from a state
        self.peaks = dict.fromkeys(self.devices, 0)
        self.threads = [Thread(0, {})]
        self.blocks = [Block("")]

    @property
    def thread(self) -> Thread:
        """The thread that runs."""
        return self.threads[-1]

    def must_be_in_main_thread(self) -> None:
        """Raise NotPossible in another thread."""
        if len(self.threads) > 1:
            raise NotPossible("the main thread")

    def must_be_outside_of_streams(self) -> None:
        """Raise NotPossible in a block with a stream."""
        if any(block.stream for block in self.blocks):
            raise NotPossible("a place outside of blocks with a stream")

    def name(self, device: int) -> str:
        """Return a device's name with its index, in quotes."""
        return f'"{self.kind}:{device}"'

    def write(self, *lines: str) -> None:
        """Add lines to the script."""
        self.blocks[-1].lines += lines

    def open(self, header: str, *restores: str) -> Block:
        """Begin a block whose end restores some attributes of the thread. Raises NotPossible within too many blocks."""
        if len(self.blocks) > _DEPTH:
            raise NotPossible("a block in fewer others")
        block = Block(header, {name: getattr(self.thread, name) for name in restores})
        self.blocks[-1].lines.append(block)
        self.blocks.append(block)
        return block

    def open_thread(self, device: int) -> None:
        """Begin the work of another thread, with a current device."""
        self.open("def work() -> None:").is_thread = True
        self.threads.append(Thread(device, {}))

    def open_stream(self, header: str, stream: str) -> None:
        """Begin a block that makes a stream current."""
        block = self.open(header, "device")
        block.stream, block.stream_before = stream, self.current(self.streams[stream])
        self.make_current(stream)

    def close(self, *, by_error: bool) -> None:
        """End the innermost block, and restore what it restores. Raises NotPossible if there is none."""
        if len(self.blocks) == 1:
            raise NotPossible("a block")
        block = self.blocks.pop()
        if block.is_thread:
            self.threads.pop()
            return
        block.by_error = by_error
        for name, value in block.restored.items():
            setattr(self.thread, name, value)
        if block.stream:
            self.thread.streams[self.streams[block.stream]] = block.stream_before
        if block.forked is not None:
            self.default_generators = block.forked

    def current(self, device: int) -> str:
        """Return the current stream of a device."""
        return self.thread.streams[device]

    def make_current(self, stream: str) -> None:
        """Make a stream and its device current."""
        self.thread.device = self.streams[stream]
        self.thread.streams[self.thread.device] = stream

    def wait_for(self, step: Step, points: Sequence[Point], stream: str) -> None:
        """Let a stream wait for work of other streams, unless it already does, in one of the ways that are offered."""
        for name in sorted({name for name, _ in points}):
            if all(self.order.is_before(point, stream) for point in points if point[0] == name):
                continue
            way = step.pick(f"wait for {name}", [way for way in WAITS if way not in self.lacks])
            self.write(*wait_lines(way, stream, name, self.name(self.streams[name])))
            if way == "device":
                self.synchronized(self.streams[name])
            else:
                self.order.wait(stream if way in _OF_STREAMS else HOST, self.order.of(name))

    def synchronized(self, device: int) -> None:
        """Note that the host has waited for all streams of a device."""
        for stream, index in self.streams.items():
            if index == device:
                self.order.wait(HOST, self.order.of(stream))

    def read(self, step: Step, tensor: Tensor) -> str:
        """Let the current stream of a tensor's device read the tensor. Return the stream."""
        storage, stream = tensor.storage, self.current(tensor.storage.device)
        self.wait_for(step, [storage.written], stream)
        storage.reads.append(self.order.submit(stream))
        return stream

    def overwrite(self, step: Step, tensor: Tensor) -> None:
        """Let the current stream of a tensor's device write to the tensor."""
        storage, stream = tensor.storage, self.current(tensor.storage.device)
        self.wait_for(step, storage.uses, stream)
        storage.written, storage.reads = self.order.submit(stream), []

    def fetch(self, step: Step, tensor: Tensor) -> None:
        """Let the host read a tensor's values. The host then knows that they are written, but nothing of other work."""
        storage = tensor.storage
        self.read(step, tensor)
        storage.reads.pop()
        storage.written = DONE

    def made(self, step: Step, device: int, shape: tuple[int, ...]) -> Tensor:
        """Return a new float32 tensor, which the current stream of its device fills. The caller writes the line."""
        nbytes, stream = 4 * math.prod(shape), self.current(device)
        tensor = Tensor(f"t{step.number}", Storage(device, nbytes, stream, self.order.submit(stream)), shape)
        self.tensors[tensor.name] = tensor
        self.note_peak(device)
        return tensor

    def view(self, step: Step, of: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Return a new tensor over the memory of another one."""
        tensor = Tensor(f"t{step.number}", of.storage, shape)
        self.tensors[tensor.name] = tensor
        return tensor

    def held(self, device: int) -> int:
        """Return the number of bytes that tensors of a device hold at least."""
        storages = {id(t.storage): t.storage for t in self.tensors.values()}
        return sum(s.nbytes for s in storages.values() if s.device == device)

    def note_peak(self, device: int) -> None:
        """Record the bytes that a device holds, if they are more than before."""
        self.peaks[device] = max(self.peaks[device], self.held(device))

    def forget(self, step: Step, tensor: Tensor) -> None:
        """Delete a name of a tensor.

        If no other name has the same memory, first record the other streams that still use the memory, or wait for
        them.
        """
        storage = tensor.storage
        if sum(other.storage is storage for other in self.tensors.values()) == 1:
            late = [p for p in storage.uses if not self.order.is_before(p, storage.made_on)]
            if RECORD_STREAM not in self.lacks and step.pick("free", (RECORD_STREAM, "wait")) == RECORD_STREAM:
                self.write(*(f"{tensor.name}.record_stream({name})" for name in sorted({name for name, _ in late})))
            else:
                self.wait_for(step, late, storage.made_on)
        self.write(f"del {tensor.name}")
        del self.tensors[tensor.name]

    def lines(self) -> list[str]:
        """Return the script. All blocks must be closed."""
        return list(self.blocks[0].text())
