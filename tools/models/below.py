"""The overloads that torch's kernels for all devices call, seen in the calls of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map

from conformance.inventory import overload_of
from conformance.models.model import Below
from conformance.torch_versions import WatchingMode, composite_kernel_of, without_modes

# A copy between tensors on meta does nothing. On other devices it ends in the overload that a backend registers.
_NOT_ON_META = {"copy_": ("_copy_from",)}


class Finder(WatchingMode):
    """A mode that also runs torch's kernel for all devices in each call that has one, and records the kernel's calls.

    One call of an overload is tried for each combination of the arguments' dtypes and numbers of dimensions.
    """

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[str, dict[str, None]] = {name: dict.fromkeys(inner) for name, inner in _NOT_ON_META.items()}
        self._tried: set[object] = set()

    @property
    def found(self) -> Below:
        """The overloads that each kernel calls, in the order of their first call."""
        return {name: tuple(inner) for name, inner in self._found.items()}

    def called(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Try the kernel with copies of the arguments, and make the call."""
        if overload_of(func):
            with without_modes(), torch.no_grad():
                self.look(func, args, kwargs)
        return func(*args, **kwargs)

    def look(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Record the calls of the kernel for all devices, if there is one and no call like this one was tried."""
        name, kernel = overload_of(func), composite_kernel_of(func)
        key = (name, _kinds((*args, *kwargs.values())))
        if kernel is None or name in _NOT_ON_META or key in self._tried:
            return
        self._tried.add(key)
        inside = _Inside(self, self._found.setdefault(name, {}))
        copied, named = tree_map(_copy, tuple(args)), tree_map(_copy, dict(kwargs))
        try:
            with inside:
                kernel(*copied, **named)
        except Exception:  # noqa: BLE001 - meta refuses what devices have kernels for, after the call is noted
            return


class _Inside(WatchingMode):
    """A mode that records the calls of one kernel, and the calls below each of them."""

    def __init__(self, finder: Finder, found: dict[str, None]) -> None:
        super().__init__()
        self._finder = finder
        self._found = found

    def called(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if name := overload_of(func):
            self._found[name] = None
            self._finder.look(func, args, kwargs)
        return func(*args, **kwargs)


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _kinds(value: Any) -> object:
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.dim(), value.device.type
    return tuple(map(_kinds, value[:2])) if isinstance(value, (list, tuple)) else None
