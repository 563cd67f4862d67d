"""The second part of each standalone script: it calls an op on CPU and on the device, and compares.

Scripts contain a copy of the code below this docstring, so it may use only torch.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import torch


class Bound(NamedTuple):
    """The allowed distance from float64: ``multiple`` x CPU's own distance + ``ulps`` x ``eps`` x scale.

    The scale is the element's magnitude, at least ``magnitude``, and at least ``growth`` x the largest magnitude over
    the dimensions from ``first_dim`` on. With ``neighbours``, this largest magnitude counts as at most ``neighbours`` x
    the element's own. ``unit`` x the element's magnitude replaces the second term if it is larger. ``directed``: in
    addition, elements may not all be rounded in one direction.
    """

    exact: bool  # nothing at all
    multiple: float = 0.0
    ulps: float = 0.0
    eps: float = 0.0
    magnitude: float = 0.0
    growth: float = 0.0
    signed_zeros: bool = False  # -0.0 differs from 0.0
    neighbours: float = 0.0
    unit: float = 0.0
    first_dim: int = 0
    directed: bool = False


def main(
    call: Callable[..., Any], device: str, written: list[str], bound: "Bound | None", contained: bool, runs: int = 1,
    wider: bool = False, on_device: Sequence[int] = (),
) -> None:  # fmt: skip
    """Exit with 1 if the device differs from CPU.

    ``call`` returns the result or the error, and for each argument the storage, the tensor, and the bytes before the
    call. ``bound``: None if values are not compared. ``contained``: call in a child process first, which may die.
    ``runs``: number of processes that make the calls, until one differs; used only if ``contained``. ``wider``: CPU
    lacks the op in a dtype of the arguments, and computes in a wider dtype. ``on_device``: positions of the results
    that may not be left on the host.
    """
    for _ in range(runs - 1 if contained else 0):
        child = os.fork()
        if child == 0:
            break  # this process is one of the runs
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            leave(1)
    ended = end(call, device) if contained else ""
    found = [f"the process {ended}"] if ended else list(differences(call, device, written, bound, wider, on_device))
    print("\n".join(f"DIFFERS: {line}" for line in found) or "the device does as CPU does")
    leave(1 if found else 0)


def leave(code: int) -> NoReturn:
    """End the process at once: threads that die while Python ends could change the code."""
    sys.stdout.flush()
    os._exit(code)


def end(call: Callable[..., Any], device: str) -> str:
    """Return how a process that calls the op on the device ends, "" if it survives."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        with contextlib.suppress(Exception):  # raised again in this process
            call(device)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGALRM:
        return "did not return within 60 s"
    return (f"died: {signal.Signals(-code).name}" if code < 0 else f"exited with {code}") if code else ""


def differences(
    call: Callable[..., Any], device: str, written: list[str], bound: "Bound | None", wider: bool = False,
    on_device: Sequence[int] = (),
) -> Iterator[str]:  # fmt: skip
    """Make the call on CPU and on the device, and yield each difference. ``written``: the arguments that it may write.

    With a bound that is not exact, CPU is also called in double precision, and both sides are compared with that.
    ``wider``: CPU is called in a wider dtype, and its results are rounded. ``on_device``: see :func:`main`.
    """
    (theirs, before), (ours, after) = call("cpu", widen_once) if wider else call("cpu"), call(device)
    if wider and not isinstance(theirs, Exception) and not isinstance(ours, Exception):
        theirs = [rounded(a, b) for a, b in zip(listed(theirs), listed(ours))]
        before = {name: (base, rounded(t, after[name][1]), old) for name, (base, t, old) in before.items()}
    show("cpu", theirs)
    show(device, ours)
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        if type(theirs) is not type(ours):
            yield f"the device raised {ours!r}" if isinstance(ours, Exception) else "the device raised nothing"
        return
    if len(listed(theirs)) != len(listed(ours)):
        yield f"{len(listed(ours))} results on the device, {len(listed(theirs))} on CPU"
        return
    yield from left_on_host(ours, device, on_device)
    true, truth = (theirs, before) if bound is None or bound.exact else call("cpu", widen)
    if isinstance(true, Exception):
        true, truth = theirs, before
    for n, (a, b, t) in enumerate(zip(listed(theirs), listed(ours), listed(true))):
        yield from compare(f"result[{n}]", a, b, t, bound)
    if not wider and homes(theirs, before) != homes(ours, after):
        yield f"the results share the storages of {homes(ours, after)} on the device, {homes(theirs, before)} on CPU"
    for name in before:
        if name in written or is_written(name, before, written):
            yield from compare(name, before[name][1], after[name][1], truth[name][1], bound)
        yield from outside(name, before[name], after[name], name in written)


def left_on_host(results: Any, device: str, on_device: Sequence[int]) -> Iterator[str]:
    """Yield a line for each result at the positions ``on_device`` that is on CPU, if ``device`` is another one."""
    for n, result in enumerate(listed(results)):
        left = isinstance(result, torch.Tensor) and result.is_cpu and torch.device(device).type != "cpu"
        if n in on_device and left:
            yield f"result[{n}] is on the host, not on the device"


