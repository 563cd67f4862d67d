"""Steps about tensors as objects: the effects of views, copies, writes, modes and gradients on all that they report.

Each call runs on the device and on a twin on CPU, which is the model: both raise, or have the same results.
"""

from __future__ import annotations

from conformance.scenarios.model import works
from conformance.scenarios.walk_kinds import device_of, kind
from conformance.scenarios.walk_state import NotPossible, State, Step

#: The area of the kinds of steps.
OBJECTS = "objects"

#: The beginning of scripts with these steps, after the beginning of all scripts.
HELPERS = '''\
objects = {}  # by name: a tensor of the device, its twin, and the device


class Kept(torch.Tensor):
    """Tensors of a class of their own."""


def told(x, name):
    """Return an attribute of a tensor, or "broken" for one of several views whose graph a write has broken."""
    try:
        return getattr(x, name)
    except RuntimeError:
        return "broken"


def has_gradient(x):
    """Return whether a tensor may have a gradient that can be asked for."""
    return told(x, "is_leaf") is True or told(x, "retains_grad") is True


def facts(x):
    """Return what a tensor tells of itself on any device."""
    strides = [n for n, size in zip(x.stride(), x.shape) if size > 1 and x.numel()]
    return (
        type(x), x.dtype, x.shape, strides, x.storage_offset(), x.untyped_storage().nbytes(), x.layout,
        told(x, "is_leaf"), told(x, "requires_grad"), told(x, "retains_grad"), x.is_inference(), x.is_conj(),
        x.is_neg(), x.is_contiguous(), x.itemsize, x.nbytes, getattr(x, "mark", None),
    )


def check(name):
    """Raise AssertionError unless a tensor tells what its twin tells, and has its values and its gradient."""
    x, twin, device = objects[name]
    assert x.device == device
    assert facts(x) == facts(twin)
    assert same(x.detach().cpu(), twin.detach())
    if has_gradient(x):
        assert (x.grad is None) == (twin.grad is None)
        assert x.grad is None or x.grad.device == device and same(x.grad.detach().cpu(), twin.grad.detach())


def shares(here):
    """Return whether several elements of a tensor lie in one place, or two of the tensors share a storage."""
    storages = {x.untyped_storage().data_ptr() for x in here}
    return len(storages) < len(here) or any(n == 0 and size > 1 for x in here for n, size in zip(x.stride(), x.shape))


def both(made, names, call, *where, writes=False, grows=False, across=False):
    """Call on tensors and on their twins. ``made``: names of results. ``where``: a device to name in the call.

    torch gives a tensor more elements than its storage has before it refuses to let a storage grow that it loaded.
    """
    names, made = names.split(), made.split()
    if not all(name in objects for name in names):
        return  # the call that makes one has raised
    there, here, devices = zip(*(objects[name] for name in names)) if names else ((), (), ())
    if writes and shares(here) or not across and len(set(devices)) > 1:
        return
    if grows and not all(x.untyped_storage().resizable() for x in (*there, *here)):
        return
    error = None
    try:
        wanted = call(*here, *(CPU for _ in where))
    except Exception as e:
        error = e
    try:
        found = call(*there, *where)
    except Exception as e:
        if error is None or not (isinstance(e, type(error)) or isinstance(error, type(e))):
            raise
    else:
        assert error is None, f"only the host raises {error!r}"
    if error is None and made:
        device = torch.device(*where) if where else devices[0]
        pairs = [(found, wanted)] if len(made) == 1 else zip(found, wanted)
        for name, (x, twin) in zip(made, pairs):
            assert [x is t for t in there] == [twin is t for t in here]
            objects[name] = x, twin, device
    for name in [*names, *(made if error is None else ())]:
        check(name)


def give_data(x, y):
    """Give a tensor the data of another one of its kind. For some devices alone, torch refuses those of other kinds."""
    if (x.is_inference(), x.is_conj(), x.is_neg()) != (y.is_inference(), y.is_conj(), y.is_neg()):
        raise ValueError("data of another kind of tensor")
    x.data = y


def fetched(x):
    """Return a copy on the host, also of a tensor of the host."""
    return x.clone() if x.device.type == CPU else x.cpu()


'''

