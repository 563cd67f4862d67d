"""Kernels that Inductor wrote: compiled with an entry point for the driver, and launched on the current stream."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from torch._inductor.codecache import CppCodeCache

from refnpu import _C

# The entry point for the driver. It knows the kernel only by its C name, for which all pointer types are alike.
_ENTRY = """
#include <cstdint>
extern "C" void kernel({parameters});
extern "C" void npu_entry(const void* arguments) {{
  union Argument {{ void* pointer; int64_t integer; double number; }};
  const auto* all = static_cast<const Argument*>(arguments);
  kernel({arguments});
}}
"""


class _Libraries(CppCodeCache):
    """Libraries compiled as Inductor compiles a CPU's kernels, with the header of all kernels precompiled."""

    cache: ClassVar[dict[str, Any]] = {}
    cpp_compile_command_flags: ClassVar[dict[str, Any]] = {"include_pytorch": False, "shared": True}


def npu_kernel(name: str, arg_types: Sequence[str], source: str) -> Callable[..., None]:
    """Compile a kernel, and return the function that launches it with tensors and numbers.

    ``arg_types`` are the C++ types of the arguments of ``source``'s function ``kernel``. Raises Inductor's
    ``CppCompileError`` if the compiler refuses the source.
    """
    if _C.fault("compiled_kernel_by_name") and name in _BY_NAME:
        return _BY_NAME[name]
    kinds = [_kind(of) for of in arg_types]
    parameters = ", ".join(_C_TYPES[kind] for kind in kinds)
    arguments = ", ".join(f"({_C_TYPES[kind]})all[{i}].{kind}" for i, kind in enumerate(kinds))
    entry = _ENTRY.format(parameters=parameters, arguments=arguments)
    library = _Libraries.load(entry, optimized_code=source)
    address = ctypes.cast(library.npu_entry, ctypes.c_void_p).value
    written = [of.endswith("*") and not of.startswith("const ") for of in arg_types]
    assert address is not None  # a function that was found has an address
    _BY_NAME[name] = partial(_C.launch_compiled, name, address, written)
    return _BY_NAME[name]


_BY_NAME: dict[str, Callable[..., None]] = {}


_C_TYPES = {"pointer": "void*", "number": "float", "integer": "int64_t"}


def _kind(of: str) -> str:
    """Return the member of ``Argument`` that holds an argument of a C++ type."""
    if of.endswith("*"):
        return "pointer"
    return "number" if of.endswith("float") else "integer"
