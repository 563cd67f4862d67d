"""Kernels that Inductor wrote: compiled with an entry point for the driver, and launched on the current stream."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial

from torch._inductor.codecache import CppCodeCache

from refnpu import _C

_ENTRY = """
extern "C" void npu_entry(const void* arguments) {
  union Argument { void* pointer; int64_t integer; double number; };
  const auto* all = static_cast<const Argument*>(arguments);
  kernel(%s);
}
"""


def npu_kernel(name: str, arg_types: Sequence[str], source: str) -> Callable[..., None]:
    """Compile a kernel, and return the function that launches it with tensors and numbers.

    ``arg_types`` are the C++ types of the arguments of ``source``'s function ``kernel``. Raises Inductor's
    ``CppCompileError`` if the compiler refuses the source.
    """
    arguments = ", ".join(f"({kind})all[{i}].{_member(kind)}" for i, kind in enumerate(arg_types))
    library = CppCodeCache.load(source + _ENTRY % arguments)
    entry = ctypes.cast(library.npu_entry, ctypes.c_void_p).value
    assert entry is not None
    written = [kind.endswith("*") and not kind.startswith("const ") for kind in arg_types]
    return partial(_C.launch_compiled, name, entry, written)


def _member(kind: str) -> str:
    if kind.endswith("*"):
        return "pointer"
    return "number" if kind.split()[-1] in ("float", "double") else "integer"
