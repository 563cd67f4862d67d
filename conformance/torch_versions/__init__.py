"""The only package in which Python code deals with differences of torch versions and with torch's private names."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch._decomp import decomposition_table, global_decomposition_table
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

__all__ = ["StorageWeakRef", "TorchDispatchMode"]

NAMESPACE = "aten::"

# Alias keys in the order in which the dispatcher prefers them when a backend has no kernel of its own.
COMPOSITE_KEYS = ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd", "CompositeImplicitAutograd")


def aten_names() -> list[str]:
    """Return all overloads that the dispatcher knows in the aten namespace, sorted, without the namespace."""
    names: list[str] = torch._C._dispatch_get_all_op_names()
    return sorted(n[len(NAMESPACE) :] for n in names if n.startswith(NAMESPACE))


def schemas() -> dict[str, Any]:
    """Return the ``torch._C.FunctionSchema`` of every aten overload, by name without the namespace."""
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith(NAMESPACE):
            found[overload_of(schema)] = schema
    return found


def schema_of(call: Any) -> Any:
    """Return the ``FunctionSchema`` of an overload, e.g. of ``torch.ops.aten.neg.default``."""
    return call._schema


def overload_of(schema: Any) -> str:
    """Return the name of a schema's overload, e.g. ``add_.Tensor``, without the namespace."""
    name: str = schema.name.removeprefix(NAMESPACE)
    return f"{name}.{schema.overload_name}" if schema.overload_name else name


def decomposition_of(call: Any) -> Any:
    """Return the function that computes an overload by simpler ops, as compilers do; None if torch has none."""
    return decomposition_table.get(call)


def later_kernel(name: str) -> Any:
    """Return a function that computes an overload as CPU does in later torch versions; None if no difference is known.

    If this torch is already such a later version, the function computes the same as its CPU kernel.
    """
    return _LATER_KERNELS.get(name)


def _hardswish_backward(grad_output: torch.Tensor, self: torch.Tensor) -> torch.Tensor:
    """Return the gradient. At -3 and 3 it is the limit from outside; up to torch 2.6, it was the limit from inside."""
    x = self.to(torch.result_type(grad_output, self))
    inside = grad_output * (x / 3 + 0.5)
    return torch.where(x <= -3, torch.zeros_like(inside), torch.where(x >= 3, grad_output, inside))


