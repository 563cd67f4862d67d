"""What a walk knows while it writes its script: devices, streams and their order, tensors, generators and modes.

It says what the device has to answer at each place. A script has no race: work of one stream that needs work of another
one waits for it.
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
#: Ways to wait for a stream: lines with A for the stream that waits, B for the other one, and D for its device.
WAITS = {
    "wait_stream": ("A.wait_stream(B)",),
    "event": ("e = torch.Event(D)", "e.record(B)", "A.wait_event(e)"),
    "event_synchronize": ("e = torch.Event(D)", "e.record(B)", "e.synchronize()"),
    "synchronize": ("B.synchronize()",),
    "device": ("torch.accelerator.synchronize(D)",),
}
_OF_STREAMS = ("wait_stream", "event")  # of these, those in which the host does not wait
RECORD_STREAM = "record_stream"
_INDENT = "    "
_DEPTH = 8  # blocks within each other; Python takes 20


def wait_lines(way: str, waiting: str, other: str, device: str) -> list[str]:
    """Return the lines in which a stream, or the host, waits for another stream of a device in one of the ``WAITS``."""
    names = {"A": waiting, "B": other, "D": device}
    return [re.sub(r"\b[ABD]\b", lambda name: names[name[0]], line) for line in WAITS[way]]


class NotPossible(Exception):
    """A step that has nothing to act on at this place. It is left out."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a walk. ``luck`` decides what it acts on, ``number`` names what it makes."""

    number: int
    kind: str
    luck: int

    def pick(self, what: str, options: Iterable[T]) -> T:
        """Return one of the options. It stays the same if others come or go. Raises NotPossible if there is none."""
        listed = list(options)
        if not listed:
            raise NotPossible(what)
        return max(listed, key=lambda option: hashlib.blake2b(f"{self.luck} {what} {option}".encode()).digest())


@dataclass(slots=True)
class Block:
    """Lines of a script under a header that ends with a colon; of a thread, what a function contains."""

    header: str
    restored: dict[str, object] = field(default_factory=dict)  # what its end restores of the thread, by name
    stream: str = ""  # that it makes current
    stream_before: str = ""  # of the same device
    forked: dict[str, Source] | None = None  # states of generators that its end restores
    is_thread: bool = False
    by_error: bool = False  # whether an exception leaves it
    lines: list[str | Block] = field(default_factory=list)

    def text(self, depth: int = 0) -> Iterator[str]:
        """Yield its lines, indented."""
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


#: Work that was submitted to a stream: the stream, and how much came before it there.
Point = tuple[str, int]
#: Work that is done, whoever asks.
DONE: Point = HOST, 0
#: How much of each stream's work is done before something else.
Clock = dict[str, int]


class Order:
    """Which work is done before which: a vector clock of each stream, and one of the host."""

    def __init__(self) -> None:
        self._clocks: dict[str, Clock] = {HOST: {}}

    def submit(self, stream: str) -> Point:
        """Return the place of new work of a stream. It comes after all that the host has waited for."""
        clock = self.of(stream)
        self.wait(stream, self.of(HOST))
        clock[stream] = clock.get(stream, 0) + 1
        return stream, clock[stream]

    def of(self, waiting: str) -> Clock:
        """Return what is done before the next work of a stream, or of the host."""
        return self._clocks.setdefault(waiting, {})

    def wait(self, waiting: str, clock: Clock) -> None:
        """Let a stream, or the host, wait for what a clock tells."""
        mine = self.of(waiting)
        for stream, count in clock.items():
            mine[stream] = max(mine.get(stream, 0), count)

    def is_before(self, point: Point, stream: str) -> bool:
        """Whether work is done before the next work of a stream."""
        name, count = point
        return point == DONE or name == stream or max(self.of(w).get(name, 0) for w in (stream, HOST)) >= count


@dataclass(slots=True)
class Storage:
    """Memory of a device, and the last work that wrote or read it."""

    device: int
    nbytes: int
    made_on: str  # stream
    written: Point
    reads: list[Point] = field(default_factory=list)

    @property
    def uses(self) -> list[Point]:
        """All work that has to be done before the memory is written, or freed."""
        return [self.written, *self.reads]


@dataclass(slots=True)
class Tensor:
    """A tensor of the script. Its twin on CPU has the name with ``c`` in place of ``t``."""

    name: str
    storage: Storage
    shape: tuple[int, ...]

    @property
    def twin(self) -> str:
        """The name of what CPU computed."""
        return "c" + self.name[1:]


