"""Inductor's C++ kernels as device code, and the Python around them that launches them."""

from __future__ import annotations

from math import prod
from typing import Any, NoReturn

import torch
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.codegen.wrapper import PythonWrapperCodegen, SubgraphPythonWrapperCodegen
from torch._inductor.ir import FlexibleLayout
from torch._inductor.scheduler import BaseSchedulerNode
from torch._inductor.virtualized import V

from refnpu import _C

_DEVICE_CODE = "// device code of the npu\n"  # tells kernels of the npu from those of the CPU in the same graph
_COMPILES = "async_compile.cpp_pybinding("


class NPUScheduling(CppScheduling):
    """Inductor's scheduling for a CPU, used for the npu."""

    def define_kernel(self, src_code: str, *args: Any, **kwargs: Any) -> Any:
        """Add a kernel to the wrapper, and return its name."""
        return super().define_kernel(_DEVICE_CODE + src_code, *args, **kwargs)


def fuse_as_for_cpu() -> None:
    """Let Inductor fuse the npu's nodes by the rules for C++. It applies these rules to nodes that are ``is_cpu()``."""

    def is_cpu(node: BaseSchedulerNode) -> bool:
        device = node.get_device()
        return device is not None and device.type in ("cpu", "npu")

    BaseSchedulerNode.is_cpu = is_cpu


def _contiguous(shape: Any, stride: Any) -> Any:
    """Return the strides of a contiguous tensor if this tensor has no gaps, else ``stride``."""
    last = sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    without_gaps = V.graph.sizevars.statically_known_equals(last + 1, prod(shape))
    return tuple(FlexibleLayout.contiguous_strides(shape)) if without_gaps else stride


class _Launches:
    """The parts of a wrapper that define kernels and call them."""

    def write_header(self) -> None:
        super().write_header()  # type: ignore[misc]
        self.header.splice("from refnpu._inductor.kernels import npu_kernel")  # type: ignore[attr-defined]

    def define_kernel(self, kernel_name: str, kernel_body: str, *args: Any, **kwargs: Any) -> None:
        """Write the definition of a kernel, of the npu or of the CPU."""
        if _DEVICE_CODE in kernel_body:
            kernel_body = kernel_body.replace(_COMPILES, f"npu_kernel({kernel_name!r}, ", 1)
        super().define_kernel(kernel_name, kernel_body, *args, **kwargs)  # type: ignore[misc]

    def make_allocation(
        self, name: str, device: torch.device, dtype: torch.dtype, shape: Any, stride: Any, *args: Any, **kwargs: Any
    ) -> str:
        """Return the line that makes a tensor. Inductor's own line lacks the index of an unknown device."""
        if device.type == "npu" and _C.fault("compiled_result_made_contiguous"):
            stride = _contiguous(shape, stride)
        line: str = super().make_allocation(name, device, dtype, shape, stride, *args, **kwargs)  # type: ignore[misc]
        if device.type != "npu" or _C.fault("compiled_result_on_current_device"):
            return line
        return line.replace("device='npu'", f"device='{device}'", 1)

    def _generate_kernel_call_helper(self, kernel_name: str, call_args: Any, **kwargs: Any) -> None:
        device = kwargs.get("device") or V.graph.get_current_device_or_throw()
        if device.type == "npu":
            self.writeline(self.wrap_kernel_call(kernel_name, call_args))  # type: ignore[attr-defined]
        else:
            super()._generate_kernel_call_helper(kernel_name, call_args, **kwargs)  # type: ignore[misc]


class NPUWrapperCodegen(_Launches, PythonWrapperCodegen):
    """The Python code of a graph."""

    @staticmethod
    def create(is_subgraph: bool, *args: Any, **kwargs: Any) -> PythonWrapperCodegen:
        """Return the wrapper of a graph, or of a graph that another one calls."""
        return NPUSubgraphCodegen(*args, **kwargs) if is_subgraph else NPUWrapperCodegen()


class NPUSubgraphCodegen(_Launches, SubgraphPythonWrapperCodegen):
    """The Python code of a graph that another one calls."""


class NoCppWrapper(PythonWrapperCodegen):
    """The class that Inductor takes for a C++ wrapper, which is not supported."""

    @staticmethod
    def create(*args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError."""
        raise NotImplementedError("npu: Inductor's C++ wrapper is not supported, so AOTInductor is not either")


class NoFXWrapper(PythonWrapperCodegen):
    """The class that Inductor takes for an FX wrapper, which is not supported."""

    @staticmethod
    def create(*args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError."""
        raise NotImplementedError("npu: Inductor's FX wrapper is not supported")
