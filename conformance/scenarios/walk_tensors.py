"""Steps about tensors and the memory of devices."""

from __future__ import annotations

from collections.abc import Callable

from conformance.scenarios.walk_kinds import device_of, form_of, kind, tensor_of
from conformance.scenarios.walk_state import HOST, RECORD_STREAM, NotPossible, State, Step

Shape = tuple[int, ...]

#: The areas of the kinds of steps.
TENSORS = "tensors"
MEMORY = "memory"

_SHAPES = ((), (1,), (7,), (4, 6), (3, 5, 2), (64, 64), (4096,))


@kind(TENSORS, weight=4)
def new_tensor(s: State, step: Step) -> None:
    """Make a tensor on a device, or on the current one."""
    shape, first = step.pick("shape", _SHAPES), step.pick("first", range(-3, 4))
    device = step.pick("device", (*s.devices, None))
    where = f'"{s.kind}"' if device is None else s.name(device)
    tensor = s.made(step, s.thread.device if device is None else device, shape)
    made = f"counted({shape}, {first}, DEVICE)"
    s.write(f"{tensor.name} = {made.replace('DEVICE', where)}", f"{tensor.twin} = {made.replace('DEVICE', 'CPU')}")


# Calls that write to a tensor, T.
_CHANGES = (
    "T.add_({})", "T.mul_(-1)", "T.fill_({})", "T.zero_()", "T.neg_()", "T.sub_({}).abs_()", "T[...] = {}",
    "T.clamp_(-5, {})", "T.masked_fill_(T > {}, 1)", "T.data.add_({})", "T.detach().sub_({})", "T.view_as(T).add_({})",
    "T.copy_(torch.full_like(T, {}))",
)  # fmt: skip


@kind(TENSORS, "new_tensor", weight=5)
def change(s: State, step: Step) -> None:
    """Write to a tensor."""
    tensor = tensor_of(s, step)
    s.overwrite(step, tensor)
    line = step.pick("change", _CHANGES).format(step.pick("number", range(2, 6)))
    s.write(line.replace("T", tensor.name), line.replace("T", tensor.twin))


@kind(TENSORS, "new_tensor", weight=3)
def compute(s: State, step: Step) -> None:
    """Compute a new tensor from another one."""
    source = tensor_of(s, step)
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


@kind(TENSORS, "new_tensor", weight=2)
def view(s: State, step: Step) -> None:
    """Make another tensor over the same memory."""
    source = tensor_of(s, step)
    cut = ("T[1:]", "T[::2]", "T[..., 1:]") if source.shape and min(source.shape[0], source.shape[-1]) > 1 else ()
    turned = ("T.mT",) if len(source.shape) > 1 else ()
    way = step.pick("way", ("T.detach()", "T[None]", *cut, *turned))
    made = s.view(step, source, _VIEWS[way](source.shape))
    s.write(f"{made.name} = {way.replace('T', source.name, 1)}", f"{made.twin} = {way.replace('T', source.twin, 1)}")


@kind(TENSORS, "new_tensor", weight=3)
def copy(s: State, step: Step) -> None:
    """Copy a tensor into another one, which may be on another device."""
    target = tensor_of(s, step)
    others = [t for t in s.tensors.values() if t.shape == target.shape and t.storage is not target.storage]
    source = step.pick("source", [t.name for t in others])
    s.read(step, s.tensors[source])
    s.overwrite(step, target)
    s.write(f"{target.name}.copy_({source})", f"{target.twin}.copy_({s.tensors[source].twin})")


@kind(TENSORS, "new_tensor", weight=3)
def move(s: State, step: Step) -> None:
    """Copy a tensor to a device, its own or another one."""
    source, device = tensor_of(s, step), device_of(s, step)
    s.read(step, source)
    moved = step.pick("way", ("T.to(D, copy=True)", "T.to(D, copy=True, non_blocking=True)", "T.cpu().to(D)"))
    made = s.made(step, device, source.shape)
    s.write(f"{made.name} = {moved.replace('T', source.name, 1).replace('D', s.name(device))}",
            f"{made.twin} = {source.twin}.clone()")  # fmt: skip


@kind(TENSORS, "new_tensor", weight=4)
def values(s: State, step: Step) -> None:
    """Ask for the values of a tensor, in one of the ways that wait for them."""
    source = tensor_of(s, step)
    s.fetch(step, source)
    ways = (
        "same(T.cpu(), C)",
        "same(T.clone().cpu(), C)",
        "T.tolist() == C.tolist()",
        "T.sum().item() == C.sum().item()",
    )
    way = step.pick("way", ways)
    s.write(f"assert {way.replace('T', source.name, 1).replace('C', source.twin, 1)}")


@kind(TENSORS, "new_tensor", weight=2)
def delete(s: State, step: Step) -> None:
    """Drop a tensor."""
    s.forget(step, tensor_of(s, step))


@kind(TENSORS, "new_tensor")
def fetch_to_pinned(s: State, step: Step) -> None:
    """Copy a tensor to pinned memory without a wait, and wait for the stream."""
    source = tensor_of(s, step)
    stream = s.read(step, source)
    s.write(f"p = torch.full({source.shape}, -99.0, dtype=torch.float32, device=CPU).pin_memory()",
            f"p.copy_({source.name}, non_blocking=True)", f"{stream}.synchronize()",
            f"assert same(p, {source.twin})")  # fmt: skip
    s.order.wait(HOST, s.order.of(stream))