#: A draw: the call, and how many numbers.
Draw = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Source:
    """The state of a generator. ``own``: it is not the default one of its device."""

    device: int
    seed: int
    own: bool = False
    drawn: tuple[Draw, ...] = ()  # since it was seeded

    def behind(self, draw: Draw) -> Source:
        """Return the state behind a draw."""
        return replace(self, drawn=(*self.drawn, draw))

    def differs_from(self, other: Source) -> bool:
        """Whether two states of generators of a device and a kind are sure to give other draws.

        Of other seeds, or one behind the other. Behind different draws from one state they may give the same, since a
        generator may advance in steps.
        """
        shorter, longer = sorted((self.drawn, other.drawn), key=len)
        comparable = (self.device, self.own) == (other.device, other.own)
        return comparable and self != other and (self.seed != other.seed or longer[: len(shorter)] == shorter)


@dataclass(slots=True)
class Thread:
    """What a thread has for itself: the current device and streams, and modes."""

    device: int
    streams: dict[int, str]
    grad: bool = True
    autocast: str = ""  # dtype
    default_device: int | None = None


class State:
    """Everything that the steps before have made, and the script so far.

    ``kind``: the type of the devices. ``anew``: the script runs in a new process. ``lacks``: what the device does not
    offer of the ways to wait, and of ``record_stream``.
    """

    def __init__(self, kind: str, devices: int, *, anew: bool = False, lacks: Collection[str] = ()) -> None:
        self.kind, self.devices, self.anew = kind, range(devices), anew
        self.lacks = lacks
        self.order = Order()
        self.streams: dict[str, int] = {}  # the device of each
        self.events: dict[str, tuple[int, Clock]] = {}
        self.tensors: dict[str, Tensor] = {}
        self.objects: list[str] = []  # names of tensors that tell what their twins tell
        self.default_generators: dict[str, Source] = {}
        self.generators: dict[str, Source] = {}
        self.saved: dict[str, Source] = {}
        self.saved_of_all: dict[str, dict[str, Source]] = {}
        self.settings: dict[str, str] = {}
        self.errors: dict[str, str] = {}  # the name of the error of a call
        self.drawn: dict[tuple[Source, Draw], str] = {}  # the name of what a state gave
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
        """Begin a block whose end restores some of the thread's properties. Raises NotPossible in too many others."""
        if len(self.blocks) > _DEPTH:
            raise NotPossible("a block in fewer others")
        block = Block(header, {name: getattr(self.thread, name) for name in restores})
        self.blocks[-1].lines.append(block)
        self.blocks.append(block)
        return block

    def open_thread(self, device: int) -> None:
        """Begin what another thread does, in which a device is current."""
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
        """Make a stream current, and its device with it."""
        self.thread.device = self.streams[stream]
        self.thread.streams[self.thread.device] = stream

    def wait_for(self, step: Step, points: Sequence[Point], stream: str) -> None:
        """Let a stream wait for work of others, where it does not do so already, in one of the ways that there are."""
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
        """Have the current stream of a tensor's device read it. Returns the stream."""
        storage, stream = tensor.storage, self.current(tensor.storage.device)
        self.wait_for(step, [storage.written], stream)
        storage.reads.append(self.order.submit(stream))
        return stream

    def overwrite(self, step: Step, tensor: Tensor) -> None:
        """Have the current stream of a tensor's device write to it."""
        storage, stream = tensor.storage, self.current(tensor.storage.device)
        self.wait_for(step, storage.uses, stream)
        storage.written, storage.reads = self.order.submit(stream), []

    def fetch(self, step: Step, tensor: Tensor) -> None:
        """Have the host read a tensor's values. It knows then that these are written, and nothing of other work."""
        storage = tensor.storage
        self.read(step, tensor)
        storage.reads.pop()
        storage.written = DONE

    def made(self, step: Step, device: int, shape: tuple[int, ...]) -> Tensor:
        """Return a new float32 tensor, which the current stream of its device fills. Its name is not written yet."""
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
        """Return the bytes that tensors of a device hold at least."""
        storages = {id(t.storage): t.storage for t in self.tensors.values()}
        return sum(s.nbytes for s in storages.values() if s.device == device)

    def note_peak(self, device: int) -> None:
        """Remember what a device holds, if it is more than ever."""
        self.peaks[device] = max(self.peaks[device], self.held(device))

    def forget(self, step: Step, tensor: Tensor) -> None:
        """Drop a name. The memory goes back when its last name does, and other streams may still use it until then."""
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
        """Return the script, whose blocks have to be closed."""
        return list(self.blocks[0].text())