_VALUES = "counted({shape}, {first}, D)"
_MADE = (
    _VALUES, _VALUES, f"torch.nn.Parameter({_VALUES})", f"{_VALUES}.requires_grad_()", f"{_VALUES}.to(torch.int64)",
    f"{_VALUES}.half()", f"torch.view_as_complex({_VALUES})", f"{_VALUES}.as_subclass(Kept)",
    "torch.zeros({shape}, device=D)[1:]", f"torch.nn.Parameter({_VALUES}, requires_grad=False)",
)  # fmt: skip
_OBJECT_SHAPES = ((), (1,), (6,), (0, 3), (4, 6), (3, 4, 2), (2, 3, 4, 2))
_OBJECT_VIEWS = (
    "x.t()", "x[1:]", "x[..., ::2]", "x[None]", "x.expand(2, *x.shape)", "x.view(-1)", "x.flatten()", "x.reshape(-1)",
    "x.diagonal()", "x.real", "x.imag", "x.conj()", "x.mT", "x.mH", "x.detach()", "x.view_as(x)", "x.select(0, -1)",
    "x.as_strided((2, 2), (1, 2), 1)", "x.squeeze()", "x.unbind()[0]", "x.split(2)[-1]", "x.narrow(-1, 0, 1)", "x.data",
    "x.movedim(0, -1)", "x.permute(*range(x.dim()))", "x.T", "torch.view_as_real(x)", "x.as_subclass(Kept)",
    "x.unflatten(-1, (2, -1))", "x.to(x.device)", "x.contiguous()", "x.float()", "torch.as_tensor(x)",
    "torch.asarray(x)", "x.to(x)", "x.type(x.dtype)", "torch.nn.Parameter(x)", "copy.copy(x)", "x.resolve_conj()",
    "torch.nn.Parameter(x, requires_grad=False)", "x.unsqueeze(-1)", "x.swapaxes(0, -1)", "x.positive()",
)  # fmt: skip
_COPIES = (
    "x.clone()", "x.clone(memory_format=torch.contiguous_format)", "copy.deepcopy(x)", "reloaded(x)",
    "pickle.loads(pickle.dumps(x))", "pickle.loads(pickle.dumps(x, 2))", "x.double()", "x.half()",
    "x.type(torch.int32)", "torch.zeros_like(x)", "torch.empty_like(x).fill_(3)", "x.new_zeros((2, 3))",
    "x.new_full(x.shape, 2)", "torch.ones_like(x, requires_grad=x.requires_grad)", "x.to(x.device, copy=True)",
    "torch.asarray(x, copy=True)", "x.to(torch.complex64)", "x.new_tensor([1, 2])",
)  # fmt: skip
_MOVES = (
    "x.to(D, copy=True)", "x.to(D, torch.float64, copy=True)", "reloaded(x, D)", "torch.zeros_like(x, device=D)",
    "x.detach().to(D, copy=True).requires_grad_(x.requires_grad)",
)  # fmt: skip
_WRITES = (
    "x.add_(2)", "x.mul_(-1)", "x.zero_()", "x.fill_(3)", "x[0].fill_(4)", "x[..., :1].mul_(2)", "x.detach().add_(1)",
    "x.data.zero_()", "x.copy_(torch.ones_like(x))", "x.masked_fill_(x == 1, 5)", "x.view(-1)[::2].sub_(1)",
    "x.__setitem__((..., 0), 2)", "x.untyped_storage().fill_(0)", "torch.neg(x.clone(), out=x)", "x.conj_physical_()",
)  # fmt: skip
_TURNS = (
    "x.t_()", "x.squeeze_()", "x.unsqueeze_(0)", "x.transpose_(0, -1)", "x.resize_(x.numel() // 2)", "x.set_()",
    "x.resize_as_(x[:1])", "x.as_strided_((2,), (1,))", "x.swapdims_(0, -1)",
    "setattr(x, 'mark', (getattr(x, 'mark', None) or 0) + 1)", "x.detach_()", "x.requires_grad_()",
    "x.requires_grad_(False)", "give_data(x, x.detach().clone())", "setattr(x, 'requires_grad', True)",
)  # fmt: skip
_GRADIENTS = (
    "(x * x).sum().backward()", "x.backward(torch.ones_like(x))", "setattr(x, 'grad', None)", "x.retain_grad()",
    "setattr(x, 'grad', torch.ones_like(x))", "x.grad.add_(1)", "x.grad.zero_()", "(x[:1] * 2).sum().backward()",
    "setattr(x, 'grad', x)",
)  # fmt: skip
_OF_TWO = (
    "x.set_(y)", "give_data(x, y)", "torch.utils.swap_tensors(x, y)", "setattr(x, 'grad', y)",
    "x.set_(y.untyped_storage())", "x.set_(y.detach())", "x.zero_().resize_as_(y).fill_(2)", "give_data(x, y.clone())",
)  # fmt: skip
_WRITTEN_BY_ANOTHER = ("x.copy_(y)", "x.copy_(y.expand_as(x))", "x.data.copy_(y)")
#: Parts of calls that need a primitive of the bring-up gate.
_NEED = {"conjugate": ("x.conj()", "x.mH"), "grow_storage": ("x.numel() + 3", "resize_as_(y)")}
_TOGETHER = ("copy.deepcopy((x, y))", "reloaded((x, y))", "pickle.loads(pickle.dumps((x, y)))")