@kind(TENSORS, "new_tensor")
def send_from_pinned(s: State, step: Step) -> None:
    """Copy pinned memory to a tensor without a wait, and free it at once."""
    target = tensor_of(s, step)
    s.overwrite(step, target)
    s.write(f"p = counted({target.shape}, 2, CPU).pin_memory()", f"{target.name}.copy_(p, non_blocking=True)",
            f"{target.twin}.copy_(p)", "del p",
            f"p = torch.full({target.shape}, -99.0, dtype=torch.float32, device=CPU).pin_memory()")  # fmt: skip


@kind(TENSORS, "new_tensor")
def resize_storage(s: State, step: Step) -> None:
    """Let the memory of a tensor grow. Its contents stay."""
    tensor = tensor_of(s, step)
    stream = s.current(tensor.storage.device)
    is_read_elsewhere = tensor.storage.made_on != stream  # the old memory is read on another stream
    if is_read_elsewhere and RECORD_STREAM in s.lacks:
        raise NotPossible(RECORD_STREAM)
    s.overwrite(step, tensor)
    if is_read_elsewhere:
        s.write(f"{tensor.name}.record_stream({stream})")
        tensor.storage.made_on = stream
    tensor.storage.nbytes *= 2
    s.note_peak(tensor.storage.device)
    for name in (tensor.name, tensor.twin):
        s.write(f"{name}.untyped_storage().resize_({tensor.storage.nbytes})")


@kind(TENSORS, "new_tensor")
def fail_to_resize(s: State, step: Step) -> None:
    """Let the memory of a tensor grow beyond the memory of its device. This raises, and the contents stay."""
    tensor = tensor_of(s, step)
    s.overwrite(step, tensor)
    nbytes = step.pick("bytes", ("1 << 45", "1 << 60"))
    s.write(f"error_of(lambda: {tensor.name}.untyped_storage().resize_({nbytes}))")


@kind(TENSORS, "new_tensor")
def save_and_load(s: State, step: Step) -> None:
    """Save a tensor and load it, on its own device or another one."""
    source, device = tensor_of(s, step), device_of(s, step)
    s.fetch(step, source)
    where = step.pick("where", (source.storage.device, device))
    made = s.made(step, where, source.shape)
    s.write(f"{made.name} = reloaded({source.name}{'' if where == source.storage.device else ', ' + s.name(where)})",
            f"assert {made.name}.device == torch.device({s.name(where)})",
            f"{made.twin} = {source.twin}.clone()")  # fmt: skip


@kind(TENSORS, "new_tensor")
def gradient(s: State, step: Step) -> None:
    """Compute a gradient, which uses the streams of the forward calls."""
    if not s.thread.grad:
        raise NotPossible("a mode with gradients")
    source = tensor_of(s, step)
    s.read(step, source)
    made = s.made(step, source.storage.device, source.shape)
    s.write(f"{made.name} = gradient_of_square({source.name})", f"{made.twin} = 2 * {source.twin}")


@kind(MEMORY, "new_tensor", weight=2)
def allocated(s: State, step: Step) -> None:
    """Ask for the memory of a device: at least what the tensors hold, at most the peak."""
    device = device_of(s, step)
    m, of = f"torch.{s.kind}", form_of(s, step, device)
    s.write(f"assert {s.held(device)} <= {m}.memory_allocated({of}) <= {m}.max_memory_allocated({of})")
    s.write(f"assert {m}.max_memory_allocated({of}) >= {s.peaks[device]}")
    s.write(f"assert {m}.memory_allocated({of}) <= {m}.memory_reserved({of})")


@kind(MEMORY, "new_tensor")
def reset_peak(s: State, step: Step) -> None:
    """Reset the peak of a device."""
    device = device_of(s, step)
    m, of = f"torch.{s.kind}", form_of(s, step, device)
    s.write(f"{m}.reset_peak_memory_stats({of})",
            f"assert {m}.max_memory_allocated({of}) == {m}.memory_allocated({of})")  # fmt: skip
    s.peaks[device] = s.held(device)


@kind(MEMORY, "new_tensor")
def give_back(s: State, step: Step) -> None:
    """Give back memory that is not in use. Memory in use must stay."""
    s.write(f"torch.{step.pick('module', (s.kind, 'accelerator'))}.empty_cache()")


@kind(MEMORY, weight=2)
def grow_and_free(s: State, step: Step) -> None:
    """Make a large tensor and free it. After that, no more memory is allocated than before."""
    device = device_of(s, step)
    s.write(f"before = torch.{s.kind}.memory_allocated({device})",
            f"x = torch.ones({1 << 20}, dtype=torch.float32, device={s.name(device)})",
            f"assert torch.{s.kind}.memory_allocated({device}) >= {s.held(device) + (4 << 20)}",
            "del x",
            f"assert torch.{s.kind}.memory_allocated({device}) <= before")  # fmt: skip
    s.peaks[device] = max(s.peaks[device], s.held(device) + (4 << 20))
