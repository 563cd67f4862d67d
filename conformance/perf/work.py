"""The work of a call: the bytes that it reads and writes, its operations, and the bytes that a fallback copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from conformance import torch_versions as tv
from conformance.backends import Capabilities
from conformance.corpus.model import TensorSlot
from conformance.inventory import overload_of, route_of
from conformance.perf.model import Work
from conformance.perf.sides import Side, leaves
from conformance.vocabulary import Route


def of_call(cpu: Side, device: Side, backend: Capabilities) -> Work:
    """Return the work of a call, by further calls on both sides. Each side must have been called before."""
    result = leaves(cpu())
    read, written = moved(cpu, result)
    copied, native, fallback = copies(device, backend)
    elements = max((t.numel() for t in (*cpu.tensors, *result)), default=0)
    return Work(elements, read, written, flops_of(cpu), copied, native, fallback)


def moved(call: Side, result: Sequence[torch.Tensor]) -> tuple[int, int]:
    """Return the least bytes that a call reads and writes: each argument and each new result once.

    An argument that is only written (``out=``) is not read. A call that writes no argument and whose results are all
    views of its arguments moves nothing.
    """
    pairs = [(s, t) for s, t in zip(call.sample.tensors, call.tensors, strict=True) if not s.same_as]
    of_arguments = set(tv.storage_ids(call.tensors))
    new = {id(t): t for t in result if tv.storage_id(t) not in of_arguments}.values()
    written = sum(_bytes(t) for s, t in pairs if s.written) + sum(map(_bytes, new))
    if not written and result:
        return 0, 0
    return sum(_bytes(t) for s, t in pairs if not _is_output(s)), written


def _is_output(slot: TensorSlot) -> bool:
    return slot.written and not slot.pool


def _bytes(tensor: torch.Tensor) -> int:
    return int(tensor.numel()) * int(tensor.element_size())


def flops_of(call: Callable[[], object]) -> int | None:
    """Return the floating-point operations of a call by torch's formulas, None if torch has none for the call."""
    with _Flops() as counter:
        call()
    return counter.flops if counter.flops and counter.knows_all else None


class _Flops(tv.WatchingMode):
    """A mode that adds up the operations of the operators inside of a call.

    ``FlopCounterMode`` does the same, and loads torch's compiler, which takes seconds in each process.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0
        self.knows_all = True

    def called(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        result = func(*args, **kwargs)
        formula = flop_registry.get(func.overloadpacket)
        if formula is not None:
            try:
                self.flops += int(formula(*args, **kwargs, out_val=result))
            except Exception:  # noqa: BLE001 - a formula may not fit each overload of its op: thnn_conv2d.out
                self.knows_all = False
        return result


def copies(call: Callable[[], object], backend: Capabilities) -> tuple[int, int | None, int | None]:
    """Make a call on the device. Return the bytes that fallbacks copy, and the native and fallback calls.

    The numbers of calls are None if the backend does not count them. The bytes are counted for the operators inside of
    the call that fall back, by the backend's counters; without counters, by their route.
    """
    before = backend.route_counters()
    with _Copies(backend) as seen:
        call()
    after = backend.route_counters()
    if before is None or after is None:
        return seen.bytes, None, None
    return seen.bytes, after[0] - before[0], after[1] - before[1]


class _Copies(tv.WatchingMode):
    """A mode that adds up the bytes that the fallback copies for each operator that falls back."""

    def __init__(self, backend: Capabilities) -> None:
        super().__init__()
        self.bytes = 0
        self._backend = backend

    def called(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        before = self._backend.route_counters()
        result = func(*args, **kwargs)
        if self._fell_back(func, before):
            given = self._on_device((*args, *kwargs.values()))
            names = [a for a in tv.schema_of(func).arguments if a.alias_info is not None and a.alias_info.is_write]
            written = self._on_device(_named(func, args, kwargs, {a.name for a in names}))
            new = {k: n for k, n in self._on_device([result]).items() if k not in given}
            self.bytes += sum(given.values()) + sum(written.values()) + sum(new.values())
        return result

    def _fell_back(self, func: Any, before: tuple[int, int] | None) -> bool:
        after = self._backend.route_counters()
        if before is None or after is None:
            name = overload_of(func)
            return bool(name) and route_of(name, self._backend.device) is Route.FALLBACK
        return after[1] > before[1]

    def _on_device(self, values: Iterable[Any]) -> dict[int, int]:
        """Return the bytes of each storage on the device."""
        tensors = [t for v in values for t in leaves(v) if t.device.type == self._backend.kind]
        return {tv.storage_id(t): t.untyped_storage().nbytes() for t in tensors}


def _named(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], names: set[str]) -> list[Any]:
    positional = [a.name for a in tv.schema_of(func).arguments if not a.kwarg_only]
    return [v for name, v in (*zip(positional, args, strict=False), *kwargs.items()) if name in names]