def is_written(name: str, arguments: dict[str, Any], written: list[str]) -> bool:
    """Return whether CPU wrote an argument that shares its storage with no ``written`` argument."""
    base, _, before = arguments[name]
    marked = any(arguments[other][0] is base for other in written if other in arguments)
    return not marked and base.shape == before.shape and not torch.equal(base, before)


def show(side: str, result: Any) -> None:
    """Print the results of one side."""
    for r in listed(result):
        print(f"{side}: {what(r)}" + (f"\n{on_cpu(r)}" if isinstance(r, torch.Tensor) else ""))


def compare(name: str, cpu: Any, device: Any, true: Any, bound: "Bound | None") -> Iterator[str]:
    """Yield how a result, or an argument after the call, differs. ``true``: CPU's value in double precision."""
    if what(cpu) != what(device):
        yield f"{name} is {what(device)} on the device, {what(cpu)} on CPU"
    elif bound and isinstance(cpu, torch.Tensor) and cpu.layout == torch.strided:
        cpu, here, true = stored(cpu), stored(on_cpu(device)), stored(true)
        found = wrong(cpu, here, true if isinstance(true, torch.Tensor) and true.shape == cpu.shape else cpu, bound)
        for index in map(tuple, found.nonzero().tolist()[:1]):
            values = f"device {here[index].item()}, CPU {cpu[index].item()}"
            yield f"{name}: {int(found.sum())} of {cpu.numel()} elements differ, first at {list(index)}: {values}"
        if bound.directed and isinstance(true, torch.Tensor) and one_sided(here, true):
            yield f"{name}: all elements are rounded in one direction"


def stored(t: Any) -> Any:
    """Return bools as bytes, so that a true that is stored as another byte than CPU's 1 differs."""
    return t.view(torch.uint8) if isinstance(t, torch.Tensor) and t.dtype == torch.bool else t


def wrong(cpu: torch.Tensor, device: torch.Tensor, true: torch.Tensor, bound: Bound) -> torch.Tensor:
    """Return which elements of the device are too far from ``true``, the result in double precision."""
    same = (cpu == device) | ((cpu != cpu) & (device != device))
    if bound.signed_zeros and cpu.is_floating_point():
        same &= (torch.signbit(cpu) == torch.signbit(device)) | (cpu != cpu)
    if bound.exact or not (cpu.is_floating_point() or cpu.is_complex()):
        return ~same
    negative = torch.signbit(torch.zeros(()) if cpu.is_complex() else cpu)
    other_zero = (cpu == 0) & (device == 0) & (true == 0) & (not cpu.is_complex() and bound.signed_zeros)
    other_zero &= (negative == torch.signbit(true.real)) & (negative != torch.signbit(device.real))
    rounded = true.to(cpu.dtype)
    same |= (rounded == device) | ((rounded != rounded) & (device != device))
    most, widest = torch.finfo(cpu.dtype).max, cpu.dtype in (torch.float64, torch.complex128)
    cpu, device, true = widen(cpu), widen(device), widen(true)
    true = torch.where(cpu.isfinite() & ~true.isfinite(), cpu, true)
    size, own = finite(true.abs()), finite((cpu - true).abs())
    together = tuple(range(size.dim()))[bound.first_dim :]
    others = size.amax(together, keepdim=True).expand_as(size) if size.numel() and together else size
    others = torch.minimum(others, bound.neighbours * size) if bound.neighbours else others
    scale = torch.maximum(size, bound.growth * others).clamp_min(bound.magnitude)
    rounding = torch.maximum(bound.unit * size, bound.ulps * bound.eps * scale)
    allowed = bound.multiple * own + rounding
    near = (device - true).abs() <= allowed
    if device.is_complex():
        near |= parts_agree(device, true, widen(rounded), allowed, max(bound.unit, bound.ulps * bound.eps))
    return other_zero | ~same & ~near & ~overflowed(cpu, device, true, most, widest, sums=bound.growth > 0)


def one_sided(device: torch.Tensor, true: torch.Tensor) -> bool:
    """Return whether the device's elements lie on one side of ``true``, many of them by more than half a unit."""
    if device.shape != true.shape or not device.is_floating_point():
        return False
    info, here = torch.finfo(device.dtype), widen(device)
    rounded = (true != widen(true.to(device.dtype))) & true.isfinite() & here.isfinite() & (true.abs() >= info.tiny)
    off = ((here - true) / (info.eps * 2 ** true.abs().log2().floor()))[rounded]
    sides = (sign * out for sign in (1, -1) for out in (off, off * true[rounded].sgn()))
    return any(float((s > 0).double().mean()) >= 0.98 and float((s > 0.55).double().mean()) >= 0.3 for s in sides)


