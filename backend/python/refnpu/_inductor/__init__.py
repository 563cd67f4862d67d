"""The npu as a device of ``torch.compile``'s Inductor; imported when Inductor asks ``torch.npu`` for it, not before.

Inductor asks in `init_backend_registration`, for the four names of `CODEGENS`. The kernels are Inductor's C++ for
CPUs, and device code: they run in a launch of the driver alone. Two things are not offered on any version, and raise
`NotImplementedError`: the C++ wrapper (so no AOTInductor) and the FX wrapper. Torch 2.8 cannot compile
``flex_attention``, nor for CPU; 2.13 and later compile it for a list of devices of their own, without the npu.
Torch 2.8 compiles divisions of integers unchecked: one by zero ends the process with SIGFPE.
"""

from __future__ import annotations

from refnpu._inductor.codegen import NoCppWrapper, NoFXWrapper, NPUScheduling, NPUWrapperCodegen, fuse_as_for_cpu
from refnpu._inductor.devices import register

CODEGENS = {
    "Scheduling": NPUScheduling,
    "PythonWrapperCodegen": NPUWrapperCodegen,
    "CppWrapperCodegen": NoCppWrapper,
    "WrapperFxCodegen": NoFXWrapper,
}

register()
fuse_as_for_cpu()
