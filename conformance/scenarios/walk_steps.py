"""The steps of a walk: each writes lines of its script, and what the device has to answer behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from conformance.scenarios.walk_state import HOST, NotPossible, Source, State, Step, Tensor

Write = Callable[[State, Step], None]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of step. ``needs``: kinds that come first where it is tried alone. ``weight``: how often it is drawn."""

    write: Write
    area: str
    needs: tuple[str, ...] = ()
    weight: int = 1

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.write.__name__


KINDS: dict[str, Kind] = {}


def _kind(area: str, *needs: str, weight: int = 1) -> Callable[[Write], Write]:
    def register(write: Write) -> Write:
        KINDS[write.__name__] = Kind(write, area, needs, weight)
        return write

    return register


def _device(s: State, step: Step) -> int:
    return step.pick("device", s.devices)


def _form(s: State, step: Step, device: int) -> str:
    """Return a device in one of the forms that functions take."""
    return step.pick("form", (str(device), s.name(device), f"torch.device({s.name(device)})"))


def _tensor(s: State, step: Step, what: str = "tensor") -> Tensor:
    return s.tensors[step.pick(what, s.tensors)]


# ----------------------------------------------------------------------------------------------------------- devices


@_kind("devices", weight=2)
def set_device(s: State, step: Step) -> None:
    """Make a device current, outside of blocks with a stream, of which not every one restores it."""
    if any(block.stream for block in s.blocks):
        raise NotPossible("within a block with a stream")
    device = _device(s, step)
    way = step.pick("way", ("torch.accelerator.set_device_index", f"torch.{s.kind}.set_device"))
    s.write(f"{way}({_form(s, step, device)})")
    s.thread.device = device


@_kind("devices", weight=3)
def in_device(s: State, step: Step) -> None:
    """Begin a block with a device."""
    device = _device(s, step)
    ways = f"torch.{s.kind}.device({_form(s, step, device)})", f"torch.accelerator.device_index({device})"
    way = step.pick("way", ways)
    s.open(f"with {way}:", "device")
    s.thread.device = device


@_kind("devices")
def in_default_device(s: State, step: Step) -> None:
    """Begin a block in which tensors are made on a device."""
    device = _device(s, step)
    s.open(f"with torch.device({s.name(device)}):", "default_device")
    s.thread.default_device = device


@_kind("devices", weight=2)
def current_device(s: State, step: Step) -> None:
    """Ask which device is current."""
    asked = ("torch.accelerator.current_device_index()", f"torch.{s.kind}.current_device()",
             f'torch.ones(1, device="{s.kind}").device.index')  # fmt: skip
    s.write(f"assert {step.pick('way', asked)} == {s.thread.device}")


@_kind("devices")
def device_of_factories(s: State, _: Step) -> None:
    """Ask where a tensor is made if nothing is said."""
    wanted = '"cpu"' if s.thread.default_device is None else s.name(s.thread.default_device)
    s.write(f"assert torch.ones(2).device == torch.device({wanted})")


@_kind("devices", "in_device", weight=8)
def end_block(s: State, step: Step) -> None:
    """End the innermost block, now and then by an exception."""
    s.close(by_error=step.pick("way", range(4)) == 0)


@_kind("devices")
def in_thread(s: State, step: Step) -> None:
    """Begin what another thread does."""
    if len(s.threads) > 1:
        raise NotPossible("one thread at a time")
    s.open_thread(_device(s, step))
    begin(s, f"u{step.number}")


def begin(s: State, prefix: str = "s") -> None:
    """Name the current device and the current streams of a thread that begins."""
    s.write(f"torch.accelerator.set_device_index({s.thread.device})")
    for index in s.devices:
        name = f"{prefix}_{index}"
        s.write(f"{name} = torch.accelerator.current_stream({index})")
        s.streams[name] = index
        s.thread.streams[index] = name


# ----------------------------------------------------------------------------------------------------------- streams