def parts_agree(
    device: torch.Tensor, true: torch.Tensor, rounded: torch.Tensor, allowed: torch.Tensor, unit: float
) -> torch.Tensor:
    """Return where a complex number is infinite, and each part is near, or equal to the part that is rounded."""
    parts, wanted, exact = map(torch.view_as_real, (device, true, rounded))
    most = torch.where(true.isfinite().unsqueeze(-1), allowed.unsqueeze(-1), unit * wanted.abs())
    return (((parts - wanted).abs() <= most) | (parts == exact)).all(-1) & device.isinf()


def overflowed(
    cpu: torch.Tensor, device: torch.Tensor, true: torch.Tensor, most: float, widest: bool, sums: bool
) -> torch.Tensor:
    """Return where both sides may be right although they are not both finite. ``most``: the dtype's largest number."""
    lost = (cpu.isnan() & device.isinf()) | true.isfinite() | widest if sums else true.abs() <= most
    lost &= ~cpu.isfinite() & ~device.isfinite()
    least = most * (torch.finfo(torch.float64).eps if sums else 0.5)
    edge = (torch.minimum(cpu.abs(), device.abs()) >= least) & (torch.sgn(cpu) == torch.sgn(device))
    return lost | (edge & (cpu.isinf() ^ device.isinf()) & widest)


def finite(t: torch.Tensor) -> torch.Tensor:
    """Return the numbers with zeros in place of infinities and NaN, so that these allow no distance."""
    return torch.where(t.isfinite(), t, torch.zeros_like(t))


def outside(name: str, cpu: Any, device: Any, written: bool) -> Iterator[str]:
    """Yield a line if bytes of a storage changed that no written tensor reaches."""
    (base, tensor, before), after = cpu, device[0].cpu()
    if not before.shape == after.shape == base.shape:
        return
    reached = torch.zeros_like(before)
    if written and tensor.numel():
        item = tensor.element_size()
        last = tensor.storage_offset() + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
        if (last + 1) * item > reached.numel():
            return  # the call gave the argument another storage
        stride = (*(s * item for s in tensor.stride()), 1)
        reached.as_strided((*tensor.shape, item), stride, tensor.storage_offset() * item).fill_(1)
    changed = ((after != before) & (after != base) & (reached == 0)).nonzero().flatten().tolist()
    if changed:
        yield f"{len(changed)} bytes of the storage of {name} changed that the call must not write, first {changed[0]}"


def homes(result: Any, arguments: dict[str, Any]) -> list[Any]:
    """Return for each result the name of the argument whose storage it shares, or None."""
    names = {base.untyped_storage()._cdata: name for name, (base, *_) in arguments.items() if base.numel()}  # noqa: SLF001
    tensors = [t for t in listed(result) if isinstance(t, torch.Tensor) and t.layout == torch.strided]
    return [names.get(t.untyped_storage()._cdata) for t in tensors]  # noqa: SLF001


def listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def what(t: Any) -> str:
    """Return the dtype, size, stride and offset of a tensor, or the ``repr`` of any other result."""
    if not isinstance(t, torch.Tensor):
        return repr(t)
    if t.layout != torch.strided:
        return f"{t.dtype} {t.layout} size {tuple(t.shape)}"
    where = f" stride {t.stride()} offset {t.storage_offset()}" if t.numel() else ""
    zero = " that stands for zeros, without memory" if t._is_zerotensor() else ""  # noqa: SLF001
    return f"{t.dtype} size {tuple(t.shape)}{where}{zero}"


def on_cpu(t: torch.Tensor) -> torch.Tensor:
    """Return the tensor on CPU by a copy of its whole storage, not by a strided copy."""
    if t.device.type == "cpu" or t.layout != torch.strided:
        return t.cpu()
    conj, neg = t.is_conj(), t.is_neg()
    t = torch.conj(t) if conj else t
    t = torch._neg_view(t) if neg else t  # noqa: SLF001
    size, stride, offset = t.shape, t.stride(), t.storage_offset()
    t = t.as_strided((t.untyped_storage().nbytes() // t.element_size(),), (1,), 0).cpu()
    t = t.as_strided(size, stride, offset)
    t = torch.conj(t) if conj else t
    return torch._neg_view(t) if neg else t  # noqa: SLF001


def widen(t: torch.Tensor) -> torch.Tensor:
    t = t.resolve_conj().resolve_neg()
    return t.to(torch.complex128 if t.is_complex() else torch.float64) if t.is_floating_point() or t.is_complex() else t


def widen_once(t: torch.Tensor) -> torch.Tensor:
    """Return a tensor of a half precision in the wider dtype in which CPU computes instead."""
    halves = {torch.complex32: torch.complex64, torch.float16: torch.float32, torch.bfloat16: torch.float32}
    return t.to(halves.get(t.dtype, t.dtype))


def rounded(wide: Any, narrow: Any) -> Any:
    """Return a result of a call in a wider dtype, rounded to the dtype of the device's result."""
    return wide.to(narrow.dtype) if isinstance(wide, torch.Tensor) and isinstance(narrow, torch.Tensor) else wide
