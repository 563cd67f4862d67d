"""The bring-up gate: the primitives that comparisons need, tried before anything else is judged.

No cell can be judged without a primitive that all comparisons need. If another primitive is broken, only the cells
that need it are not reached.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from conformance.backends import Capabilities
from conformance.judging import bits, views
from conformance.layouts import CONJ_DTYPES, CONTEXTS, DRAWN, GENERATED
from conformance.plan.case import Case
from conformance.scenarios.model import BROKEN_PRIMITIVES
from conformance.support.lines import error_line, first_line
from conformance.torch_versions import neg_view, storage_id
from conformance.vocabulary import CellId, Route

SIZES = (0, 1, 7, 64, 1000, 65_537)


def _bytes(n: int) -> torch.Tensor:
    """Return ``n`` bytes without a period that a wrong stride or offset would hide."""
    return (torch.arange(n, dtype=torch.int64) * 31 + torch.arange(n, dtype=torch.int64) // 256).to(torch.uint8)


def _same(back: torch.Tensor, sent: torch.Tensor, what: str) -> None:
    assert back.shape == sent.shape, f"{what}: their shape is {tuple(back.shape)}, not {tuple(sent.shape)}"
    for at in (back != sent).nonzero().flatten().tolist()[:1]:
        raise AssertionError(f"{what}, first byte {at}: {back[at]:#04x}, expected {sent[at]:#04x}")


def allocate(backend: Capabilities) -> None:
    """Memory of every size can be had, and lies on the device."""
    for n in SIZES:
        t = torch.empty(n, dtype=torch.uint8, device=backend.device)
        assert t.device == torch.device(backend.device), f"{n} bytes asked for on {backend.device} lie on {t.device}"
        assert t.numel() == n, f"{n} bytes asked for, {t.numel()} given"


def copy_bytes(backend: Capabilities) -> None:
    """Bytes sent to the device come back the same."""
    for n in SIZES:
        sent = _bytes(n)
        _same(sent.to(backend.device).cpu(), sent, f"{n} bytes came back changed")


def view_as_dtype(backend: Capabilities) -> None:
    """Bytes viewed as float32 and back are the same bytes."""
    sent = _bytes(64)
    seen = sent.to(backend.device).view(torch.float32)
    assert (seen.dtype, seen.numel()) == (torch.float32, 16), f"64 bytes seen as {seen.numel()} of {seen.dtype}"
    _same(seen.view(torch.uint8).cpu(), sent, "the bytes changed")


def as_strided(backend: Capabilities) -> None:
    """A view has the size, stride and offset asked for, and shares the storage."""
    base = _bytes(64).to(backend.device)
    seen = base.as_strided((3, 2), (10, 3), 5)
    got, asked = (tuple(seen.shape), seen.stride(), seen.storage_offset()), ((3, 2), (10, 3), 5)
    assert got == asked, f"size, stride, offset are {got}, expected {asked}"
    assert storage_id(seen) == storage_id(base), "the view has a storage of its own"


def synchronize(backend: Capabilities) -> None:
    """The backend's own synchronize returns."""
    backend.synchronize()


def fill(backend: Capabilities) -> None:
    """Memory that is filled holds what it was filled with, and nothing around it changes."""
    try:
        element = torch.ones(1, device=backend.device)
    except NotImplementedError:
        return  # the cells of the op report this
    assert element.cpu().item() == 1, f"memory filled with 1 holds {element.cpu().item()}"
    del element
    for damage in backend.verify_memory():
        raise AssertionError(damage)


def other_devices(backend: Capabilities) -> None:
    """Of several devices each gives its own memory, and takes copies from the others."""
    kind = torch.device(backend.device).type
    module: Any = getattr(torch, kind, None)
    allocated = getattr(module, "memory_allocated", None)
    sent = _bytes(1000)
    count = module.device_count() if module is not None and hasattr(module, "device_count") else 1
    for index in range(count) if count > 1 else ():
        device = torch.device(kind, index)
        before = allocated(index) if allocated else 0
        t = sent.to(backend.device).to(device)
        assert t.device == device, f"memory asked for on {device} lies on {t.device}"
        assert not allocated or allocated(index) > before, f"memory asked for on {device} is not counted there"
        _same(t.cpu(), sent, f"bytes came back changed from {device}")


def adapter(backend: Capabilities) -> None:
    """What the backend's adapter offers answers as the suite asks."""
    counters = backend.route_counters()
    two = counters is None or (len(counters) == 2 and all(isinstance(n, int) for n in counters))
    assert two, f"route_counters gave {counters!r}, expected two numbers of calls: native, fallback"
    if not backend.bare:
        _check_counts(backend)
    _check_fill(backend)
    damage = backend.verify_memory()
    assert not damage, f"verify_memory finds damage before any op was called: {'; '.join(map(str, damage))}"


def count_memory(backend: Capabilities) -> None:
    """Without an adapter, torch's own modules count the memory in use."""
    if backend.bare:
        _check_counts(backend)


