"""Probes of a backend's registrations. Each probe returns what is missing, "" if nothing is missing.

Each probe runs in a process of its own. An exception is a finding, too: its text, and the names of a
:class:`LackingError`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points, packages_distributions
from typing import Any

import torch

from conformance import torch_versions
from conformance.backends import Capabilities
from conformance.inventory import route_of
from conformance.vocabulary import Route

Probe = Callable[[Capabilities], str]

# The ops that every tensor on a device needs, and for which torch has no kernel of its own.
MINIMAL = (
    "empty.memory_format", "empty_strided", "as_strided", "view", "resize_", "_copy_from", "_copy_from_and_resize",
    "_local_scalar_dense", "set_.source_Storage", "set_.source_Storage_storage_offset",
)  # fmt: skip
MODULE_FUNCTIONS = ("is_available", "device_count", "current_device", "set_device", "synchronize")
SEEDING_FUNCTIONS = ("_is_in_bad_fork", "manual_seed_all", "get_rng_state", "set_rng_state")


class LackingError(Exception):
    """Some of the functions or kernels of a registration are missing."""

    def __init__(self, text: str, names: Iterable[str]) -> None:
        super().__init__(text)
        self.names = tuple(names)


def _module(backend: Capabilities) -> Any:
    return getattr(torch, backend.kind, None)


def _require(owner: Any, names: Iterable[str], prefix: str) -> None:
    """Raise LackingError if ``owner`` lacks one of the names."""
    missing = [name for name in names if not hasattr(owner, name)]
    if missing:
        raise LackingError(f"there is no {', '.join(f'{prefix}.{name}' for name in missing)}", missing)


def device_name(backend: Capabilities) -> str:
    known = torch_versions.privateuse1_name()
    if known == "privateuseone":
        return "it has no name of its own"
    return "" if known == backend.kind else f"PrivateUse1 is called {known!r}, not {backend.kind!r}"


def device_module(backend: Capabilities) -> str:
    _require(torch, [backend.kind], "torch")
    return ""


def module_functions(backend: Capabilities) -> str:
    _require(_module(backend), MODULE_FUNCTIONS, f"torch.{backend.kind}")
    return ""


def allocator(backend: Capabilities) -> str:
    size = torch.UntypedStorage(64, device=backend.device).nbytes()
    return "" if size == 64 else f"a storage of 64 bytes has {size}"


def device_allocator(backend: Capabilities) -> str:
    torch.accelerator.memory_allocated(torch.device(backend.device))
    return ""


def guard(backend: Capabilities) -> str:
    torch.Stream(device=backend.device)
    return ""


def accelerator(backend: Capabilities) -> str:
    current = torch.accelerator.current_accelerator()
    return "" if current is not None and current.type == backend.kind else f"the accelerator is {current}"


def generator(backend: Capabilities) -> str:
    made = torch.Generator(device=backend.device).manual_seed(7)
    return "" if made.initial_seed() == 7 else f"the seed is {made.initial_seed()} after manual_seed(7)"


def seeding(backend: Capabilities) -> str:
    _require(_module(backend), SEEDING_FUNCTIONS, f"torch.{backend.kind}")
    return ""


def initialized(backend: Capabilities) -> str:
    torch.empty(1, device=backend.device)
    module = _module(backend)
    _require(module, ["_initialized"], f"torch.{backend.kind}")
    return "" if module._initialized else "it is False although the device is in use"  # noqa: SLF001


def methods(backend: Capabilities) -> str:
    kind = backend.kind
    _require(torch.Tensor, [kind, f"is_{kind}"], "torch.Tensor")
    _require(torch.nn.Module, [kind], "torch.nn.Module")
    _require(torch.UntypedStorage, [kind, f"is_{kind}"], "torch.UntypedStorage")
    return ""


def autoload(backend: Capabilities) -> str:
    package = backend.module.partition(".")[0]
    owners = packages_distributions().get(package, [])  # distributions; their entry points may name another module
    found = list(entry_points(group="torch.backends"))
    if any(e.module.partition(".")[0] == package or (e.dist and e.dist.name in owners) for e in found):
        return ""
    modules = ", ".join(entry.module for entry in found)
    return f"no entry point of the group torch.backends loads {backend.module}; found: {modules or 'none'}"


def serialization(backend: Capabilities) -> str:
    values = torch.arange(5, dtype=torch.float32)
    file = io.BytesIO()
    torch.save(values.to(backend.device), file)
    file.seek(0)
    loaded = torch.load(file)
    if loaded.device.type != backend.kind:
        return f"a saved tensor is loaded to {loaded.device}"
    return "" if torch.equal(loaded.cpu(), values) else f"the values are {loaded.cpu().tolist()} after torch.load"


def amp(backend: Capabilities) -> str:
    _require(_module(backend), ["get_amp_supported_dtype"], f"torch.{backend.kind}")
    with torch.autocast(backend.kind, dtype=_module(backend).get_amp_supported_dtype()[0]):
        return ""


def pinned_memory(backend: Capabilities) -> str:
    pinned = torch.zeros(4).pin_memory()
    return "" if pinned.is_pinned() and backend.kind else "a pinned tensor does not say that it is pinned"


def minimal_ops(backend: Capabilities) -> str:
    missing = [name for name in MINIMAL if route_of(name, backend.device) not in (Route.NATIVE, Route.COMPOSITE)]
    if missing:
        raise LackingError(f"no kernel for {', '.join(missing)}", missing)
    return ""


def fallback(backend: Capabilities) -> str:
    key = torch_versions.dispatch_key_of(backend.device)
    return "" if torch_versions.has_backend_fallback(key) else "an op without a kernel raises NotImplementedError"


def second_derivatives(backend: Capabilities) -> str:
    silent = torch_versions.gradients_that_fall_through(torch_versions.dispatch_key_of(backend.device))
    return f"no error tells that second derivatives are missing of {', '.join(silent)}" if silent else ""