@_kind("streams", weight=2)
def new_stream(s: State, step: Step) -> None:
    """Make a stream, of a device that may not be current."""
    device, name = _device(s, step), f"s{step.number}"
    way = step.pick("way", (f"torch.Stream({s.name(device)})", f"torch.{s.kind}.Stream(device={s.name(device)})"))
    s.write(f"{name} = {way}", f"assert {name}.device == torch.device({s.name(device)})")
    s.streams[name] = device


def _own_streams(s: State) -> list[str]:
    """Return streams that were made, and those that are current."""
    return [name for name in s.streams if not name.startswith("u") or name in s.thread.streams.values()]


@_kind("streams", "new_stream", weight=3)
def in_stream(s: State, step: Step) -> None:
    """Begin a block with a stream."""
    stream = step.pick("stream", _own_streams(s))
    s.open_stream(f"with torch.{s.kind}.stream({stream}):", stream)


@_kind("streams", "new_stream", weight=3)
def in_stream_itself(s: State, step: Step) -> None:
    """Begin a block with a stream itself, which is not within another one of it.

    A stream that is current already is left out, so only new ones are taken: some versions of torch do nothing then,
    others make its device current.
    """
    taken = {*s.thread.streams.values(), *(block.stream for block in s.blocks)}
    stream = step.pick("stream", [name for name in s.streams if "_" not in name and name not in taken])
    s.open_stream(f"with {stream}:", stream)


@_kind("streams", "new_stream")
def set_stream(s: State, step: Step) -> None:
    """Make a stream current, outside of blocks that would restore another one."""
    if any(block.stream for block in s.blocks):
        raise NotPossible("within a block with a stream")
    stream = step.pick("stream", _own_streams(s))
    s.write(f"{step.pick('way', ('torch.accelerator', f'torch.{s.kind}'))}.set_stream({stream})")
    s.make_current(stream)


@_kind("streams", weight=2)
def current_stream(s: State, step: Step) -> None:
    """Ask for the current stream of a device."""
    device = _device(s, step)
    asked = step.pick("way", ("torch.accelerator.current_stream", f"torch.{s.kind}.current_stream"))
    s.write(f"assert {asked}({_form(s, step, device)}) == {s.current(device)}")


@_kind("streams")
def default_stream(s: State, step: Step) -> None:
    """Ask for the default stream of a device, which is none that was made, and the same in each place."""
    device = _device(s, step)
    made = [name for name, index in s.streams.items() if index == device and "_" not in name]
    s.write(f"d = torch.{s.kind}.default_stream({_form(s, step, device)})", f"assert d not in [{', '.join(made)}]",
            f"assert d.device == torch.device({s.name(device)})",
            f"assert d == default.setdefault({device}, d)")  # fmt: skip


@_kind("streams", weight=2)
def keep_busy(s: State, step: Step) -> None:
    """Give the current stream of a device some work."""
    device = _device(s, step)
    s.write(f"keep_busy({s.name(device)})")
    s.order.submit(s.current(device))


@_kind("streams", weight=2)
def record_event(s: State, step: Step) -> None:
    """Record an event on a stream, a new event or one that was recorded before."""
    stream = step.pick("stream", s.streams)
    device = s.streams[stream]
    again = [name for name, (index, _) in s.events.items() if index == device]
    event = step.pick("event", (f"e{step.number}", *again))
    if event not in s.events:
        s.write(f"{event} = torch.Event({s.name(device)})")
    s.write(f"{event}.record({stream})")
    s.events[event] = device, dict(s.order.of(stream))


@_kind("streams", "new_stream", "record_event", weight=2)
def wait_event(s: State, step: Step) -> None:
    """Let a stream wait for an event."""
    event, stream = step.pick("event", s.events), step.pick("stream", s.streams)
    s.write(step.pick("way", (f"{stream}.wait_event({event})", f"{event}.wait({stream})")))
    s.order.wait(stream, s.events[event][1])


