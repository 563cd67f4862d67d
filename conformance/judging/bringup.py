"""The bring-up gate: the primitives that the twins stand on, tried before anything else is judged."""

from __future__ import annotations

from collections.abc import Callable

import torch

from conformance.backends import Capabilities
from conformance.torch_versions import storage_id

SIZES = (0, 1, 7, 64, 1000, 65_537)


def _bytes(n: int) -> torch.Tensor:
    """``n`` bytes without a period that a wrong stride or offset would hide."""
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


def other_devices(backend: Capabilities) -> None:
    """Of several devices each gives its own memory, and takes copies from the others."""
    kind = torch.device(backend.device).type
    module = getattr(torch, kind)
    allocated = getattr(module, "memory_allocated", None)
    sent = _bytes(1000)
    count = module.device_count()
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
    for name, live in zip(("live_blocks", "live_bytes"), backend.live_memory(), strict=True):
        assert isinstance(live, int), f"memory_stats gave {live!r} {name}, expected a number"
    _check_fill(backend)
    damage = backend.verify_memory()
    assert not damage, f"verify_memory finds damage before any op was called: {'; '.join(map(str, damage))}"


def _check_fill(backend: Capabilities) -> None:
    """Fresh memory holds what the adapter is told to fill it with."""
    with backend.fresh_memory(0xA5):
        fresh = torch.empty(64, dtype=torch.uint8, device=backend.device).cpu()
    filled = "fill_fresh" in backend.missing or bool((fresh == 0xA5).all())
    assert filled, f"fill_fresh(0xA5) leaves {fresh[0]:#04x} in fresh memory"


GATE: tuple[Callable[[Capabilities], None], ...] = (
    allocate,
    copy_bytes,
    view_as_dtype,
    as_strided,
    synchronize,
    other_devices,
    adapter,
)


def names() -> list[str]:
    """What the primitives are called, and what each is to do, in the order in which they are tried."""
    return [f"{primitive.__name__} ({(primitive.__doc__ or '').strip().rstrip('.')})" for primitive in GATE]


def failing(backend: Capabilities, begin: Callable[[int], None] = lambda _: None) -> str:
    """What is wrong with the first primitive that fails; "" when all hold. To be run where a crash can be survived.

    ``begin`` is told the index of each before it is tried.
    """
    for index, primitive in enumerate(GATE):
        begin(index)
        try:
            primitive(backend)
        except Exception as e:  # noqa: BLE001  # whatever a broken primitive raises is the finding
            return f"{names()[index]}: {_said(e)}"
    return ""


def _said(e: Exception) -> str:
    """The first line of what an exception says, and its type unless the gate itself raised it."""
    first = next(iter(str(e).strip().splitlines()), "")
    return first if first and type(e) is AssertionError else f"{type(e).__name__}: {first}".removesuffix(": ")