def _object_of(s: State, step: Step, what: str = "object", but: str = "") -> str:
    return step.pick(what, [name for name in s.objects if name != but])


def _call(s: State, step: Step, what: str, calls: tuple[str, ...]) -> str:
    """Pick one of these calls, except those that need a primitive that the bring-up gate found broken."""
    out = [part for primitive, parts in _NEED.items() if not works(s.kind, primitive) for part in parts]
    return step.pick(what, [call for call in calls if not any(part in call for part in out)])


def _new_name(s: State, name: str) -> str:
    s.objects.append(name)
    return name


@kind(OBJECTS, weight=4)
def make_object(s: State, step: Step) -> None:
    """Make a tensor on a device, and its twin."""
    shape, first, where = step.pick("shape", _OBJECT_SHAPES), step.pick("first", range(-3, 4)), device_of(s, step)
    made = step.pick("made", _MADE).format(shape=shape, first=first)
    s.write(f'both("{_new_name(s, f"o{step.number}")}", "", lambda D: {made}, {s.name(where)})')


@kind(OBJECTS, "make_object", weight=7)
def view_object(s: State, step: Step) -> None:
    """Make another tensor over the same memory, or get the tensor itself."""
    of = _object_of(s, step)
    view = _call(s, step, "view", _OBJECT_VIEWS)
    s.write(f'both("{_new_name(s, f"o{step.number}")}", "{of}", lambda x: {view})')


@kind(OBJECTS, "make_object", weight=4)
def copy_object(s: State, step: Step) -> None:
    """Make a tensor with memory of its own from another one."""
    of = _object_of(s, step)
    s.write(f'both("{_new_name(s, f"o{step.number}")}", "{of}", lambda x: {step.pick("copy", _COPIES)})')


@kind(OBJECTS, "make_object", weight=3)
def move_object(s: State, step: Step) -> None:
    """Copy a tensor to a device or to the host."""
    of, where = _object_of(s, step), step.pick("where", (*(s.name(index) for index in s.devices), '"cpu"'))
    way = step.pick("way", (*_MOVES, *(("fetched(x)",) if where == '"cpu"' else ())))
    call = f"lambda x, {'D' if 'D' in way else '_'}: {way}"
    s.write(f'both("{_new_name(s, f"o{step.number}")}", "{of}", {call}, {where})')