@_kind("streams", "new_stream")
def wait_stream(s: State, step: Step) -> None:
    """Let a stream wait for another one."""
    stream, other = step.pick("stream", s.streams), step.pick("other", s.streams)
    s.write(f"{stream}.wait_stream({other})")
    s.order.wait(stream, s.order.of(other))


@_kind("streams", "record_event")
def await_event(s: State, step: Step) -> None:
    """Wait for an event, which is reached then."""
    event = step.pick("event", s.events)
    s.write(f"{event}.synchronize()", f"assert {event}.query()")
    s.order.wait(HOST, s.events[event][1])


@_kind("streams", "new_stream")
def await_stream(s: State, step: Step) -> None:
    """Wait for a stream, which has nothing to do then."""
    stream = step.pick("stream", s.streams)
    s.write(f"{stream}.synchronize()", f"assert {stream}.query()")
    s.order.wait(HOST, s.order.of(stream))


@_kind("streams")
def await_device(s: State, step: Step) -> None:
    """Wait for a device, whose streams have nothing to do then."""
    device = _device(s, step)
    way = step.pick("way", ("torch.accelerator.synchronize", f"torch.{s.kind}.synchronize"))
    s.write(f"{way}({_form(s, step, device)})", f"assert {s.current(device)}.query()")
    s.synchronized(device)


# ----------------------------------------------------------------------------------------------------------- tensors

_SHAPES = ((), (1,), (7,), (4, 6), (3, 5, 2), (64, 64), (4096,))


@_kind("tensors", weight=4)
def new_tensor(s: State, step: Step) -> None:
    """Make a tensor on a device, or on the current one."""
    shape, first = step.pick("shape", _SHAPES), step.pick("first", range(-3, 4))
    device = step.pick("device", (*s.devices, None))
    where = f'"{s.kind}"' if device is None else s.name(device)
    tensor = s.made(step, s.thread.device if device is None else device, shape)
    made = f"counted({shape}, {first}, DEVICE)"
    s.write(f"{tensor.name} = {made.replace('DEVICE', where)}", f"{tensor.twin} = {made.replace('DEVICE', 'CPU')}")


def _both(s: State, tensor: Tensor, line: str) -> None:
    """Write a line for the device, with ``t1`` in it, and the same for CPU."""
    s.write(line.replace("T", tensor.name), line.replace("T", tensor.twin))


_CHANGES = (
    "T.add_({})", "T.mul_(-1)", "T.fill_({})", "T.zero_()", "T.neg_()", "T.sub_({}).abs_()", "T[...] = {}",
    "T.clamp_(-5, {})", "T.masked_fill_(T > {}, 1)", "T.data.add_({})", "T.detach().sub_({})", "T.view_as(T).add_({})",
    "T.copy_(torch.full_like(T, {}))",
)  # fmt: skip


@_kind("tensors", "new_tensor", weight=5)
def change(s: State, step: Step) -> None:
    """Write to a tensor."""
    tensor = _tensor(s, step)
    s.overwrite(step, tensor)
    _both(s, tensor, step.pick("change", _CHANGES).format(step.pick("number", range(2, 6))))


@_kind("tensors", "new_tensor", weight=3)
def compute(s: State, step: Step) -> None:
    """Compute a new tensor from another one."""
    source = _tensor(s, step)
    call = step.pick("call", ("T + 1", "T.clone()", "-T", "T * 2", "torch.where(T > 1, T, -T)", "T.relu()"))
    s.read(step, source)
    made = s.made(step, source.storage.device, source.shape)
    s.write(f"{made.name} = {call.replace('T', source.name)}", f"{made.twin} = {call.replace('T', source.twin)}")