def _check_counts(backend: Capabilities) -> None:
    """Assert that the backend gives the memory in use as integers."""
    for name, live in zip(("live_blocks", "live_bytes"), backend.live_memory(), strict=True):
        assert isinstance(live, int), f"memory_stats gave {live!r} {name}, expected a number"


def _check_fill(backend: Capabilities) -> None:
    """Assert that fresh memory holds the byte with which the adapter was asked to fill it."""
    with backend.fresh_memory(0xA5):
        fresh = torch.empty(64, dtype=torch.uint8, device=backend.device).cpu()
    filled = "fill_fresh" in backend.missing or bool((fresh == 0xA5).all())
    assert filled, f"fill_fresh(0xA5) leaves {fresh[0]:#04x} in fresh memory"


def permute(backend: Capabilities) -> None:
    """A permuted tensor has the permuted values."""
    values = torch.arange(6.0)
    _equal(values.to(backend.device).view(2, 3).permute(1, 0).cpu(), values.view(2, 3).permute(1, 0))


def expand(backend: Capabilities) -> None:
    """An expanded tensor can be made."""
    size = tuple(torch.ones(1, 3).to(backend.device).expand(4, 3).shape)
    assert size == (4, 3), f"the size is {size}, expected (4, 3)"


def conjugate(backend: Capabilities) -> None:
    """A tensor with the conjugate bit resolves to the conjugate values."""
    values = torch.tensor([1 + 2j, -3 - 0.5j])
    _equal(torch.conj(values.to(backend.device)).resolve_conj().cpu(), torch.conj(values).resolve_conj())


def negative(backend: Capabilities) -> None:
    """A tensor with the negative bit resolves to the negated values."""
    values = torch.tensor([1.0, -2.5, 4.0])
    _equal(neg_view(values.to(backend.device)).resolve_neg().cpu(), -values)


def copy_expanded(backend: Capabilities) -> None:
    """A copy of an expanded tensor repeats its elements."""
    values = torch.tensor([1.0, 2.0, 3.0])
    copied = torch.empty((4, 3), device=backend.device).copy_(values.to(backend.device).expand(4, 3))
    _equal(copied.cpu(), values.expand(4, 3))


def grow_storage(backend: Capabilities) -> None:
    """A tensor that is resized to more elements keeps those that it had."""
    grown = torch.tensor([1.0, 2.0]).to(backend.device).resize_(1000)
    assert tuple(grown.shape) == (1000,), f"the size is {tuple(grown.shape)}, expected (1000,)"
    _equal(grown.cpu()[:2], torch.tensor([1.0, 2.0]))


def _equal(got: torch.Tensor, expected: torch.Tensor) -> None:
    assert torch.equal(got, expected), f"the values are {got.tolist()}, expected {expected.tolist()}"