@kind(OBJECTS, "make_object", "view_object", weight=5)
def write_object(s: State, step: Step) -> None:
    """Write to a tensor."""
    s.write(f'both("", "{_object_of(s, step)}", lambda x: {step.pick("write", _WRITES)}, writes=True)')


@kind(OBJECTS, "make_object", "view_object")
def grow_object(s: State, step: Step) -> None:
    """Let a tensor have more elements than before, and write them all."""
    of = _object_of(s, step)
    call = _call(s, step, "growth", ("x.zero_().resize_(x.numel() + 3).fill_(1)",))
    s.write(f'both("", "{of}", lambda x: {call}, writes=True, grows=True)')


@kind(OBJECTS, "make_object", "view_object", weight=3)
def turn_object(s: State, step: Step) -> None:
    """Change the properties that a tensor reports."""
    s.write(f'both("", "{_object_of(s, step)}", lambda x: {step.pick("turn", _TURNS)})')


@kind(OBJECTS, "make_object", weight=4)
def gradient_of_object(s: State, step: Step) -> None:
    """Compute, change or drop a gradient."""
    s.write(f'both("", "{_object_of(s, step)}", lambda x: {step.pick("gradient", _GRADIENTS)})')


@kind(OBJECTS, "make_object", "make_object", weight=3)
def exchange_objects(s: State, step: Step) -> None:
    """Give a tensor the memory, the data or the place of another one."""
    one = _object_of(s, step)
    other, call = _object_of(s, step, "other", one), _call(s, step, "call", _OF_TWO)
    s.write(f'both("", "{one} {other}", lambda x, y: {call}{", writes=True, grows=True" if "fill_" in call else ""})')


@kind(OBJECTS, "make_object", "make_object", weight=3)
def write_from_object(s: State, step: Step) -> None:
    """Copy a tensor into another one, which may be on another device."""
    one = _object_of(s, step)
    other, call = _object_of(s, step, "other", one), step.pick("call", _WRITTEN_BY_ANOTHER)
    s.write(f'both("", "{one} {other}", lambda x, y: {call}, writes=True, across=True)')


@kind(OBJECTS, "make_object", "view_object")
def copy_together(s: State, step: Step) -> None:
    """Copy two tensors in one call. The copies share memory if the tensors do."""
    one = _object_of(s, step)
    other, call = _object_of(s, step, "other", one), step.pick("call", _TOGETHER)
    made = f"{_new_name(s, f'o{step.number}')} {_new_name(s, f'p{step.number}')}"
    s.write(f'both("{made}", "{one} {other}", lambda x, y: {call})')


@kind(OBJECTS, "make_object")
def drop_object(s: State, step: Step) -> None:
    """Drop a tensor. Those that share its memory keep it."""
    name = _object_of(s, step)
    s.objects.remove(name)
    s.write(f'objects.pop("{name}", None)')


@kind(OBJECTS, weight=2)
def in_mode(s: State, step: Step) -> None:
    """Begin a block with a mode of autograd."""
    s.open(f"with torch.{step.pick('mode', ('no_grad', 'inference_mode', 'enable_grad'))}():")


@kind(OBJECTS, weight=2)
def leave_mode(s: State, _: Step) -> None:
    """End the innermost block."""
    s.close(by_error=False)


@kind(OBJECTS)
def make_device_current(s: State, step: Step) -> None:
    """Make a device current, which need not be the device of the tensors."""
    s.thread.device = device_of(s, step)
    s.write(f"torch.accelerator.set_device_index({s.thread.device})")


def check_objects(s: State) -> None:
    """Check everything that all tensors report. Raises NotPossible if there are no tensors."""
    if not s.objects:
        raise NotPossible("objects")
    s.write("[check(name) for name in objects]")
