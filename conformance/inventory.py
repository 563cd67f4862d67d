"""The live dispatcher as a list: every aten overload of this torch, its schema, and its route on a backend.

Of the 3,110 overloads of torch 2.13, 1,075 have a kernel registered for the CPU key itself. 1,072 of these have a
tensor among their arguments or results and no CompositeImplicitAutograd kernel. These are the *targets*: the overloads
that a backend must serve by itself, and over which coverage is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from conformance import torch_versions as tv
from conformance.vocabulary import Route


@dataclass(frozen=True, slots=True)
class Overload:
    """One ATen overload as this torch has it, and its route on one dispatch key."""

    name: str  # without "aten::", e.g. "masked_fill_.Scalar"
    schema: str  # torch's text of the schema, including "aten::"
    tags: tuple[str, ...]
    has_tensors: bool  # whether there is a tensor, or a list of tensors, among the arguments or results
    has_cpu_kernel: bool  # whether a call with CPU tensors finds a kernel, including an alias key's kernel
    is_composite_implicit: bool  # whether it has a CompositeImplicitAutograd kernel, which calls other overloads
    is_target: bool  # see the module's docstring
    route: Route

    @property
    def base(self) -> str:
        """The operator's name without the overload: ``masked_fill_``."""
        return self.name.partition(".")[0]


@dataclass(frozen=True, slots=True)
class _Static:
    """The facts of an overload that do not depend on the backend, in the order of Overload's fields."""

    name: str
    schema: str
    tags: tuple[str, ...]
    has_tensors: bool
    has_cpu_kernel: bool
    is_composite_implicit: bool
    is_target: bool


def inventory(device: str = "PrivateUse1") -> tuple[Overload, ...]:
    """Return every aten overload, sorted by name, with its route.

    ``device`` is a device (``mydev:0``) or a dispatch key (``PrivateUse1``). Routes are read from the dispatcher on
    every call, because a backend may be loaded between two calls. The other facts are cached. Raises ValueError for a
    device that this torch does not know.
    """
    key = tv.dispatch_key_of(device)
    has_fallback = tv.has_backend_fallback(key)
    return tuple(
        Overload(s.name, s.schema, s.tags, s.has_tensors, s.has_cpu_kernel, s.is_composite_implicit, s.is_target,
                 _route(s.name, key, has_fallback))
        for s in _static()
    )  # fmt: skip


def exists(overload: str) -> bool:
    """Return whether this torch's dispatcher knows the overload."""
    return overload in {s.name for s in _static()}


def route_of(overload: str, device: str) -> Route:
    """Return the route of one overload for a device or dispatch key, as in :func:`inventory`."""
    key = tv.dispatch_key_of(device)
    return _route(overload, key, tv.has_backend_fallback(key))


def call_of(overload: str | Overload) -> Callable[..., Any]:
    """Return ``torch.ops.aten.masked_fill_.Scalar`` for ``masked_fill_.Scalar``; ``default`` if no overload is named.

    Raises LookupError if this torch has no such overload.
    """
    name = overload if isinstance(overload, str) else overload.name
    base, _, which = name.partition(".")
    try:
        found: Callable[..., Any] = getattr(getattr(torch.ops.aten, base), which or "default")
    except AttributeError as e:
        raise LookupError(f"torch {torch.__version__} has no overload aten::{name}") from e
    return found


def overload_of(call: Any) -> str:
    """Return the name of a call's overload, e.g. ``masked_fill_.Scalar``; "" outside the aten namespace."""
    schema = tv.schema_of(call)
    if not schema.name.startswith(tv.NAMESPACE):
        return ""
    return str(schema.name).removeprefix(tv.NAMESPACE) + (f".{schema.overload_name}" if schema.overload_name else "")


def _route(name: str, key: str, has_fallback: bool) -> Route:
    """Return the route in the dispatcher's order: the backend's kernel, an alias key's kernel, the boxed fallback.

    A fallback may also be registered for an overload by name, if an alias key's kernel would refuse the device. The
    backend's own kernel for autograd is called before an alias key's kernel and before the fallback.
    """
    if tv.has_own_kernel(name, key):
        return Route.FALLBACK if has_fallback and tv.is_boxed_only(name, key) else Route.NATIVE
    if tv.has_autograd_kernel(name, key):
        return Route.NATIVE
    if tv.has_composite_kernel(name):
        return Route.COMPOSITE
    return Route.FALLBACK if has_fallback else Route.UNSUPPORTED


@lru_cache(maxsize=1)
def _static() -> tuple[_Static, ...]:
    schemas = tv.schemas()
    return tuple(_describe(name, schemas[name]) for name in tv.aten_names() if name in schemas)


def _describe(name: str, schema: Any) -> _Static:
    has_tensors = any("Tensor" in str(a.type) for a in (*schema.arguments, *schema.returns))
    implicit = tv.has_own_kernel(name, "CompositeImplicitAutograd")
    return _Static(
        name=name,
        schema=str(schema),
        tags=tv.tags(name),
        has_tensors=has_tensors,
        has_cpu_kernel=tv.has_own_kernel(name, "CPU") or tv.has_composite_kernel(name),
        is_composite_implicit=implicit,
        is_target=has_tensors and not implicit and tv.has_own_kernel(name, "CPU"),
    )