_VIEWS: dict[str, Callable[[Shape], Shape]] = {
    "T.detach()": lambda shape: shape,
    "T[None]": lambda shape: (1, *shape),
    "T[1:]": lambda shape: (shape[0] - 1, *shape[1:]),
    "T[::2]": lambda shape: ((shape[0] + 1) // 2, *shape[1:]),
    "T[..., 1:]": lambda shape: (*shape[:-1], shape[-1] - 1),
    "T.mT": lambda shape: (*shape[:-2], shape[-1], shape[-2]),
}


@_kind("tensors", "new_tensor", weight=2)
def view(s: State, step: Step) -> None:
    """Make another tensor over the same memory."""
    source = _tensor(s, step)
    cut = ("T[1:]", "T[::2]", "T[..., 1:]") if source.shape and min(source.shape[0], source.shape[-1]) > 1 else ()
    turned = ("T.mT",) if len(source.shape) > 1 else ()
    way = step.pick("way", ("T.detach()", "T[None]", *cut, *turned))
    made = s.view(step, source, _VIEWS[way](source.shape))
    s.write(f"{made.name} = {way.replace('T', source.name, 1)}", f"{made.twin} = {way.replace('T', source.twin, 1)}")


@_kind("tensors", "new_tensor", weight=3)
def copy(s: State, step: Step) -> None:
    """Copy a tensor into another one, maybe of another device."""
    target = _tensor(s, step)
    others = [t for t in s.tensors.values() if t.shape == target.shape and t.storage is not target.storage]
    source = step.pick("source", [t.name for t in others])
    s.read(step, s.tensors[source])
    s.overwrite(step, target)
    s.write(f"{target.name}.copy_({source})", f"{target.twin}.copy_({s.tensors[source].twin})")


@_kind("tensors", "new_tensor", weight=3)
def move(s: State, step: Step) -> None:
    """Copy a tensor to a device, its own or another one."""
    source, device = _tensor(s, step), _device(s, step)
    s.read(step, source)
    moved = step.pick("way", ("T.to(D, copy=True)", "T.to(D, copy=True, non_blocking=True)", "T.cpu().to(D)"))
    made = s.made(step, device, source.shape)
    s.write(f"{made.name} = {moved.replace('T', source.name, 1).replace('D', s.name(device))}",
            f"{made.twin} = {source.twin}.clone()")  # fmt: skip


@_kind("tensors", "new_tensor", weight=4)
def values(s: State, step: Step) -> None:
    """Ask for the values of a tensor, in one of the ways that wait for them."""
    source = _tensor(s, step)
    s.fetch(step, source)
    ways = (
        "same(T.cpu(), C)",
        "same(T.clone().cpu(), C)",
        "T.tolist() == C.tolist()",
        "T.sum().item() == C.sum().item()",
    )
    way = step.pick("way", ways)
    s.write(f"assert {way.replace('T', source.name, 1).replace('C', source.twin, 1)}")


@_kind("tensors", "new_tensor", weight=2)
def delete(s: State, step: Step) -> None:
    """Drop a tensor."""
    s.forget(step, _tensor(s, step))


@_kind("tensors", "new_tensor")
def fetch_to_pinned(s: State, step: Step) -> None:
    """Copy a tensor to pinned memory without a wait, and wait for the stream."""
    source = _tensor(s, step)
    stream = s.read(step, source)
    s.write(f"p = torch.full({source.shape}, -99.0, dtype=torch.float32, device=CPU).pin_memory()",
            f"p.copy_({source.name}, non_blocking=True)", f"{stream}.synchronize()",
            f"assert same(p, {source.twin})")  # fmt: skip
    s.order.wait(HOST, s.order.of(stream))


@_kind("tensors", "new_tensor")
def send_from_pinned(s: State, step: Step) -> None:
    """Copy pinned memory to a tensor without a wait, and free it at once."""
    target = _tensor(s, step)
    s.overwrite(step, target)
    s.write(f"p = counted({target.shape}, 2, CPU).pin_memory()", f"{target.name}.copy_(p, non_blocking=True)",
            f"{target.twin}.copy_(p)", "del p",
            f"p = torch.full({target.shape}, -99.0, dtype=torch.float32, device=CPU).pin_memory()")  # fmt: skip


@_kind("tensors", "new_tensor")
def resize_storage(s: State, step: Step) -> None:
    """Let the memory of a tensor grow. Its contents stay."""
    tensor = _tensor(s, step)
    s.overwrite(step, tensor)
    stream = s.current(tensor.storage.device)
    if tensor.storage.made_on != stream:  # the old memory is read there
        s.write(f"{tensor.name}.record_stream({stream})")
        tensor.storage.made_on = stream
    tensor.storage.nbytes *= 2
    s.note_peak(tensor.storage.device)
    for name in (tensor.name, tensor.twin):
        s.write(f"{name}.untyped_storage().resize_({tensor.storage.nbytes})")


@_kind("tensors", "new_tensor")
def save_and_load(s: State, step: Step) -> None:
    """Save a tensor and load it, on its own device or another one."""
    source, device = _tensor(s, step), _device(s, step)
    s.fetch(step, source)
    where = step.pick("where", (source.storage.device, device))
    made = s.made(step, where, source.shape)
    s.write(f"{made.name} = reloaded({source.name}{'' if where == source.storage.device else ', ' + s.name(where)})",
            f"assert {made.name}.device == torch.device({s.name(where)})",
            f"{made.twin} = {source.twin}.clone()")  # fmt: skip


@_kind("tensors", "new_tensor")
def gradient(s: State, step: Step) -> None:
    """Compute a gradient, which keeps to the streams of the forward calls."""
    if not s.thread.grad:
        raise NotPossible("a mode with gradients")
    source = _tensor(s, step)
    s.read(step, source)
    made = s.made(step, source.storage.device, source.shape)
    s.write(f"{made.name} = gradient_of_square({source.name})", f"{made.twin} = 2 * {source.twin}")


# --------------------------------------------------------------------------------------------------------- generators

_DRAWS = (
    "torch.rand({n}, dtype=torch.float32, device=D{g})", "torch.randn({n}, dtype=torch.float32, device=D{g})",
    "torch.randint(0, 1 << 30, ({n},), device=D{g})", "torch.randperm({n}, device=D{g})",
    "torch.zeros({n}, dtype=torch.float32, device=D).exponential_({e})",
    "torch.zeros({n}, dtype=torch.float64, device=D).normal_({e})",
)  # fmt: skip
_SIZES = (1, 3, 64, 130)
_SEEDS = (5, 6)
_MANY = 64  # numbers that two streams have all in common by a negligible chance


@_kind("generators", weight=2)
def seed_all(s: State, step: Step) -> None:
    """Seed all devices."""
    seed = step.pick("seed", _SEEDS)
    s.write(f"{step.pick('way', ('torch.manual_seed', f'torch.{s.kind}.manual_seed_all'))}({seed})")
    s.default_generators = {f"{index}": Source(index, seed) for index in s.devices}


@_kind("generators", "seed_all", weight=2)
def seed_current(s: State, step: Step) -> None:
    """Seed the current device."""
    seed = step.pick("seed", _SEEDS)
    s.write(f"torch.{s.kind}.manual_seed({seed})")
    s.default_generators[f"{s.thread.device}"] = Source(s.thread.device, seed)


@_kind("generators", "seed_all")
def initial_seed(s: State, _: Step) -> None:
    """Ask for the seed of the current device."""
    state = s.default_generators.get(f"{s.thread.device}")
    if state is None:
        raise NotPossible("a seed")
    s.write(f"assert torch.{s.kind}.initial_seed() == {state.seed}")


def _draw(s: State, step: Step, source: Source, generator: str) -> Source:
    """Write a draw, and compare it with earlier ones. Returns the state behind it."""
    known = [drawn for at, drawn in s.drawn if at == source]
    again = bool(known) and step.pick("again", (True, False))
    call, n = step.pick("draw", known if again else product(_DRAWS, _SIZES))
    name, given = f"r{step.number}", f"generator={generator}" if generator else ""
    current = source.device == s.thread.device
    device = step.pick("form", (s.name(source.device), f'"{s.kind}"')) if current else s.name(source.device)
    text = call.format(n=n, g=f", {given}" if given else "", e=given).replace("D", device, 1)
    s.write(f"{name} = {text}.cpu()")
    s.order.submit(s.current(source.device))
    if (source, (call, n)) in s.drawn:
        s.write(f"assert same({name}, {s.drawn[source, (call, n)]})")
    for (other, drawn), earlier in s.drawn.items() if n >= _MANY else ():
        if drawn == (call, n) and source.differs_from(other):
            s.write(f"assert not same({name}, {earlier})")
    s.drawn.setdefault((source, (call, n)), name)
    return source.behind((call, n))


@_kind("generators", "seed_all", weight=6)
def draw(s: State, step: Step) -> None:
    """Draw from the generator of a device."""
    index = step.pick("device", s.default_generators)
    s.default_generators[index] = _draw(s, step, s.default_generators[index], "")


@_kind("generators", weight=2)
def new_generator(s: State, step: Step) -> None:
    """Make a generator, or copy one with its state."""
    device, seed = _device(s, step), step.pick("seed", _SEEDS)
    of = step.pick("of", ("", *s.generators))
    name = f"g{step.number}"
    s.write(f"{name} = {of}.clone_state()" if of else f"{name} = torch.Generator({s.name(device)}).manual_seed({seed})")
    s.generators[name] = s.generators[of] if of else Source(device, seed, own=True)


@_kind("generators", "new_generator", weight=3)
def draw_from_generator(s: State, step: Step) -> None:
    """Draw from a generator that was made."""
    name = step.pick("generator", s.generators)
    s.generators[name] = _draw(s, step, s.generators[name], name)


@_kind("generators", "seed_all", weight=2)
def save_state(s: State, step: Step) -> None:
    """Save the state of a generator."""
    index, name = step.pick("device", (*s.default_generators, *s.generators)), f"x{step.number}"
    if index in s.generators:
        s.write(f"{name} = {index}.get_state()")
        s.saved[name] = s.generators[index]
    else:
        s.write(f"{name} = torch.{s.kind}.get_rng_state({_form(s, step, int(index))})")
        s.saved[name] = s.default_generators[index]


@_kind("generators", "seed_all", "save_state", weight=3)
def restore_state(s: State, step: Step) -> None:
    """Restore a state that was saved, in a generator of its device."""
    name = step.pick("state", s.saved)
    source = s.saved[name]
    if source.own:
        generator = step.pick("generator", [g for g, of in s.generators.items() if of.device == source.device])
        s.write(f"{generator}.set_state({name})")
        s.generators[generator] = source
    else:
        s.write(f"torch.{s.kind}.set_rng_state({name}, {_form(s, step, source.device)})")
        s.default_generators[f"{source.device}"] = source


@_kind("generators", "seed_all", "seed_current")
def save_all_states(s: State, step: Step) -> None:
    """Save the states of all devices, and restore them behind some draws."""
    if len(s.default_generators) < len(s.devices):
        raise NotPossible("a seed of each device")
    s.write(f"x{step.number} = torch.{s.kind}.get_rng_state_all()")
    s.saved_of_all[f"x{step.number}"] = dict(s.default_generators)


@_kind("generators", "seed_all", "save_all_states", weight=2)
def restore_all_states(s: State, step: Step) -> None:
    """Restore the states of all devices."""
    name = step.pick("states", s.saved_of_all)
    s.write(f"torch.{s.kind}.set_rng_state_all({name})")
    s.default_generators = dict(s.saved_of_all[name])


@_kind("generators", "seed_all", weight=2)
def in_fork(s: State, _: Step) -> None:
    """Begin a block behind which the default generators are as they were."""
    devices = list(s.devices)
    block = s.open(f'with torch.random.fork_rng(devices={devices}, device_type="{s.kind}"):')
    block.forked = dict(s.default_generators)


# -------------------------------------------------------------------------------------------------------------- modes


@_kind("modes")
def in_no_grad(s: State, step: Step) -> None:
    """Begin a block with or without gradients."""
    grad = step.pick("grad", (True, False))
    s.open(f"with torch.set_grad_enabled({grad}):", "grad")
    s.thread.grad = grad


@_kind("modes")
def in_autocast(s: State, step: Step) -> None:
    """Begin a block with or without autocast."""
    dtype = step.pick("dtype", ("torch.bfloat16", "torch.float16", ""))
    words = f"dtype={dtype}" if dtype else "enabled=False"
    s.open(f'with torch.autocast("{s.kind}", {words}):', "autocast")
    s.thread.autocast = dtype


#: What a program sets for all that follows: the call that sets it, the one that asks, and its values.
_SETTINGS = {
    "threads": ("torch.set_num_threads({})", "torch.get_num_threads()", ("1", "2", "3")),
    "dtype": ("torch.set_default_dtype({})", "torch.get_default_dtype()", ("torch.float32", "torch.float64")),
    "deterministic": (
        "torch.use_deterministic_algorithms({}, warn_only=True)", "torch.are_deterministic_algorithms_enabled()",
        ("False", "True"),
    ),
    "precision": (
        "torch.set_float32_matmul_precision({})", "torch.get_float32_matmul_precision()", ('"highest"', '"high"'),
    ),
}  # fmt: skip


@_kind("modes", weight=2)
def change_setting(s: State, step: Step) -> None:
    """Change a setting of torch, in the main thread: others have a number of threads of their own."""
    if len(s.threads) > 1:
        raise NotPossible("within another thread")
    name = step.pick("setting", _SETTINGS)
    value = step.pick("value", _SETTINGS[name][2])
    s.write(_SETTINGS[name][0].format(value))
    s.settings[name] = value


@_kind("modes", weight=2)
def settings(s: State, _: Step) -> None:
    """Ask for the settings of torch that were changed."""
    if len(s.threads) > 1:
        raise NotPossible("within another thread")
    for name, value in s.settings.items():
        s.write(f"assert {_SETTINGS[name][1]} == {value}")


#: Ops of all kinds, many of which no backend has kernels for. X is a square matrix, of float32.
_OPS = (
    "X.lgamma()", "X.erfinv()", "X.cumsum(0)", "X.sort()", "X.topk(2)", "X.unique()", "X.nonzero()", "X.histc(4)",
    "X.logsumexp(0)", "X.cumprod(1)", "X.kthvalue(1)", "X.mode()", "X.renorm(2, 0, 1.0)", "X.trace()", "X.tril()",
    "X.logit(0.1)", "X.softmax(1)", "X.median()", "X.index_select(0, X[0].long())",
    "torch.linalg.det(X)", "torch.linalg.qr(X)", "torch.cdist(X, X)", "torch.bincount(X.flatten().abs().long())",
    "torch.searchsorted(X[0].sort().values, X)", "torch.nn.functional.conv2d(X[None, None], X[None, None])",
    "torch.nn.functional.embedding(X[0].long(), X)",
    "torch.nn.functional.max_pool2d(X[None, None], 2)", "torch.nn.functional.interpolate(X[None, None], size=5)",
    "torch.nn.functional.layer_norm(X, (4,))", "torch.nn.functional.cross_entropy(X, X.softmax(1))",
)  # fmt: skip


@_kind("ops", weight=3)
def call_op(s: State, step: Step) -> None:
    """Call an op. What it changes besides, what is asked later tells."""
    device = _device(s, step)
    s.write(f"X = torch.eye(4, dtype=torch.float32, device={s.name(device)})", step.pick("op", _OPS))
    s.order.submit(s.current(device))


@_kind("modes", weight=2)
def modes(s: State, step: Step) -> None:
    """Ask for the modes, and what an op does in them."""
    thread, there = s.thread, s.name(_device(s, step))
    s.write(f"assert torch.is_grad_enabled() is {thread.grad}",
            f'assert torch.is_autocast_enabled("{s.kind}") is {bool(thread.autocast)}',
            f"x = torch.ones((2, 2), dtype=torch.float32, device={there}, requires_grad=True)",
            "y = x @ x",
            f"assert y.requires_grad is {thread.grad} and y.dtype == {thread.autocast or 'x.dtype'}")  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- memory


@_kind("memory", "new_tensor", weight=2)
def allocated(s: State, step: Step) -> None:
    """Ask for the memory of a device: at least what the tensors hold, at most the peak."""
    device = _device(s, step)
    m, of = f"torch.{s.kind}", _form(s, step, device)
    s.write(f"assert {s.held(device)} <= {m}.memory_allocated({of}) <= {m}.max_memory_allocated({of})")
    s.write(f"assert {m}.max_memory_allocated({of}) >= {s.peaks[device]}")
    s.write(f"assert {m}.memory_allocated({of}) <= {m}.memory_reserved({of})")


@_kind("memory", "new_tensor")
def reset_peak(s: State, step: Step) -> None:
    """Start the peak of a device again."""
    device = _device(s, step)
    m, of = f"torch.{s.kind}", _form(s, step, device)
    s.write(f"{m}.reset_peak_memory_stats({of})",
            f"assert {m}.max_memory_allocated({of}) == {m}.memory_allocated({of})")  # fmt: skip
    s.peaks[device] = s.held(device)


@_kind("memory", "new_tensor")
def give_back(s: State, _: Step) -> None:
    """Give back memory that is not in use, and make sure that what is in use stays."""
    s.write(f"torch.{s.kind}.empty_cache()")


@_kind("memory", weight=2)
def grow_and_free(s: State, step: Step) -> None:
    """Make a large tensor and free it. No more is allocated than before."""
    device = _device(s, step)
    s.write(f"before = torch.{s.kind}.memory_allocated({device})",
            f"x = torch.ones({1 << 20}, dtype=torch.float32, device={s.name(device)})",
            f"assert torch.{s.kind}.memory_allocated({device}) >= {s.held(device) + (4 << 20)}",
            "del x",
            f"assert torch.{s.kind}.memory_allocated({device}) <= before")  # fmt: skip
    s.peaks[device] = max(s.peaks[device], s.held(device) + (4 << 20))


# ------------------------------------------------------------------------------------------------------------- errors


#: What has to raise, and says how much memory there is.
_TOO_LARGE = "torch.empty(1 << 60, dtype=torch.uint8, device=D)"
#: Calls that have to raise, with D for a device.
_WRONG = (
    "torch.ones(3, device=D) + torch.ones(4, device=D)", "torch.ones((2, 3), device=D) @ torch.ones((2, 3), device=D)",
    "torch.ones(3, device=D).view(2)", "torch.cat([torch.ones((2, 3), device=D), torch.ones((3, 2), device=D)])",
    "torch.ones(3, device=D).sum(2)", "torch.linalg.cholesky(-torch.eye(3, device=D))", _TOO_LARGE,
    "torch.accelerator.set_device_index(torch.accelerator.device_count())",
    "torch.accelerator.set_device_index(torch.accelerator.device_count() + 7)",
    "torch.accelerator.set_device_index(torch.accelerator.device_count() + 60)",
)  # fmt: skip


@_kind("errors", "new_tensor", weight=4)
def refused(s: State, step: Step) -> None:
    """Call what has to raise, and leaves everything as it was. A call raises what it raised before."""
    wrong, name = step.pick("call", _WRONG), f"m{step.number}"
    call = wrong.replace("D", s.name(_device(s, step)))
    s.write(f"{name} = error_of(lambda: {call})")
    if call in s.errors and wrong != _TOO_LARGE:
        s.write(f"assert {name} == {s.errors[call]}")
    s.errors.setdefault(call, name)