def _hardswish_backward_out(grad_output: torch.Tensor, self: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    return out.resize_(self.shape).copy_(_hardswish_backward(grad_output, self))


_LATER_KERNELS = {"hardswish_backward": _hardswish_backward, "hardswish_backward.out": _hardswish_backward_out}


def without_modes() -> AbstractContextManager[Any]:
    """Return a context in which no dispatch mode sees the calls."""
    manager: AbstractContextManager[Any] = _disable_current_modes()
    return manager


def tags(name: str) -> tuple[str, ...]:
    """Return the dispatcher's tags of an overload, e.g. ``pointwise``, sorted."""
    base, _, overload = name.partition(".")
    found = torch._C._get_operation_overload(NAMESPACE + base, overload)
    return tuple(sorted(t.name for t in found[2])) if found else ()


@cache
def autocast_policies() -> dict[str, str]:
    """Return torch's policies for the overloads whose arguments autocast casts on all devices but CPU.

    The policies are, by overload, "lower_precision_fp", "fp32", "fp32_set_opt_dtype" or "promote". They are read from
    the header from which backends take the lists. The result is empty if this torch comes without headers.
    """
    header = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
    text = header.read_text(encoding="utf-8") if header.exists() else ""
    found: dict[str, str] = {}
    for policy in ("LOWER_PRECISION_FP", "FP32", "FP32_SET_OPT_DTYPE", "PROMOTE"):
        body = re.search(rf"#define AT_FORALL_{policy}\(_\)((?:.*\\\n)*.*)", text)
        entries = re.findall(r"_\((\w+)(?:,\s*(\w+))?\)", body[1]) if body else []
        found.update({f"{op}.{overload}" if overload else op: policy.lower() for op, overload in entries})
    return found


def settle_threads() -> None:
    """Make torch create its thread pool again in a forked process.

    Otherwise, several threads of autograd create it at the same time when they start, which sometimes aborts the
    process.
    """
    torch.set_num_threads(torch.get_num_threads())


def cpu_capability() -> str:
    """Return the instruction set for which the CPU kernels that run here were compiled, e.g. ``AVX512``.

    The kernels for every processor are "DEFAULT". Older versions, for example 2.8, call them "NO AVX".
    """
    found = str(torch.backends.cpu.get_cpu_capability())
    return "DEFAULT" if found == "NO AVX" else found


def uses_mkldnn() -> bool:
    """Return whether CPU kernels may use oneDNN in this process."""
    return bool(torch.backends.mkldnn.is_available() and torch._C._get_mkldnn_enabled())


def has_no_memory(tensor: torch.Tensor) -> bool:
    """Return whether the tensor is one of autograd's zero tensors, which have a shape and no storage."""
    return bool(tensor._is_zerotensor())


def has_own_kernel(name: str, key: str) -> bool:
    """Return whether a kernel is registered for exactly this dispatch key (alias keys and fallbacks do not count)."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(NAMESPACE + name, key))


def autocasts(name: str, device: str) -> bool:
    """Return whether an overload has a kernel for autocast on a device. A backend need not register torch's lists."""
    return has_own_kernel(name, f"Autocast{dispatch_key_of(device)}")


def has_autograd_kernel(name: str, key: str) -> bool:
    """Return whether a backend registers a kernel of its own for the autograd key of its dispatch key."""
    try:
        return has_own_kernel(name, f"Autograd{key}")
    except RuntimeError:  # some dispatch keys have no autograd key
        return False


def has_composite_kernel(name: str) -> bool:
    """Return whether a kernel is registered under an alias key. It serves every backend without a kernel of its own."""
    return any(has_own_kernel(name, key) for key in COMPOSITE_KEYS)


def composite_kernel_of(call: Any) -> Any:
    """Return torch's kernel of an overload for all devices as a callable, None if it has none."""
    name = overload_of(schema_of(call))
    for key in COMPOSITE_KEYS:
        if has_own_kernel(name, key):
            return partial(call._op_dk, _key(key))
    return None


class _Composed(TorchDispatchMode):
    """A mode that calls torch's kernels for all devices if ``key`` has no kernel of its own, for tensors anywhere."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key

    def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        composite = None if has_own_kernel(overload_of(call._schema), self._key) else composite_kernel_of(call)
        if composite is None:
            return call(*args, **(kwargs or {}))
        with self:
            return composite(*args, **(kwargs or {}))


def as_composed(call: Any, device: torch.device) -> Callable[..., Any]:
    """Return a call of the overload that uses torch's kernels for all devices wherever ``device`` is served by them."""
    key = dispatch_key_of(device.type)

    def composed(*args: Any, **kwargs: Any) -> Any:
        with _Composed(key):
            return call(*args, **kwargs)

    return composed


def is_composed(name: str) -> bool:
    """Return whether a kernel under an alias key makes the results itself, and not by a structured kernel."""
    return any(has_own_kernel(name, key) for key in COMPOSITE_KEYS[1:])


def has_derivative(name: str) -> bool:
    """Return whether autograd has a kernel for an overload, or may have kernels for the overloads that compose it."""
    return has_own_kernel(name, "Autograd") or has_own_kernel(name, "CompositeImplicitAutograd")


def is_registered_by_backend(name: str, key: str) -> bool:
    """Return whether the kernel for a dispatch key is neither from torch's C++ sources nor from its Python package."""
    lines = torch._C._dispatch_dump(NAMESPACE + name).splitlines() if has_own_kernel(name, key) else []
    found = re.search(r"registered at (.*):\d+", next((line for line in lines if line.startswith(f"{key}: ")), ""))
    if found is None:
        return False
    if found[1] == "/dev/null":  # before torch 2.9: any registration from Python, in torch's package or elsewhere
        return not (key == "Meta" and name in _decomposed())
    own = (str(Path(torch.__file__).parent), "aten/src/ATen/", "/torch/csrc/")
    return not any(place in found[1] for place in own)


@cache
def _decomposed() -> frozenset[str]:
    """Return the overloads with a decomposition, which torch registers as their kernel for Meta."""
    calls = (call for table in global_decomposition_table.values() for call in table)
    schemas = (schema_of(call) for call in calls if isinstance(call, torch._ops.OpOverload))
    return frozenset(overload_of(schema) for schema in schemas)


def cannot_functionalize(message: str) -> bool:
    """Return whether an error is torch's own refusal to functionalize an aten overload without such a kernel."""
    found = re.match(r"Found a custom \(non-ATen\) operator .*?: aten::([\w.]+)\(", message)
    return found is not None and not has_own_kernel(found[1], "Functionalize")


def lacking_operator(message: str) -> str:
    """Return the overload for which the dispatcher found no kernel, by its error; "" for other errors or namespaces."""
    found = re.match(r"Could not run 'aten::([\w.]+)' with arguments from the '\w+' backend", message)
    return found[1] if found else ""


def has_out(schema: str) -> bool:
    """Return whether a schema has written arguments other than the ``self`` of an in-place op."""
    return bool(re.search(r"!\)(\[\])? (?!self\b)\w+", schema.partition("->")[0]))


def gradients_that_fall_through(key: str) -> list[str]:
    """Return the ops outside of aten, with a kernel for a dispatch key, that end the graph of a gradient silently.

    Each of them is called ``NAME_backward`` and falls through autograd, while the op ``NAME`` has a kernel for
    autograd.
    """

    def falls_through(name: str) -> bool | None:
        if not torch._C._dispatch_has_kernel_for_dispatch_key(name, f"Autograd{key}"):
            return None
        return bool(torch._C._dispatch_kernel_for_dispatch_key_is_fallthrough(name, f"Autograd{key}"))

    names = [n for n in torch._C._dispatch_get_all_op_names() if not n.startswith(NAMESPACE)]
    gradients = [n for n in names if "_backward" in n and torch._C._dispatch_has_kernel_for_dispatch_key(n, key)]
    known = frozenset(names)
    ops = {n: n.partition("_backward")[0] for n in gradients}
    return sorted(n for n, op in ops.items() if op in known and falls_through(op) is False and falls_through(n))


def has_backend_fallback(key: str) -> bool:
    """Return whether a boxed fallback is registered for this dispatch key."""
    return bool(torch._C._dispatch_has_backend_fallback(_key(key)))


def dispatch_key_of(device: str) -> str:
    """Return the dispatch key of ``device``, which may be a key itself. Raises ValueError if torch knows neither.

    Devices are ``mydev:0`` or ``cuda``, for example.
    """
    try:
        _key(device)
        return device
    except ValueError:
        pass
    try:
        kind = torch.device(device).type
    except RuntimeError as e:
        raise ValueError(
            f"{device!r} is neither a device of this torch ({torch.__version__}) nor a dispatch key; "
            "import the backend first, or name a key such as PrivateUse1"
        ) from e
    return str(torch._C._dispatch_key_for_device(kind))


def _key(name: str) -> Any:
    try:
        return torch._C._dispatch_key_parse(name)
    except RuntimeError as e:
        raise ValueError(f"no dispatch key is called {name!r}") from e


def is_boxed_only(name: str, key: str) -> bool:
    """Return whether the kernel for this key takes a stack of boxed values and has no signature, as a fallback does."""
    lines = torch._C._dispatch_dump(NAMESPACE + name).splitlines()
    return any(line.startswith(f"{key}: ") and line.endswith(":: (none) [ boxed ]") for line in lines)


def neg_view(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view with the negative bit flipped."""
    return torch._neg_view(tensor)


def versions(tensors: Iterable[torch.Tensor]) -> list[int]:
    """Return the tensors' version counters, by which autograd detects writes."""
    return [tensor._version for tensor in tensors]


class WatchingMode(TorchDispatchMode):
    """A dispatch mode that does not load torch's compiler. Any other mode loads it, which takes seconds (torch 2.11).

    Subclasses define ``called`` in place of ``__torch_dispatch__``. If the program loads the compiler, the compiler
    does not compile ``called``.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Iterable[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        called = self.called
        if "torch._dynamo" in sys.modules:
            called = torch.compiler.disable(called)
        return called(func, args, kwargs or {})

    def called(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Replace a call of ``func`` with these arguments. The program gets the returned value."""
        raise NotImplementedError


def accelerator_of(kind: str) -> Any:
    """Return ``torch.accelerator`` if the accelerator has this type, else None. torch has the module from 2.6 on."""
    module = getattr(torch, "accelerator", None)
    try:
        current = module.current_accelerator() if module else None
    except RuntimeError:  # torch 2.6 raises where later ones return None: this machine has no accelerator
        current = None
    return module if current is not None and current.type == kind else None


def privateuse1_name() -> str:
    """Return the name of PrivateUse1 devices: ``privateuseone`` unless a backend has renamed them."""
    return str(torch._C._get_privateuse1_backend_name())


def seeds(kind: str) -> bool:
    """Return whether ``torch.manual_seed`` seeds the generators of devices of this type.

    For an out-of-tree backend, it calls the backend's device module.
    """
    if kind in ("cpu", "cuda", "mps", "xpu", "mtia", "meta"):
        return True
    module = getattr(torch, kind, None)
    return hasattr(module, "_is_in_bad_fork") and hasattr(module, "manual_seed_all")


def is_in_bad_fork(kind: str) -> bool:
    """Return whether devices of this type do not work in this process, because its parent has used their module."""
    asked = getattr(getattr(torch, kind, None), "_is_in_bad_fork", None)
    return callable(asked) and bool(asked())


@contextmanager
def without_onednn() -> Iterator[None]:
    """Disable oneDNN for CPU kernels, because its supported dtypes depend on the processor."""
    was = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(was)


def unpickled_tensors_leak() -> bool:
    """Return whether a device block stays allocated after a pickled tensor is gone: on torch 2.8, but not on 2.13."""
    return tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13)


def print_stacks_of_deaths() -> None:
    """Make torch print the native stacks of this process's threads when a signal kills it.

    Printing allocates memory on the heap, so a process whose heap is damaged may hang instead of dying.
    """
    if hasattr(torch._C, "_set_print_stack_traces_on_fatal_signal"):
        torch._C._set_print_stack_traces_on_fatal_signal(True)


def storage_id(of: torch.Tensor | torch.UntypedStorage) -> int:
    """Return a number that identifies a storage, or a tensor's. It is not an address, which an empty storage lacks."""
    storage = of.untyped_storage() if isinstance(of, torch.Tensor) else of
    return int(storage._cdata)


def storage_ids(tensors: Iterable[torch.Tensor]) -> list[int]:
    """Return the :func:`storage_id` of each strided tensor."""
    return [tensor.untyped_storage()._cdata for tensor in tensors]


def storage_ref(of: torch.Tensor | torch.UntypedStorage) -> StorageWeakRef:
    """Return a weak reference to a storage, with ``expired()``. While it lives, no other storage gets the same id."""
    return StorageWeakRef(_storage(of))


def storage_behind(ref: StorageWeakRef) -> torch.UntypedStorage | None:
    """Return the storage of a weak reference, None if the storage is gone."""
    found: torch.UntypedStorage | None = torch.UntypedStorage._new_with_weak_ptr(ref.cdata)
    return found


def _storage(of: torch.Tensor | torch.UntypedStorage) -> torch.UntypedStorage:
    return of.untyped_storage() if isinstance(of, torch.Tensor) else of
