"""Equal arguments for several runs of a graph, and everything that a run can change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from conformance.torch_versions import storage_id
from conformance.torch_versions.compilers import leaves_of


def copies(args: Sequence[Any]) -> list[Any]:
    """Return copies of arguments. Strided copies share storages as the arguments do, with equal strides and offsets.

    A copy of a tensor that requires a gradient is a leaf.
    """
    storages: dict[int, torch.UntypedStorage] = {}
    return [_copy(a, storages) if isinstance(a, torch.Tensor) else a for a in args]


def _copy(t: torch.Tensor, storages: dict[int, torch.UntypedStorage]) -> torch.Tensor:
    plain = type(t) in (torch.Tensor, torch.nn.Parameter) and t.layout == torch.strided
    with torch.no_grad():
        if not plain or t.is_conj() or t.is_neg() or t.device.type == "meta":
            return t.detach().clone().requires_grad_(t.requires_grad)
        key = storage_id(t)
        if key not in storages:
            storages[key] = t.untyped_storage().clone()
        made = torch.empty(0, dtype=t.dtype, device=t.device)
        made.set_(storages[key], t.storage_offset(), t.shape, t.stride())
    return made.requires_grad_(t.requires_grad)


@dataclass(frozen=True)
class Outcome:
    """The named values after a run, or the error that it raised, and in which phase."""

    names: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    raised: BaseException | None = None
    phase: str = "forward"


def outcome(call: Callable[..., Any], args: Sequence[Any], told: Callable[[str], None] = lambda _: None) -> Outcome:
    """Call with arguments that the call may change. Return the results, the arguments afterwards, and the gradients.

    ``told`` is called with each phase before it begins. The gradients are those of a weighted sum of all results.
    """
    told("forward")
    try:
        results = leaves_of(call(*args))
        named = [(f"result {i}", r) for i, r in enumerate(results)]
        named += [(f"argument {i} afterwards", a) for i, a in enumerate(args) if isinstance(a, torch.Tensor)]
        kept = [(name, value.detach().clone() if isinstance(value, torch.Tensor) else value) for name, value in named]
    except Exception as e:  # noqa: BLE001 - compared
        return Outcome(raised=e)
    told("backward")
    try:
        kept += gradients(results, args)
    except Exception as e:  # noqa: BLE001 - compared
        return Outcome(raised=e, phase="backward")
    return Outcome(tuple(name for name, _ in kept), tuple(value for _, value in kept))


def spoil_free_memory(values: Sequence[Any]) -> None:
    """Fill memory of the sizes of these values and free it, so that elements that code never writes are not right."""
    kept = []
    for value in values:
        if isinstance(value, torch.Tensor) and value.layout == torch.strided and value.device.type != "meta":
            kept += [torch.full_like(value, _unlikely(value.dtype)) for _ in range(2)]


def _unlikely(dtype: torch.dtype) -> float | int:
    if dtype.is_floating_point or dtype.is_complex:
        return float("nan")
    return 1 if dtype == torch.bool else torch.iinfo(dtype).max


def gradients(results: Sequence[Any], args: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the named gradients of arguments that require them; a gradient is None if no result depends on it."""
    tensors = [r for r in results if isinstance(r, torch.Tensor)]
    ends = [r for r in tensors if r.requires_grad and (r.is_floating_point() or r.is_complex())]
    leaves = [(i, a) for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.requires_grad and a.is_leaf]
    if not ends or not leaves or not torch.is_grad_enabled():
        return []
    weights = [torch.linspace(1, 2, r.numel()).view(r.shape).to(r.device, r.dtype) for r in ends]
    found = torch.autograd.grad(ends, [a for _, a in leaves], weights, allow_unused=True)
    return [(f"gradient of argument {i}", g) for (i, _), g in zip(leaves, found)]


class RandomState:
    """The random state of CPU and of the devices of some tensors."""

    def __init__(self, args: Sequence[Any]) -> None:
        kinds = {a.device.type for a in args if isinstance(a, torch.Tensor)} - {"cpu", "meta"}
        modules: list[Any] = [getattr(torch, kind, None) for kind in sorted(kinds)]
        self._modules = [m for m in modules if hasattr(m, "get_rng_state")]
        self._cpu = torch.get_rng_state()
        self._states = [m.get_rng_state() for m in self._modules]

    def restore(self) -> None:
        """Restore the state."""
        torch.set_rng_state(self._cpu)
        for module, state in zip(self._modules, self._states):
            module.set_rng_state(state)

    @property
    def moved(self) -> bool:
        """Whether random numbers have been drawn since this object was made."""
        now = [torch.get_rng_state(), *(m.get_rng_state() for m in self._modules)]
        return not all(torch.equal(a, b) for a, b in zip(now, [self._cpu, *self._states]))


def in_float64(graph: torch.fx.GraphModule, args: Sequence[Any]) -> Sequence[Any] | None:
    """Return the values of :func:`outcome` in float64, None if the graph raises in float64."""
    found = outcome(graph, [_wide(a) for a in copies(args)])
    return None if found.raised else found.values


def _wide(a: Any) -> Any:
    if not isinstance(a, torch.Tensor) or not (a.is_floating_point() or a.is_complex()):
        return a
    wide = torch.complex128 if a.is_complex() else torch.float64
    return a.detach().to(wide).requires_grad_(a.requires_grad)
