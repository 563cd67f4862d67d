"""Torch's compilers, under their private names: exported programs, Inductor, and AOTInductor's packages."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree


def leaves_of(value: Any) -> list[Any]:
    """Return the leaves of nested containers, in torch's order."""
    return list(pytree.tree_leaves(value))


def with_tensors(value: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """Return nested containers with their tensors replaced by others, in order."""
    left = iter(tensors)
    return pytree.tree_map(lambda leaf: next(left) if isinstance(leaf, torch.Tensor) else leaf, value)


def exported_inputs(program: Any) -> list[tuple[str, list[tuple[int, str, int, int | None]]]]:
    """Return name and dimensions (size of the example, symbol, bounds) of each tensor input of an exported program."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    names = [name for name in program.graph_signature.user_inputs if isinstance(values.get(name), torch.Tensor)]
    return [(name, [_dimension(size, program.range_constraints) for size in values[name].shape]) for name in names]


def _dimension(size: Any, bounds: Mapping[Any, Any]) -> tuple[int, str, int, int | None]:
    if not isinstance(size, torch.SymInt):
        return int(size), "", 0, None
    found = bounds.get(size.node.expr)
    hint = int(size.node.hint)
    return (hint, str(size), *((int(found.lower), _finite(found.upper)) if found else (0, None)))


def _finite(bound: Any) -> int | None:
    """Return an upper bound, None if it means infinity, which torch writes in several ways."""
    try:
        value = int(bound)
    except (OverflowError, TypeError, ValueError):
        return None
    return value if value < 1 << 31 else None


def inductor_lacks(kind: str) -> str:
    """Return an error if Inductor cannot compile a package for a type of device, else ""."""
    from torch._inductor.codegen import common

    common.init_backend_registration()
    if common.get_scheduling_for_device(kind) is None:
        known = ", ".join(sorted(common.device_codegens))
        return (
            f"Inductor knows no device {kind!r}, only {known}; a backend registers one with "
            "register_backend_for_device(device, scheduling, wrapper codegen, C++ wrapper codegen)"
        )
    if common.get_wrapper_codegen_for_device(kind, True) is None:
        return (
            f"Inductor has no C++ wrapper codegen for device {kind!r}, which AOTInductor needs; a backend registers one"
        )
    return ""


def compile_package(program: Any, path: str) -> str:
    """Compile an exported program into a package at this path. Return the path."""
    from torch import _inductor

    return str(_inductor.aoti_compile_and_package(program, package_path=path))


def prepare_to_load_packages() -> None:
    """Detect this processor's vector instructions with a compiler, once instead of in each process that loads."""
    from torch._inductor import cpu_vec_isa, package  # noqa: F401  # loading imports it

    cpu_vec_isa.valid_vec_isa_list()


def load_package(path: str, device_index: int | None = None) -> Any:
    """Return the callable model of a package."""
    from torch import _inductor

    return _inductor.aoti_load_package(path, device_index=-1 if device_index is None else device_index)


def has_deprecated_aoti() -> bool:
    """Return whether this torch still has ``torch._export.aot_compile`` and ``aot_load``."""
    from torch import _export

    return hasattr(_export, "aot_compile") and hasattr(_export, "aot_load")


def compile_deprecated(module: torch.nn.Module, inputs: tuple[Any, ...], dynamic_shapes: Any = None) -> str:
    """Compile a module into a shared library. Return its path."""
    from torch import _export

    return str(_export.aot_compile(module, inputs, dynamic_shapes=dynamic_shapes))


def load_deprecated(path: str, device: str) -> Any:
    """Return the callable model of a shared library on a device."""
    from torch import _export

    return _export.aot_load(path, device)


@contextmanager
def compiled_graphs(found: list[Any]) -> Iterator[None]:
    """Within this context, append each graph that Inductor compiles into a package to ``found``."""
    from torch._inductor.graph import GraphLowering

    was = GraphLowering.codegen_with_cpp_wrapper

    def codegen(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = was(self, *args, **kwargs)
        if not self.is_const_graph:
            found.append(self)
        return result

    GraphLowering.codegen_with_cpp_wrapper = codegen
    try:
        yield
    finally:
        GraphLowering.codegen_with_cpp_wrapper = was


def buffers_of(graph: Any) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return for each buffer of a compiled graph the FX node whose value it holds, and the ops that compute it."""
    found = {}
    for name, buffer in graph.name_to_buffer.items():
        node = buffer.get_origin_node()
        if node is not None:
            ops = sorted(n for n in map(_op, buffer.get_origins()) if n)
            found[name] = node.name, tuple(dict.fromkeys(ops))
    return found


def _op(node: Any) -> str:
    return str(node.target) if node.op == "call_function" else ""


def values_of(graph: Any, inputs: Sequence[torch.Tensor]) -> tuple[dict[str, torch.Tensor], list[Any]]:
    """Run a compiled graph's FX module op by op. Return copies of the tensors by node, and the outputs."""
    values: dict[str, torch.Tensor] = {}

    class Keeping(torch.fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            value = super().run_node(n)
            if isinstance(value, torch.Tensor):
                values[n.name] = value.detach().clone()
            return value

    outputs = Keeping(graph.module).run(*inputs)
    return values, leaves_of(outputs)


def load_decompositions() -> None:
    """Import the modules that torch imports in the first call of a decomposition, which takes a second."""
    for module in ("sympy", "torch._dynamo"):
        importlib.import_module(module)


def load_compiler() -> None:
    """Import the modules that ``torch.compile`` imports at its first use, and let backends register with Inductor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of torch's own modules, which use deprecated names
        import torch._inductor.compile_fx  # noqa: F401 - thousands of modules, imported for later use
        from torch._inductor.codegen.common import init_backend_registration

        init_backend_registration()


def inductor_knows(kind: str) -> bool:
    """Return whether Inductor has code generators for a type of device, such as ``cuda``. Imports Inductor."""
    from torch._inductor.codegen.common import get_scheduling_for_device, init_backend_registration

    init_backend_registration()
    return get_scheduling_for_device(kind) is not None