def _copies_of(name: str) -> Callable[[Capabilities], None]:
    """Return the primitive that copies elements of a dtype to the device and back."""

    def copy(backend: Capabilities) -> None:
        dtype = views.torch_dtype(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of complex32
            sent = _elements(dtype)
        try:
            back = sent.to(backend.device).cpu()
        except Exception:  # noqa: BLE001  # the device lacks the dtype, which its cells report
            return
        assert back.dtype == dtype, f"elements of {name} came back as {back.dtype}"
        same = bits.same_exactly(sent, back)
        for at in (~same).nonzero().flatten().tolist()[:1]:
            raise AssertionError(f"element {at} came back as {back[at].item()}, expected {sent[at].item()}")

    copy.__name__ = views.copies_of(name)
    copy.__doc__ = f"Elements of {name} sent to the device come back the same."
    return copy


def _elements(dtype: torch.dtype) -> torch.Tensor:
    """Return elements of a dtype, all different unless it is bool. The two parts of a complex element differ."""
    if dtype is torch.bool:
        return torch.tensor([True, False, False, True])
    values = torch.tensor([1.0, 2.0, 4.0, 8.0])
    return torch.complex(values, values * -0.5).to(dtype) if dtype.is_complex else values.to(dtype)


# (cell, route, broken primitives) -> whether the cell needs the primitive.
Needs = Callable[[CellId, str, Collection[str]], bool]


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive, and the cells that need it. Without ``needs``, all comparisons need it."""

    run: Callable[[Capabilities], None]
    needs: Needs | None = None

    @property
    def name(self) -> str:
        return self.run.__name__


def _no_cell(cell: CellId, route: str, broken: Collection[str]) -> bool:  # noqa: ARG001  # the signature of all
    return False


# Ops that copy or resolve. They are judged even if all other ops cannot be, because they are the cause.
_COPYING = frozenset({
    "clone", "copy_", "_to_copy", "_conj", "_conj_physical", "conj_physical", "conj_physical_", "resolve_conj",
    "resolve_neg", "_neg_view", "contiguous", "_copy_from",
})  # fmt: skip


def copies(cell: CellId) -> bool:
    """Return whether a cell's op copies or resolves."""
    return cell.operator in _COPYING


def _in_layout(layout: str) -> Needs:
    """Return the rule that cells in this layout need a primitive, except those of ops that copy."""
    return lambda cell, *_: cell.layout == layout and not copies(cell)


def _of_dtype(dtype: str) -> Needs:
    """Return the rule that cells of this dtype need a primitive, except those of ops that copy."""
    return lambda cell, *_: cell.dtype == dtype and not copies(cell)


def _as_strided(cell: CellId, route: str, broken: Collection[str]) -> bool:  # noqa: ARG001
    """Return whether view, permute and expand cannot make the arguments of a cell. Scenarios make their own tensors."""
    layout = "contiguous" if cell.layout in CONTEXTS else GENERATED.get(cell.layout, ("", cell.layout))[1]
    return not cell.is_scenario and layout not in views.MADE_BY_OPS


def _instead_of_as_strided(*layouts: str) -> Needs:
    return lambda cell, _, broken: "as_strided" in broken and cell.layout in layouts


def _copy_expanded(cell: CellId, route: str, broken: Collection[str]) -> bool:
    """Return whether a cell copies an expanded argument. A native kernel reads it, others copy it."""
    return route != Route.NATIVE and _in_layout("expanded")(cell, route, broken)


# In the order in which they are tried.
GATE: tuple[Primitive, ...] = (
    Primitive(allocate),
    Primitive(copy_bytes),
    *(Primitive(_copies_of(dtype), _of_dtype(dtype)) for dtype in views.known_dtypes()),
    Primitive(view_as_dtype, _no_cell),  # arguments are then sent to the device in their own dtype
    Primitive(as_strided, _as_strided),
    Primitive(permute, _instead_of_as_strided("transposed", "channels_last")),
    Primitive(expand, _instead_of_as_strided("expanded")),
    Primitive(synchronize, _no_cell),  # errors of queued work may then be charged to later cells
    Primitive(fill, _no_cell),  # errors that a device reports at its next kernel may then be charged to later cells
    Primitive(conjugate, _in_layout("conj")),
    Primitive(negative, _in_layout("neg")),
    Primitive(copy_expanded, _copy_expanded),
    Primitive(grow_storage, _no_cell),
    Primitive(other_devices, _no_cell),
    Primitive(count_memory, _no_cell),  # leaks are then not looked for
    Primitive(adapter),
)


def names() -> list[str]:
    """Return the name and the requirement of each primitive, in the order in which they are tried."""
    return [f"{primitive.name} ({(primitive.run.__doc__ or '').strip().rstrip('.')})" for primitive in GATE]


def blocks(backend: Capabilities, index: int) -> bool:
    """Return whether no cell can be judged without primitive ``index``."""
    if GATE[index].run is adapter:
        return not backend.bare  # a bare device is judged even if torch's modules answer wrongly
    return GATE[index].needs is None


def needed(cell: CellId, route: str, broken: Collection[str]) -> str:
    """Return the first of these broken primitives that the cell needs, "" if it needs none."""
    needs = {primitive.name: primitive.needs for primitive in GATE}
    return next((name for name in broken if (needs_it := needs[name]) and needs_it(cell, route, broken)), "")


# The bit of an argument that each of these primitives resolves.
_RESOLVED = {"conjugate": "conj", "negative": "neg"}


def needed_by(case: Case, broken: Iterable[str]) -> str:
    """Return the first of these broken primitives that an argument of the case needs, "" if none does.

    In a layout whose strides are drawn, some cases of a cell have an argument with the conjugate bit, others do not.
    """
    set_bits = {placement.bit for placement in case.placements} - {""}
    return next((name for name in broken if _RESOLVED.get(name) in set_bits and not copies(case.cell)), "")


def needed_by_each(cell: CellId, cases: Callable[[CellId], Iterable[Case]], broken: Collection[str]) -> str:
    """Return the first of these broken primitives if each of the cell's cases needs one, else "".

    ``cases`` makes the cases of a cell. It is called only if arguments of the cell may have the conjugate bit.
    """
    if _RESOLVED.keys().isdisjoint(broken) or cell.layout not in DRAWN or cell.dtype not in CONJ_DTYPES:
        return ""
    needs = [needed_by(case, broken) for case in cases(cell)]
    return needs[0] if needs and all(needs) else ""


def without(backend: Capabilities, broken: Iterable[str]) -> None:
    """Stop using these primitives in this process."""
    names = frozenset(broken)
    views.do_without(names)
    BROKEN_PRIMITIVES[backend.kind] = names
    uncounted = bool(names & {"adapter", "count_memory"})
    backend.without([*(names & {"synchronize", "fill"}), *(["memory_stats"] if uncounted else [])])


def failing(backend: Capabilities, index: int) -> str:
    """Return the error of primitive ``index``, "" if it works. Run this in a process that may crash."""
    try:
        GATE[index].run(backend)
    except Exception as e:  # noqa: BLE001  # whatever a broken primitive raises is the finding
        return f"{names()[index]}: {_said(e)}"
    return ""


def _said(e: Exception) -> str:
    """Return the first line of an exception's message, with the exception's type unless the gate itself raised it."""
    is_own = type(e) is AssertionError
    return (first_line(str(e)) if is_own else "") or error_line(e)
